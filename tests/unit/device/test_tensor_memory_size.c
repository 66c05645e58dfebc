/* SPDX-License-Identifier: Apache-2.0
 * The memory of tensors: how sizes are rounded up, what is kept, and that freed blocks are used
 * again. */
#include "tests/unit/input/cmocka_unit.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cadre/tensor.h"
#include "worker/library/device/tensor_memory.h"

/* Sanitizers need address space of their own, which a limit takes from them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_ARE_BEARABLE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LIMITS_ARE_BEARABLE 0
#endif
#endif
#ifndef LIMITS_ARE_BEARABLE
#define LIMITS_ARE_BEARABLE 1
#endif

static size_t asked;

static void *noting_get(size_t bytes)
{
    asked = bytes;
    return malloc(1);
}

static void noting_give(void *memory, size_t bytes)
{
    assert_int_equal(bytes, asked);
    free(memory);
}

static void sizes_are_rounded_up_by_little(void **state)
{
    (void)state;
    static const struct tensor_memory_ops noting = {
        .name = "noting", .get = noting_get, .give = noting_give};
    struct cadre_error error = {0};
    assert_int_equal(tensor_memory_register(TENSOR_MEMORY_PINNED, &noting, &error), CADRE_OK);
    tensor_memory_limit(TENSOR_MEMORY_PINNED, 0);
    for (size_t power = 0; power <= 40; power++) {
        for (size_t part = 0; part < 64; part++) {
            size_t bytes = ((size_t)1 << power) + (((size_t)part << power) >> 6) + part % 3;
            if (bytes > TENSOR_MEMORY_BYTES_MAX) {
                continue;
            }
            void *memory = tensor_memory_get(TENSOR_MEMORY_PINNED, bytes);
            assert_non_null(memory);
            size_t most = bytes <= 512       ? bytes + 128
                          : bytes <= 1 << 16 ? bytes + bytes / 4
                                             : bytes + bytes / 8;
            assert_true(asked >= bytes && asked <= most);
            assert_int_equal(asked % CADRE_TENSOR_ALIGN, 0);
            tensor_memory_give(TENSOR_MEMORY_PINNED, memory, bytes);
        }
    }
}

/* A heap that holes of the very size cannot fill again grows with every epoch. */
static void holes_are_filled_again(void **state)
{
    (void)state;
    enum { BLOCKS = 400 };
    static void *blocks[BLOCKS];
    const size_t bytes = 100000;
    tensor_memory_limit(TENSOR_MEMORY_HOST, 0);
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % CADRE_TENSOR_ALIGN, 0);
    }
    size_t before = mallinfo2().arena;
    for (size_t i = 0; i + 1 < BLOCKS; i += 2) {
        tensor_memory_give(TENSOR_MEMORY_HOST, blocks[i], bytes);
    }
    for (size_t i = 0; i + 1 < BLOCKS; i += 2) {
        blocks[i] = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
        assert_non_null(blocks[i]);
    }
    assert_true(mallinfo2().arena <= before + 10 * bytes);
    for (size_t i = 0; i < BLOCKS; i++) {
        tensor_memory_give(TENSOR_MEMORY_HOST, blocks[i], bytes);
    }
}

/* In a process of its own, whose memory is limited before the first tensor. */
static int keep_in_little_memory(void)
{
    enum { BLOCKS = 64 };
    static void *blocks[BLOCKS];
    const size_t bytes = (size_t)1 << 20;
    const struct rlimit limit = {.rlim_cur = (rlim_t)256 << 20, .rlim_max = (rlim_t)256 << 20};
    if (setrlimit(RLIMIT_DATA, &limit) != 0) {
        return 1;
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = tensor_memory_get(TENSOR_MEMORY_HOST, bytes);
        if (blocks[i] == NULL) {
            return 2;
        }
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        tensor_memory_give(TENSOR_MEMORY_HOST, blocks[i], bytes);
    }
    return tensor_memory_counts(TENSOR_MEMORY_HOST).kept <= (uint64_t)16 << 20 ? 0 : 3;
}

/* A group of processes, or one, may have less memory than the machine. */
static void what_is_kept_follows_the_limits_of_the_process(void **state)
{
    (void)state;
    int how = 0;
    if (!LIMITS_ARE_BEARABLE) {
        skip();
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(keep_in_little_memory());
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, before the memory was measured. */
        cmocka_unit_test(what_is_kept_follows_the_limits_of_the_process),
        cmocka_unit_test(sizes_are_rounded_up_by_little),
        cmocka_unit_test(holes_are_filled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
