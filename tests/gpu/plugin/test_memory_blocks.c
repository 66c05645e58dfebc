/* SPDX-License-Identifier: Apache-2.0
 * Memory of a device without pools, which the stand-in can imitate: blocks are used again, in
 * order. */
#include "plugin.h"
#include "tests/gpu/standin/standin.h"

#define BYTES ((size_t)100000)

static void test_blocks_are_used_again(void **state)
{
    (void)state;
    void *stream = stream_of(0);
    void *first = memory_of(0, BYTES, stream);
    size_t used = standin_memory_blocks(0);
    for (size_t i = 0; i < 20; i++) {
        ops->memory_give(0, first, stream);
        assert_ptr_equal(memory_of(0, BYTES - i, stream), first); /* rounded to the same size */
    }
    assert_int_equal(standin_memory_blocks(0), used);
    void *second = memory_of(0, BYTES, stream); /* the first one is not free */
    assert_ptr_not_equal(second, first);
    ops->memory_give(0, first, stream);
    ops->memory_give(0, second, stream);
    ops->stream_close(stream);
}

/* A block that another stream still uses: its next user waits for that, on the device. */
static void test_another_stream_waits(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    unsigned char in = 0;
    void *giver = stream_of(0);
    void *taker = stream_of(0);
    void *memory = memory_of(0, 7 * BYTES, giver);
    standin_hold(giver);
    assert_ok(ops->fill(memory, 1, BYTES, giver, &error), &error);
    ops->memory_give(0, memory, giver);
    assert_ptr_equal(memory_of(0, 7 * BYTES, taker), memory);
    assert_ok(ops->fill(memory, 2, BYTES, taker, &error), &error);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(ops->stream_test(taker, &error), CADRE_PENDING);
    }
    standin_release(giver);
    settle(taker);
    settle(giver);
    download(&in, memory, 1, taker);
    assert_int_equal(in, 2);
    ops->memory_give(0, memory, taker);
    ops->stream_close(giver);
    ops->stream_close(taker);
}

static void test_kept_blocks_go_back_before_memory_is_short(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    void *memory = memory_of(0, 3 * BYTES, stream);
    ops->memory_give(0, memory, stream);
    settle(stream);
    standin_fail("cudaMalloc", 1, cudaErrorMemoryAllocation);
    memory = memory_of(0, 9 * BYTES, stream); /* at the second try */
    assert_int_equal(standin_memory_blocks(0), 1);
    standin_fail_from("cudaMalloc", 1, cudaErrorMemoryAllocation);
    void *none = NULL;
    assert_error(ops->memory_get(0, 11 * BYTES, stream, &none, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "no memory of 1100000 bytes");
    assert_null(none);
    standin_heal();
    ops->memory_give(0, memory, stream);
    ops->stream_close(stream);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_used_again),
        cmocka_unit_test(test_another_stream_waits),
        cmocka_unit_test(test_kept_blocks_go_back_before_memory_is_short),
    };
    plugin_open_with_devices(argc, argv);
    standin_fail_from("cudaDeviceGetDefaultMemPool", 1, cudaErrorNotSupported);
    void *stream = stream_of(0);
    ops->memory_give(0, memory_of(0, 1, stream), stream); /* here it is found out, for ever */
    settle(stream);
    ops->stream_close(stream);
    standin_heal();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
