/* SPDX-License-Identifier: Apache-2.0
 * The stand-in runs kernels as CUDA would: threads of a block synchronize, warps exchange values,
 * blocks add up; and a kernel that fails is reported. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/standin/standin.h"
#include "tests/gpu/standin/tests/kernels.h"
#include "tests/lib/test.h"

#define COUNT 10007

static cudaStream_t stream;

static int set_up(void **state)
{
    (void)state;
    return (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

static int tear_down(void **state)
{
    (void)state;
    standin_heal();
    return (int)cudaStreamDestroy(stream);
}

static void *get(size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(cudaMallocAsync(&memory, bytes, stream), cudaSuccess);
    return memory;
}

static void give(void *memory)
{
    assert_int_equal(cudaFreeAsync(memory, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

static void fetch(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

static void test_more_elements_than_threads(void **state)
{
    (void)state;
    float host[COUNT];
    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)i;
    }
    float *from = get(sizeof(host));
    float *to = get(sizeof(host));
    assert_int_equal(
        cudaMemcpyAsync(from, host, sizeof(host), cudaMemcpyHostToDevice, stream), cudaSuccess);
    assert_int_equal(cudaMemsetAsync(to, 0, sizeof(host), stream), cudaSuccess);
    assert_int_equal(launch_add(to, from, 2, COUNT, stream), cudaSuccess);
    assert_int_equal(launch_add(to, from, 1, COUNT, stream), cudaSuccess);
    memset(host, 0, sizeof(host));
    fetch(host, to, sizeof(host));
    for (int i = 0; i < COUNT; i++) {
        assert_true(host[i] == 3.0f * (float)i);
    }
    give(from);
    give(to);
}

static void test_sums_of_blocks(void **state)
{
    (void)state;
    float host[COUNT];
    float sum = 0;
    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)(i % 7);
        sum += host[i];
    }
    float *from = get(sizeof(host));
    float *to = get(sizeof(float));
    assert_int_equal(
        cudaMemcpyAsync(from, host, sizeof(host), cudaMemcpyHostToDevice, stream), cudaSuccess);
    static const unsigned int sizes[] = {32, 64, 256, 1024};
    for (size_t i = 0; i < 4; i++) {
        float got = 0;
        assert_int_equal(cudaMemsetAsync(to, 0, sizeof(float), stream), cudaSuccess);
        assert_int_equal(launch_sum(to, from, COUNT, sizes[i], stream), cudaSuccess);
        fetch(&got, to, sizeof(got));
        assert_true(got == sum);
    }
    give(from);
    give(to);
}

static void test_shuffles(void **state)
{
    (void)state;
    uint32_t rows[200];
    uint32_t *device = get(sizeof(rows));
    assert_int_equal(launch_shuffles(device, stream), cudaSuccess);
    fetch(rows, device, sizeof(rows));
    for (uint32_t lane = 0; lane < 32; lane++) {
        assert_int_equal(rows[lane], (lane < 3 ? lane : lane - 3) * 10);
        assert_int_equal(rows[32 + lane], (lane > 28 ? lane : lane + 3) * 10);
        assert_int_equal(rows[64 + lane], (lane ^ 1) * 10);
        assert_int_equal(rows[96 + lane], 50);
        assert_int_equal(rows[128 + lane], lane < 16 ? 10 : 170);
        assert_int_equal(rows[160 + lane], 0xaaaaaaaa);
    }
    for (uint32_t lane = 0; lane < 8; lane++) {
        assert_int_equal(rows[192 + lane], (lane ^ 7) * 10);
    }
    give(device);
}

/* What a block of real threads would compute: those that left show their last value for ever. */
static void test_rounds_of_a_block(void **state)
{
    (void)state;
    enum { THREADS = 100, ROUNDS = 5 };
    uint32_t got[THREADS];
    uint32_t *device = get(sizeof(got));
    assert_int_equal(launch_rounds(device, ROUNDS, THREADS, stream), cudaSuccess);
    fetch(got, device, sizeof(got));
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t rounds = i % 2 == 1 ? 1 : ROUNDS;
        assert_int_equal(got[i], (i + 2 * rounds) % THREADS + rounds);
    }
    give(device);
}

static void test_places_of_threads(void **state)
{
    (void)state;
    uint32_t places[12 * 16];
    uint32_t *device = get(sizeof(places));
    assert_int_equal(launch_indices(device, stream), cudaSuccess);
    fetch(places, device, sizeof(places));
    for (uint32_t i = 0; i < 12 * 16; i++) {
        assert_int_equal(places[i], i / 16 * 100 + i % 16);
    }
    give(device);
}

static void test_threads_that_wait_for_ever(void **state)
{
    (void)state;
    assert_int_equal(launch_stuck(stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorLaunchTimeout);
    standin_heal();
    uint32_t *device = get(4);
    uint32_t got = 0;
    assert_int_equal(launch_write(device, 0, 7, stream), cudaSuccess); /* and it goes on */
    fetch(&got, device, 4);
    assert_int_equal(got, 7);
    give(device);
}

static void test_kernel_out_of_bounds(void **state)
{
    (void)state;
    uint32_t *device = get(1024);
    assert_int_equal(launch_write(device, 256, 1, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    assert_int_equal(cudaStreamQuery(stream), cudaErrorIllegalAddress); /* it stays */
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
    standin_heal();
    give(device);
    assert_int_equal(launch_write(device, 0, 1, stream), cudaSuccess); /* after it was freed */
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    standin_heal();
}

static void test_kernel_elsewhere(void **state)
{
    (void)state;
    cudaStream_t other = NULL;
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(launch_stuck(other), cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamDestroy(other), cudaSuccess);
}

static void test_half_widths(void **state)
{
    (void)state;
    static const struct {
        float value;
        uint16_t bf16, half;
    } rows[] = {{1, 0x3f80, 0x3c00}, {-2.5f, 0xc020, 0xc100}, {0, 0, 0},
        {1.00390625f, 0x3f80, 0x3c04}, {1.01171875f, 0x3f82, 0x3c0c}, {65504, 0x4780, 0x7bff},
        {65519.996f, 0x4780, 0x7bff}, {65520, 0x4780, 0x7c00}, {0x1p-24f, 0x3380, 1},
        {0x1p-25f, 0x3300, 0}, {0x1.8p-24f, 0x33c0, 2}, {0x1p-14f, 0x3880, 0x400},
        {INFINITY, 0x7f80, 0x7c00}, {0x1.fffffep127f, 0x7f80, 0x7c00}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint16_t bits = 0;
        float back = 0;
        convert_bf16(rows[i].value, &bits, &back);
        assert_int_equal(bits, rows[i].bf16);
        convert_half(rows[i].value, &bits, &back);
        assert_int_equal(bits, rows[i].half);
    }
    for (uint32_t bits = 0; bits < 0x7c00; bits++) { /* all of them come back as they were */
        uint16_t got = 0;
        float value = bits < 0x400
                          ? (float)bits * 0x1p-24f
                          : ldexpf((float)(0x400 | (bits & 0x3ff)), (int)(bits >> 10) - 25);
        float back = 0;
        convert_half(value, &got, &back);
        assert_int_equal(got, bits);
        assert_true(back == value);
    }
    uint16_t bits = 0;
    float back = 0;
    convert_bf16(NAN, &bits, &back);
    assert_true(isnan(back));
    convert_half(NAN, &bits, &back);
    assert_true(isnan(back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_elements_than_threads),
        cmocka_unit_test(test_sums_of_blocks),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_rounds_of_a_block),
        cmocka_unit_test(test_places_of_threads),
        cmocka_unit_test(test_threads_that_wait_for_ever),
        cmocka_unit_test(test_kernel_out_of_bounds),
        cmocka_unit_test(test_kernel_elsewhere),
        cmocka_unit_test(test_half_widths),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
