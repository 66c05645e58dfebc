/* SPDX-License-Identifier: Apache-2.0
 * Memory of tensors: what is kept and used again, how much of it at most, by several threads, in
 * several kinds; and tensors of strings that share or are filled by hand. */
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "worker/library/device/tensor.h"

#define MEBIBYTE ((uint64_t)1 << 20)

static int begin(void **state)
{
    (void)state;
    tensor_memory_limit(TENSOR_MEMORY_HOST, 64 * MEBIBYTE);
    tensor_memory_trim(TENSOR_MEMORY_HOST, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    tensor_memory_limit(TENSOR_MEMORY_HOST, 0);
    return 0;
}

static uint64_t system_calls(void)
{
    struct tensor_memory_counts counts = tensor_memory_counts(TENSOR_MEMORY_HOST);
    return counts.gets + counts.gives;
}

static cadre_tensor *bytes_tensor(int64_t bytes)
{
    struct cadre_error error = {0};
    cadre_tensor *tensor = NULL;
    ASSERT_OK(tensor_create_unset(CADRE_U8, 1, &bytes, &tensor, &error));
    memset(cadre_tensor_data(tensor), 0x5A, (size_t)bytes);
    return tensor;
}

static void every_size_is_whole_and_aligned(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 5 * MEBIBYTE; bytes += bytes < 5000 ? 1 : bytes / 7) {
        for (int again = 0; again < 2; again++) {
            char *memory = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
            assert_non_null(memory);
            assert_int_equal((uintptr_t)memory % CADRE_TENSOR_ALIGN, 0);
            memset(memory, 0x77, bytes);
            tensor_memory_give(TENSOR_MEMORY_HOST, memory, bytes);
        }
    }
    assert_null(tensor_memory_get(TENSOR_MEMORY_HOST, SIZE_MAX / 2));
    assert_null(tensor_memory_get(TENSOR_MEMORY_HOST, (size_t)1 << 60));
}

static void what_is_given_back_is_used_again(void **state)
{
    (void)state;
    const int64_t sizes[] = {1, 8, 500, 4000, 70000, 3000000};
    cadre_tensor *held[3];
    for (int round = 0; round < 20; round++) {
        uint64_t before = system_calls();
        for (size_t size = 0; size < 6; size++) {
            for (int i = 0; i < 3; i++) {
                held[i] = bytes_tensor(sizes[size]);
            }
            for (int i = 0; i < 3; i++) {
                cadre_tensor_release(held[i]);
            }
        }
        if (round > 0) {
            assert_int_equal(system_calls(), before);
        }
    }
}

static void created_tensors_are_zero_also_in_used_memory(void **state)
{
    (void)state;
    const int64_t dims[] = {300};
    cadre_tensor_release(bytes_tensor(300));
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_U8, 1, dims, &tensor), CADRE_OK);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(((const char *)cadre_tensor_const_data(tensor))[i], 0);
    }
    cadre_tensor_release(tensor);
}

static void the_depot_keeps_no_more_than_its_limit(void **state)
{
    (void)state;
    cadre_tensor *held[40];
    tensor_memory_limit(TENSOR_MEMORY_HOST, 8 * MEBIBYTE);
    for (int i = 0; i < 40; i++) {
        held[i] = bytes_tensor(1000000);
    }
    for (int i = 0; i < 40; i++) {
        cadre_tensor_release(held[i]);
        assert_true(tensor_memory_counts(TENSOR_MEMORY_HOST).kept <= 8 * MEBIBYTE);
    }
    assert_true(tensor_memory_counts(TENSOR_MEMORY_HOST).kept > 6 * MEBIBYTE);

    /* A block beyond the limit is not kept, and does not push out kept ones. */
    uint64_t kept = tensor_memory_counts(TENSOR_MEMORY_HOST).kept;
    cadre_tensor_release(bytes_tensor(20000000));
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_HOST).kept, kept);

    tensor_memory_trim(TENSOR_MEMORY_HOST, 3 * MEBIBYTE);
    assert_true(tensor_memory_counts(TENSOR_MEMORY_HOST).kept <= 3 * MEBIBYTE);
    tensor_memory_limit(TENSOR_MEMORY_HOST, 0);
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_HOST).kept, 0);
    uint64_t gives = tensor_memory_counts(TENSOR_MEMORY_HOST).gives;
    cadre_tensor_release(bytes_tensor(10));
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_HOST).gives, gives + 1);
}

/* Sizes that are not allocated any more make room for those that are. */
static void what_is_stale_goes_first(void **state)
{
    (void)state;
    cadre_tensor *held[8];
    tensor_memory_limit(TENSOR_MEMORY_HOST, 8 * MEBIBYTE);
    for (int i = 0; i < 8; i++) {
        held[i] = bytes_tensor(900000);
    }
    for (int i = 0; i < 8; i++) {
        cadre_tensor_release(held[i]);
    }
    cadre_tensor_release(bytes_tensor(5000000));
    uint64_t before = system_calls();
    cadre_tensor_release(bytes_tensor(5000000));
    assert_int_equal(system_calls(), before);
}

/* Many small blocks at once pass from the magazine to the depot, and back. */
static void small_blocks_overflow_to_the_depot(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static cadre_tensor *held[COUNT];
    for (int round = 0; round < 3; round++) {
        uint64_t before = system_calls();
        for (int i = 0; i < COUNT; i++) {
            held[i] = bytes_tensor(i % 900);
        }
        for (int i = 0; i < COUNT; i++) {
            cadre_tensor_release(held[i]);
        }
        if (round > 0) {
            assert_int_equal(system_calls(), before);
        }
    }
    assert_true(tensor_memory_counts(TENSOR_MEMORY_HOST).kept > 0);
    tensor_memory_trim(TENSOR_MEMORY_HOST, 0);
    struct tensor_memory_counts counts = tensor_memory_counts(TENSOR_MEMORY_HOST);
    assert_int_equal(counts.kept, 0);
    assert_int_equal(counts.gets, counts.gives);
}

/* --- threads --- */

enum { RING = 64, PASSED = 20000, WORKERS = 3 };

struct passing {
    cadre_tensor *_Atomic ring[RING];
    _Atomic uint64_t seed;
};

/* Makes tensors and releases those that others made. */
static void *pass_tensors(void *argument)
{
    struct passing *passing = argument;
    struct prng prng = {.state = atomic_fetch_add(&passing->seed, 1)};
    for (int i = 0; i < PASSED; i++) {
        int64_t bytes = (int64_t)(prng_uniform(&prng, 8) * prng_uniform(&prng, 4000));
        struct cadre_error error = {0};
        cadre_tensor *tensor = NULL;
        if (tensor_create_unset(CADRE_U8, 1, &bytes, &tensor, &error) != CADRE_OK) {
            return argument;
        }
        memset(cadre_tensor_data(tensor), i, (size_t)bytes);
        cadre_tensor_release(atomic_exchange(&passing->ring[prng_uniform(&prng, RING)], tensor));
    }
    return NULL;
}

static void threads_pass_tensors_to_each_other(void **state)
{
    (void)state;
    struct passing passing = {.seed = 1};
    struct tensor_memory_counts before = tensor_memory_counts(TENSOR_MEMORY_HOST);
    for (int round = 0; round < 2; round++) {
        pthread_t threads[WORKERS];
        for (int i = 0; i < WORKERS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, pass_tensors, &passing), 0);
        }
        for (int i = 0; i < WORKERS; i++) {
            void *failed = NULL;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
    }
    for (int i = 0; i < RING; i++) {
        cadre_tensor_release(passing.ring[i]);
    }
    /* The threads have ended: what they kept is the depot's, and nothing is lost. */
    tensor_memory_trim(TENSOR_MEMORY_HOST, 0);
    struct tensor_memory_counts after = tensor_memory_counts(TENSOR_MEMORY_HOST);
    assert_int_equal(after.gets - before.gets, after.gives - before.gives);
    assert_true(after.gets - before.gets < PASSED);
}

static pthread_key_t late_key;

static void release_late(void *tensor)
{
    cadre_tensor_release(tensor);
    if (cadre_tensor_from_i64(1, (cadre_tensor **)&tensor) == CADRE_OK) {
        cadre_tensor_release(tensor);
    }
}

static void *hold_until_the_end(void *argument)
{
    (void)argument;
    pthread_setspecific(late_key, bytes_tensor(100));
    cadre_tensor_release(bytes_tensor(100));
    return NULL;
}

/* Another destructor of an ending thread may still release tensors, before or after ours. */
static void an_ending_thread_may_still_release(void **state)
{
    (void)state;
    struct tensor_memory_counts before = tensor_memory_counts(TENSOR_MEMORY_HOST);
    pthread_t thread;
    assert_int_equal(pthread_key_create(&late_key, release_late), 0);
    assert_int_equal(pthread_create(&thread, NULL, hold_until_the_end, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_key_delete(late_key);
    tensor_memory_trim(TENSOR_MEMORY_HOST, 0);
    struct tensor_memory_counts after = tensor_memory_counts(TENSOR_MEMORY_HOST);
    assert_int_equal(after.gets - before.gets, after.gives - before.gives);
}

/* --- kinds --- */

static size_t stand_in_live;
static bool stand_in_empty;

static void *standin_get(size_t bytes)
{
    void *memory = stand_in_empty ? NULL : aligned_alloc(CADRE_TENSOR_ALIGN, bytes);
    stand_in_live += memory != NULL ? bytes : 0;
    return memory;
}

static void standin_give(void *memory, size_t bytes)
{
    stand_in_live -= bytes;
    free(memory);
}

static const struct tensor_memory_ops stand_in = {
    .name = "stand-in", .get = standin_get, .give = standin_give};

static void a_kind_must_be_registered(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_tensor *tensor = NULL;
    const int64_t dims[] = {1000};
    assert_int_equal(tensor_create_kind(TENSOR_MEMORY_PINNED, CADRE_F32, 1, dims, &tensor, &error),
        CADRE_RESOURCE_EXHAUSTED);
    assert_null(tensor);
    assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_PINNED), TENSOR_MEMORY_HOST);
    assert_int_equal(tensor_memory_preferred(), TENSOR_MEMORY_HOST);
}

static void tensors_remember_their_kind(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    static const struct tensor_memory_ops another = {.name = "another"};
    cadre_tensor *tensor = NULL;
    cadre_tensor *view = NULL;
    const int64_t dims[] = {1000};
    ASSERT_OK(tensor_memory_register(TENSOR_MEMORY_PINNED, &stand_in, &error));
    ASSERT_OK(tensor_memory_register(TENSOR_MEMORY_PINNED, &stand_in, &error));
    assert_int_equal(
        tensor_memory_register(TENSOR_MEMORY_PINNED, &another, &error), CADRE_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, "stand-in"));
    tensor_memory_limit(TENSOR_MEMORY_PINNED, MEBIBYTE);

    ASSERT_OK(tensor_create_kind(TENSOR_MEMORY_PINNED, CADRE_F32, 1, dims, &tensor, &error));
    assert_int_equal(tensor_kind(tensor), TENSOR_MEMORY_PINNED);
    assert_true(stand_in_live >= 4000);
    ASSERT_OK(tensor_view_rows(tensor, 2, 3, &view, &error));
    assert_int_equal(tensor_kind(view), TENSOR_MEMORY_PINNED);
    cadre_tensor_release(tensor);
    cadre_tensor_release(view);
    assert_true(stand_in_live >= 4000);

    struct tensor_memory_counts counts = tensor_memory_counts(TENSOR_MEMORY_PINNED);
    assert_int_equal(counts.gets, 1);
    assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_PINNED), TENSOR_MEMORY_HOST);
    assert_int_equal(cadre_tensor_create(CADRE_F32, 1, dims, &tensor), CADRE_OK);
    assert_int_equal(tensor_memory_prefer(TENSOR_MEMORY_HOST), TENSOR_MEMORY_PINNED);
    assert_int_equal(tensor_kind(tensor), TENSOR_MEMORY_PINNED);
    assert_int_equal(tensor_memory_counts(TENSOR_MEMORY_PINNED).gets, 1);
    cadre_tensor_release(tensor);

    /* Full: kept blocks are freed before the second try; then there is an error. */
    const int64_t larger[] = {5000};
    stand_in_empty = true;
    assert_int_equal(
        tensor_create_kind(TENSOR_MEMORY_PINNED, CADRE_F32, 1, larger, &tensor, &error),
        CADRE_RESOURCE_EXHAUSTED);
    stand_in_empty = false;
    assert_int_equal(stand_in_live, 0);
    tensor_memory_limit(TENSOR_MEMORY_PINNED, 0);
}

/* --- strings, and failing --- */

static void strings_in_another_tensor(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const int64_t dims[] = {2};
    cadre_tensor *owner = bytes_tensor(100);
    memcpy(cadre_tensor_data(owner), "abcdef", 6);
    cadre_tensor *strings = NULL;
    cadre_tensor *view = NULL;
    ASSERT_OK(tensor_strings_in(owner, 1, dims, &strings, &error));
    cadre_string *elements = cadre_tensor_data(strings);
    const char *bytes = cadre_tensor_const_data(owner);
    elements[0] = (cadre_string){.bytes = bytes, .size = 2};
    elements[1] = (cadre_string){.bytes = bytes + 2, .size = 4};
    cadre_tensor_release(owner);
    ASSERT_OK(tensor_view_row(strings, 1, &view, &error));
    cadre_tensor_release(strings);
    const cadre_string *row = cadre_tensor_const_data(view);
    assert_int_equal(row->size, 4);
    assert_memory_equal(row->bytes, "cdef", 4);
    cadre_tensor *copy = NULL;
    ASSERT_OK(tensor_copy(view, &copy, &error));
    cadre_tensor_release(view);
    assert_memory_equal(((const cadre_string *)cadre_tensor_const_data(copy))->bytes, "cdef", 4);
    cadre_tensor_release(copy);
}

static void strings_filled_by_hand(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const int64_t dims[] = {2};
    cadre_tensor *strings = NULL;
    char *text = NULL;
    ASSERT_OK(tensor_strings_create(1, dims, 5, &strings, &text, &error));
    memcpy(text, "12345", 5);
    cadre_string *elements = cadre_tensor_data(strings);
    elements[0] = (cadre_string){.bytes = text, .size = 5};
    elements[1] = (cadre_string){.bytes = "", .size = 0};
    assert_int_equal(cadre_tensor_bytes(strings), 2 * sizeof(cadre_string));
    cadre_tensor_release(strings);
    assert_int_equal(tensor_strings_create(1, dims, SIZE_MAX / 2, &strings, &text, &error),
        CADRE_INVALID_ARGUMENT);
    assert_null(strings);
    assert_int_equal(tensor_strings_create(1, dims, SIZE_MAX / 8, &strings, &text, &error),
        CADRE_RESOURCE_EXHAUSTED);
    const int64_t bad[] = {-1};
    assert_int_equal(tensor_strings_in(NULL, 1, bad, &strings, &error), CADRE_INVALID_ARGUMENT);
}

static cadre_status make_all(struct cadre_error *error)
{
    cadre_tensor *made[6] = {0};
    const int64_t dims[] = {4};
    char *text = NULL;
    cadre_status status = tensor_create(CADRE_F32, 1, dims, &made[0], error);
    if (status == CADRE_OK) {
        status = tensor_view_rows(made[0], 1, 2, &made[1], error);
    }
    if (status == CADRE_OK) {
        status = tensor_strings_in(made[0], 0, NULL, &made[2], error);
    }
    if (status == CADRE_OK) {
        *(cadre_string *)cadre_tensor_data(made[2]) = (cadre_string){.bytes = "", .size = 0};
        status = tensor_copy(made[2], &made[3], error);
    }
    if (status == CADRE_OK) {
        status = tensor_stack(&made[2], 2, &made[4], error);
    }
    if (status == CADRE_OK) {
        status = tensor_strings_create(0, NULL, 10, &made[5], &text, error);
    }
    for (int i = 0; i < 6; i++) {
        assert_true(status != CADRE_OK || made[i] != NULL);
        cadre_tensor_release(made[i]);
    }
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    uint64_t failures = 0;
    for (uint64_t nth = 1;; nth++) {
        struct cadre_error error = {0};
        fault_arm("tensor.memory", nth);
        cadre_status status = make_all(&error);
        if (!fault_disarm()) {
            assert_int_equal(status, CADRE_OK);
            break;
        }
        assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        failures++;
    }
    assert_int_equal(failures, 6);
    tensor_memory_trim(TENSOR_MEMORY_HOST, 0);
    struct tensor_memory_counts counts = tensor_memory_counts(TENSOR_MEMORY_HOST);
    assert_int_equal(counts.gets, counts.gives);
}

#define MEMORY_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MEMORY_TEST(every_size_is_whole_and_aligned),
        MEMORY_TEST(what_is_given_back_is_used_again),
        MEMORY_TEST(created_tensors_are_zero_also_in_used_memory),
        MEMORY_TEST(the_depot_keeps_no_more_than_its_limit),
        MEMORY_TEST(what_is_stale_goes_first),
        MEMORY_TEST(small_blocks_overflow_to_the_depot),
        MEMORY_TEST(threads_pass_tensors_to_each_other),
        MEMORY_TEST(an_ending_thread_may_still_release),
        MEMORY_TEST(a_kind_must_be_registered),
        MEMORY_TEST(tensors_remember_their_kind),
        MEMORY_TEST(strings_in_another_tensor),
        MEMORY_TEST(strings_filled_by_hand),
        MEMORY_TEST(every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
