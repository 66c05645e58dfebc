/* SPDX-License-Identifier: Apache-2.0
 * Tensors that other tasks of the host can map: their memory, what stays private, and processes
 * that have no arena. */
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "tests/lib/test.h"
#include "worker/library/arena/arena.h"
#include "worker/library/device/tensor.h"

static const int64_t large_dims[] = {1000, 300};

static bool in_arena(const cadre_tensor *tensor)
{
    uint64_t offset = 0;
    return arena_locate(cadre_tensor_const_data(tensor), cadre_tensor_bytes(tensor), &offset);
}

static void in_child(int (*body)(void))
{
    int how = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static cadre_tensor *shared_tensor(uint32_t rank)
{
    struct cadre_error error;
    cadre_tensor *tensor = NULL;
    assert_ok(
        tensor_create_kind(TENSOR_MEMORY_SHARED, CADRE_F32, rank, large_dims, &tensor, &error),
        &error);
    return tensor;
}

/* First: the arena is not open yet. */
static int without_an_arena(void)
{
    struct cadre_error error;
    cadre_tensor *tensor = NULL;
    fault_arm("arena.memfd", 1);
    (void)tensor_memory_prefer(TENSOR_MEMORY_SHARED);
    if (!fault_disarm() || tensor_memory_preferred() != TENSOR_MEMORY_HOST) {
        return 1;
    }
    if (tensor_create_kind(TENSOR_MEMORY_SHARED, CADRE_F32, 2, large_dims, &tensor, &error) !=
            CADRE_OK ||
        tensor_kind(tensor) != TENSOR_MEMORY_HOST) {
        return 2;
    }
    memset(cadre_tensor_data(tensor), 1, cadre_tensor_bytes(tensor));
    cadre_tensor_release(tensor);
    return tensor_memory_get(TENSOR_MEMORY_SHARED, 100) == NULL ? 0 : 3;
}

static void no_arena_is_the_hosts_memory(void **state)
{
    (void)state;
    assert_int_equal(arena_bytes(), 0);
    in_child(without_an_arena);
    assert_int_equal(arena_bytes(), 0);
}

static void tensors_lie_in_the_arena(void **state)
{
    (void)state;
    for (uint32_t rank = 0; rank <= 2; rank++) {
        cadre_tensor *tensor = shared_tensor(rank);
        assert_int_equal(tensor_kind(tensor), TENSOR_MEMORY_SHARED);
        assert_int_equal((uintptr_t)cadre_tensor_data(tensor) % CADRE_TENSOR_ALIGN, 0);
        assert_true(in_arena(tensor));
        memset(cadre_tensor_data(tensor), 0x55, cadre_tensor_bytes(tensor));
        cadre_tensor_release(tensor);
    }
}

static void views_and_copies(void **state)
{
    (void)state;
    struct cadre_error error;
    cadre_tensor *tensor = shared_tensor(2);
    cadre_tensor *view = NULL;
    cadre_tensor *copy = NULL;
    memset(cadre_tensor_data(tensor), 0, cadre_tensor_bytes(tensor));
    assert_ok(tensor_view_rows(tensor, 10, 20, &view, &error), &error);
    assert_int_equal(tensor_kind(view), TENSOR_MEMORY_SHARED);
    assert_true(in_arena(view));
    assert_ok(tensor_copy(view, &copy, &error), &error);
    assert_int_equal(tensor_kind(copy), TENSOR_MEMORY_HOST);
    assert_false(in_arena(copy));
    cadre_tensor_release(copy);
    assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_SHARED), TENSOR_MEMORY_HOST);
    assert_int_equal(tensor_memory_preferred(), TENSOR_MEMORY_SHARED);
    assert_ok(tensor_copy(view, &copy, &error), &error);
    assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_HOST), TENSOR_MEMORY_SHARED);
    assert_int_equal(tensor_kind(copy), TENSOR_MEMORY_SHARED);
    assert_true(in_arena(copy));
    cadre_tensor_release(copy);
    cadre_tensor_release(view);
    cadre_tensor_release(tensor);
}

static void strings_stay_private(void **state)
{
    (void)state;
    struct cadre_error error;
    const int64_t dims[] = {2};
    const cadre_string words[] = {{.bytes = "one", .size = 3}, {.bytes = "two", .size = 3}};
    cadre_tensor *strings = NULL;
    (void)tensor_memory_prefer(TENSOR_MEMORY_SHARED);
    assert_ok(tensor_from_data(CADRE_STRING, 1, dims, words, &strings, &error), &error);
    (void)tensor_memory_prefer(TENSOR_MEMORY_HOST);
    assert_int_equal(tensor_kind(strings), TENSOR_MEMORY_HOST);
    assert_false(in_arena(strings));
    cadre_tensor_release(strings);
}

/* A process with a limit on its files has a small arena. */
static int fill_an_arena(void)
{
    struct cadre_error error;
    const struct rlimit limit = {.rlim_cur = (rlim_t)64 << 20, .rlim_max = (rlim_t)64 << 20};
    const int64_t dims[] = {(int64_t)40 << 20};
    cadre_tensor *tensors[2] = {NULL, NULL};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return 1;
    }
    for (int i = 0; i < 2; i++) {
        if (tensor_create_kind(TENSOR_MEMORY_SHARED, CADRE_U8, 1, dims, &tensors[i], &error) !=
            CADRE_OK) {
            return 2;
        }
        memset(cadre_tensor_data(tensors[i]), 1, cadre_tensor_bytes(tensors[i]));
    }
    bool right = tensor_kind(tensors[0]) == TENSOR_MEMORY_SHARED &&
                 tensor_kind(tensors[1]) == TENSOR_MEMORY_HOST;
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return right ? 0 : 3;
}

/* First, too. */
static void a_full_arena_is_the_hosts_memory(void **state)
{
    (void)state;
    assert_int_equal(arena_bytes(), 0);
    in_child(fill_an_arena);
}

/* When the arena has no room, kept blocks of it are freed before the second try. */
static void kept_memory_makes_room(void **state)
{
    (void)state;
    tensor_memory_limit(TENSOR_MEMORY_SHARED, (uint64_t)16 << 20);
    cadre_tensor_release(shared_tensor(1));
    cadre_tensor_release(shared_tensor(2));
    fault_arm("arena.get", 1);
    const int64_t dims[] = {5000000};
    struct cadre_error error;
    cadre_tensor *tensor = NULL;
    assert_ok(tensor_create_kind(TENSOR_MEMORY_SHARED, CADRE_U8, 1, dims, &tensor, &error), &error);
    assert_true(fault_disarm());
    assert_int_equal(tensor_kind(tensor), TENSOR_MEMORY_SHARED);
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_SHARED).kept, 0);
    cadre_tensor_release(tensor);
    tensor_memory_limit(TENSOR_MEMORY_SHARED, 0);
}

static void what_is_given_back_is_used_again(void **state)
{
    (void)state;
    tensor_memory_limit(TENSOR_MEMORY_SHARED, (uint64_t)16 << 20);
    cadre_tensor_release(shared_tensor(2));
    uint64_t gets = tensor_memory_counts(TENSOR_MEMORY_SHARED).gets;
    for (int i = 0; i < 100; i++) {
        cadre_tensor_release(shared_tensor(2));
    }
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_SHARED).gets, gets);
    tensor_memory_limit(TENSOR_MEMORY_SHARED, 0);
    struct tensor_memory_counts counts = tensor_memory_counts(TENSOR_MEMORY_SHARED);
    assert_int_equal(counts.kept, 0);
    assert_int_equal(counts.gets, counts.gives);
}

static int after_a_fork(void)
{
    struct cadre_error error;
    for (uint32_t rank = 0; rank <= 2; rank++) {
        cadre_tensor *tensor = NULL;
        if (tensor_create_kind(
                TENSOR_MEMORY_SHARED, CADRE_F32, rank, large_dims, &tensor, &error) != CADRE_OK ||
            tensor_kind(tensor) != TENSOR_MEMORY_HOST) {
            return 1;
        }
        memset(cadre_tensor_data(tensor), 1, cadre_tensor_bytes(tensor));
        cadre_tensor_release(tensor);
    }
    tensor_memory_trim(TENSOR_MEMORY_SHARED, 0);
    return 0;
}

/* Also the blocks that this thread and the depot kept are not there. */
static void a_forked_child_makes_private_tensors(void **state)
{
    (void)state;
    tensor_memory_limit(TENSOR_MEMORY_SHARED, (uint64_t)16 << 20);
    cadre_tensor_release(shared_tensor(0));
    cadre_tensor_release(shared_tensor(2));
    assert_true(tensor_memory_counts(TENSOR_MEMORY_SHARED).kept > 0);
    in_child(after_a_fork);
    cadre_tensor *tensor = shared_tensor(2);
    assert_int_equal(tensor_kind(tensor), TENSOR_MEMORY_SHARED);
    cadre_tensor_release(tensor);
    tensor_memory_limit(TENSOR_MEMORY_SHARED, 0);
}

enum { THREADS = 4, MADE = 2000 };

static void *make_tensors(void *argument)
{
    struct cadre_error error;
    (void)tensor_memory_prefer(TENSOR_MEMORY_SHARED);
    for (int64_t i = 0; i < MADE; i++) {
        const int64_t dims[] = {1 + i % 50 * 40};
        cadre_tensor *tensor = NULL;
        if (tensor_create(CADRE_I64, 1, dims, &tensor, &error) != CADRE_OK ||
            tensor_kind(tensor) != TENSOR_MEMORY_SHARED) {
            return argument;
        }
        ((int64_t *)cadre_tensor_data(tensor))[dims[0] - 1] = i;
        cadre_tensor_release(tensor);
    }
    return NULL;
}

static void threads_make_tensors(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_tensors, threads), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_arena_is_the_hosts_memory),
        cmocka_unit_test(a_full_arena_is_the_hosts_memory),
        cmocka_unit_test(tensors_lie_in_the_arena),
        cmocka_unit_test(views_and_copies),
        cmocka_unit_test(strings_stay_private),
        cmocka_unit_test(kept_memory_makes_room),
        cmocka_unit_test(what_is_given_back_is_used_again),
        cmocka_unit_test(a_forked_child_makes_private_tensors),
        cmocka_unit_test(threads_make_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
