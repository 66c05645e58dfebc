/* SPDX-License-Identifier: Apache-2.0
 * The arena: blocks are apart and aligned, another mapping of the file has them at their offset, a
 * freed block costs no memory, the file's size is fixed, and a forked child has none. */
#include "worker/library/arena/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"

#define MEBIBYTE ((size_t)1 << 20)

/* Memory that the file has now. */
static uint64_t resident(void)
{
    struct stat status;
    assert_int_equal(fstat(arena_fd(), &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

static void test_before_it_is_open(void **state)
{
    (void)state;
    int local = 0;
    uint64_t offset = 0;
    assert_null(arena_get(100));
    assert_false(arena_locate(&local, sizeof local, &offset));
    assert_int_equal(arena_fd(), -1);
    assert_int_equal(arena_bytes(), 0);
    struct cadre_error error;
    assert_ok(arena_open(&error), &error);
    assert_ok(arena_open(&error), &error);
    assert_true(arena_fd() >= 0);
    assert_true(arena_bytes() >= 64 * MEBIBYTE);
    assert_false(arena_locate(&local, sizeof local, &offset));
}

static void test_no_process_can_resize_it(void **state)
{
    (void)state;
    assert_int_equal(ftruncate(arena_fd(), 4096), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(arena_fd(), (off_t)arena_bytes() * 2), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(fcntl(arena_fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    assert_int_equal(errno, EPERM);
    assert_true((fcntl(arena_fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

static void test_every_size_is_whole_and_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 63, 64, 65, 127, 4095, 4096, 4097, 65535, 65536, 65537,
        100000, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 10 * MEBIBYTE};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    unsigned char *blocks[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        blocks[i] = arena_get(sizes[i]);
        assert_non_null(blocks[i]);
        size_t align = sizes[i] < ARENA_PAGED_BYTES ? ARENA_ALIGN : ARENA_PAGE;
        assert_int_equal((uintptr_t)blocks[i] % align, 0);
        memset(blocks[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t at = 0; at < sizes[i]; at++) {
            assert_int_equal(blocks[i][at], i + 1);
        }
        arena_give(blocks[i], sizes[i]);
    }
    assert_null(arena_get((size_t)arena_bytes() + 1));
    assert_null(arena_get(SIZE_MAX));
}

static void test_another_mapping_sees_it(void **state)
{
    (void)state;
    char *mapped = mmap(
        NULL, arena_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena_fd(), 0);
    assert_true(mapped != MAP_FAILED);
    static const size_t sizes[] = {200, 3 * MEBIBYTE};
    for (size_t i = 0; i < 2; i++) {
        char *block = arena_get(sizes[i]);
        uint64_t offset = UINT64_MAX;
        assert_true(arena_locate(block, sizes[i], &offset));
        memset(block, 'a', sizes[i]);
        assert_memory_equal(mapped + offset, block, sizes[i]);
        mapped[offset + sizes[i] - 1] = 'z';
        assert_int_equal(block[sizes[i] - 1], 'z');
        uint64_t within = 0;
        assert_true(arena_locate(block + 10, 0, &within));
        assert_int_equal(within, offset + 10);
        arena_give(block, sizes[i]);
    }
    char *block = arena_get(100);
    uint64_t offset = 0;
    assert_true(arena_locate(block, 100, &offset));
    assert_true(arena_locate(block, arena_bytes() - offset, &offset));
    assert_false(arena_locate(block, arena_bytes() - offset + 1, &offset));
    assert_false(arena_locate(block, SIZE_MAX, &offset));
    assert_false(arena_locate(block - offset - 1, 1, &offset));
    arena_give(block, 100);
    munmap(mapped, arena_bytes());
}

static void test_what_is_given_back_costs_nothing(void **state)
{
    (void)state;
    enum { SMALL = 2000 };
    static void *small[SMALL];
    uint64_t before = resident();
    char *large = arena_get(32 * MEBIBYTE);
    memset(large, 1, 32 * MEBIBYTE);
    for (size_t i = 0; i < SMALL; i++) {
        small[i] = arena_get(10000);
        memset(small[i], 1, 10000);
    }
    assert_true(resident() >= before + 50 * MEBIBYTE);
    arena_give(large, 32 * MEBIBYTE);
    for (size_t i = 0; i < SMALL; i++) {
        arena_give(small[i * 7 % SMALL], 10000);
    }
    assert_true(resident() <= before + 2 * MEBIBYTE);
    /* The same address space serves again, as zeros. */
    char *again = arena_get(32 * MEBIBYTE);
    assert_true(again <= large);
    assert_int_equal(again[0] | again[20 * MEBIBYTE] | again[32 * MEBIBYTE - 1], 0);
    arena_give(again, 32 * MEBIBYTE);
}

/* --- threads --- */

enum { THREADS = 4, HELD = 64, ROUNDS = 4000 };

static void *get_and_give(void *argument)
{
    struct prng prng = {.state = (uint64_t)(uintptr_t)argument};
    struct {
        uint64_t *block;
        size_t bytes;
    } held[HELD] = {0};
    bool whole = true;
    for (int round = 0; round < ROUNDS + HELD; round++) {
        size_t i = round < ROUNDS ? prng_uniform(&prng, HELD) : (size_t)(round - ROUNDS);
        if (held[i].block != NULL) {
            uint64_t mine = (uint64_t)(uintptr_t)held[i].block ^ held[i].bytes;
            whole =
                whole && held[i].block[0] == mine && held[i].block[held[i].bytes / 8 - 1] == mine;
            arena_give(held[i].block, held[i].bytes);
            held[i].block = NULL;
        } else if (round < ROUNDS) {
            held[i].bytes =
                (16 + prng_uniform(&prng, prng_chance(&prng, 1, 8) ? 300000 : 3000)) & ~7u;
            held[i].block = arena_get(held[i].bytes);
            if (held[i].block == NULL) {
                return "no memory";
            }
            uint64_t mine = (uint64_t)(uintptr_t)held[i].block ^ held[i].bytes;
            held[i].block[0] = mine;
            held[i].block[held[i].bytes / 8 - 1] = mine;
        }
    }
    return whole ? NULL : "a block was not this thread's alone";
}

static void test_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint64_t before = resident();
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, get_and_give, (void *)(i + 1)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *trouble = NULL;
        assert_int_equal(pthread_join(threads[i], &trouble), 0);
        assert_null(trouble);
    }
    assert_true(resident() <= before + 2 * MEBIBYTE);
}

/* --- failing --- */

static void test_pages_that_are_not_there(void **state)
{
    (void)state;
    static const size_t sizes[] = {30000, MEBIBYTE};
    void *filler[64];
    size_t fillers = 0;
    uint64_t before = resident();
    for (size_t i = 0; i < 2; i++) {
        fault_arm("arena.fill", 1);
        void *block = arena_get(sizes[i]);
        while (block != NULL && fillers < 64) { /* as long as a chunk has room */
            filler[fillers++] = block;
            block = arena_get(sizes[i]);
        }
        assert_null(block);
        assert_true(fault_disarm());
        block = arena_get(sizes[i]);
        assert_non_null(block);
        arena_give(block, sizes[i]);
    }
    while (fillers > 0) {
        arena_give(filler[--fillers], sizes[0]);
    }
    assert_true(resident() <= before + 2 * MEBIBYTE);
}

/* --- fork --- */

static int without_an_arena(const char *block)
{
    struct cadre_error error;
    uint64_t offset = 0;
    if (arena_open(&error) != CADRE_UNAVAILABLE || strstr(error.text, "forked") == NULL) {
        return 1;
    }
    if (arena_get(100) != NULL || arena_fd() != -1 || arena_bytes() != 0) {
        return 2;
    }
    return arena_locate(block, 1, &offset) ? 3 : 0;
}

static void test_a_forked_child_has_none(void **state)
{
    (void)state;
    char *block = arena_get(100);
    block[0] = 'p';
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(without_an_arena(block));
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)block = 'c';
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGSEGV);
    assert_int_equal(block[0], 'p');
    arena_give(block, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_it_is_open),
        cmocka_unit_test(test_no_process_can_resize_it),
        cmocka_unit_test(test_every_size_is_whole_and_aligned),
        cmocka_unit_test(test_another_mapping_sees_it),
        cmocka_unit_test(test_what_is_given_back_costs_nothing),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_pages_that_are_not_there),
        cmocka_unit_test(test_a_forked_child_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
