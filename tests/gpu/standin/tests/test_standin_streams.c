/* SPDX-License-Identifier: Apache-2.0
 * The stand-in's streams do their work in order and beside each other, events join them, and calls
 * fail when a test sets that. */
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/standin/standin.h"
#include "tests/gpu/standin/tests/kernels.h"
#include "tests/lib/test.h"

static cudaStream_t one;
static cudaStream_t two;
static uint32_t *device;
static uint32_t *pinned;

static int set_up(void **state)
{
    (void)state;
    return (int)cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking) +
           (int)cudaStreamCreateWithPriority(&two, cudaStreamNonBlocking, -1) +
           (int)cudaMalloc((void **)&device, 64) + (int)cudaHostAlloc((void **)&pinned, 64, 0);
}

static int tear_down(void **state)
{
    (void)state;
    return (int)cudaFree(device) + (int)cudaFreeHost(pinned) + (int)cudaStreamDestroy(one) +
           (int)cudaStreamDestroy(two);
}

static cudaError_t fetch_on(cudaStream_t stream)
{
    return cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream);
}

static void test_events_order_streams(void **state)
{
    (void)state;
    cudaEvent_t event = NULL;
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    assert_int_equal(cudaEventQuery(event), cudaSuccess); /* never recorded */
    *pinned = 0;
    standin_hold(one);
    assert_int_equal(launch_write(device, 0, 5, one), cudaSuccess);
    assert_int_equal(cudaEventRecord(event, one), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(two, event, 0), cudaSuccess);
    assert_int_equal(fetch_on(two), cudaSuccess);
    assert_int_equal(cudaStreamQuery(one), cudaErrorNotReady);
    assert_int_equal(cudaStreamQuery(two), cudaErrorNotReady);
    assert_int_equal(cudaEventQuery(event), cudaErrorNotReady);
    assert_int_equal(*pinned, 0);
    standin_release(one);
    assert_int_equal(cudaStreamSynchronize(two), cudaSuccess);
    assert_int_equal(*pinned, 5);
    assert_int_equal(cudaEventSynchronize(event), cudaSuccess);
    assert_int_equal(cudaEventDestroy(event), cudaSuccess);
}

/* Two that wait for the same held stream; the one that does not wait goes by. */
static void test_streams_pass_each_other(void **state)
{
    (void)state;
    standin_hold(one);
    assert_int_equal(launch_write(device, 0, 1, one), cudaSuccess);
    assert_int_equal(launch_write(device, 1, 2, two), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(two), cudaSuccess);
    assert_int_equal(cudaStreamQuery(one), cudaErrorNotReady);
    standin_release(one);
    assert_int_equal(cudaStreamSynchronize(one), cudaSuccess);
    standin_device_hold(0);
    assert_int_equal(launch_write(device, 0, 1, two), cudaSuccess);
    assert_int_equal(cudaStreamQuery(two), cudaErrorNotReady);
    standin_device_release(0);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
}

static void test_default_stream(void **state)
{
    (void)state;
    cudaStream_t blocking = NULL;
    assert_int_equal(cudaStreamCreate(&blocking), cudaSuccess);
    standin_hold(blocking);
    assert_int_equal(launch_write(device, 0, 9, blocking), cudaSuccess);
    assert_int_equal(fetch_on(NULL), cudaSuccess);
    assert_int_equal(cudaStreamQuery(NULL), cudaErrorNotReady); /* waits for it */
    assert_int_equal(fetch_on(two), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(two), cudaSuccess); /* does not */
    standin_release(blocking);
    assert_int_equal(cudaStreamSynchronize(NULL), cudaSuccess);
    assert_int_equal(*pinned, 9);
    standin_hold(NULL);
    assert_int_equal(launch_write(device, 0, 8, NULL), cudaSuccess);
    assert_int_equal(fetch_on(blocking), cudaSuccess);
    assert_int_equal(cudaStreamQuery(blocking), cudaErrorNotReady);
    standin_release(NULL);
    assert_int_equal(cudaStreamSynchronize(blocking), cudaSuccess);
    assert_int_equal(*pinned, 8);
    assert_int_equal(cudaStreamDestroy(blocking), cudaSuccess);
}

static void note(void *user)
{
    ++*(uint32_t *)user;
}

static void test_host_function_and_times(void **state)
{
    (void)state;
    cudaEvent_t begin = NULL;
    cudaEvent_t end = NULL;
    float ms = -1;
    uint32_t count = 0;
    assert_int_equal(cudaEventCreate(&begin), cudaSuccess);
    assert_int_equal(cudaEventCreate(&end), cudaSuccess);
    assert_int_equal(cudaEventRecord(begin, one), cudaSuccess);
    assert_int_equal(cudaLaunchHostFunc(one, note, &count), cudaSuccess);
    assert_int_equal(cudaEventRecord(end, one), cudaSuccess);
    assert_int_equal(cudaEventSynchronize(end), cudaSuccess);
    assert_int_equal(count, 1);
    assert_int_equal(cudaEventElapsedTime(&ms, begin, end), cudaSuccess);
    assert_true(ms >= 0);
    assert_int_equal(cudaEventDestroy(begin), cudaSuccess);
    assert_int_equal(cudaEventDestroy(end), cudaSuccess);
}

/* The queue is done though the stream was destroyed. */
static void test_destroyed_with_work(void **state)
{
    (void)state;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreate(&event), cudaSuccess);
    assert_int_equal(launch_write(device, 0, 31, stream), cudaSuccess);
    assert_int_equal(cudaEventRecord(event, stream), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    assert_int_equal(cudaStreamWaitEvent(one, event, 0), cudaSuccess);
    assert_int_equal(fetch_on(one), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(one), cudaSuccess);
    assert_int_equal(*pinned, 31);
    assert_int_equal(cudaEventDestroy(event), cudaSuccess);
}

static void test_calls_that_fail(void **state)
{
    (void)state;
    void *memory = NULL;
    uint64_t before = standin_calls("cudaMallocAsync");
    standin_fail("cudaMallocAsync", 2, cudaErrorMemoryAllocation);
    assert_int_equal(cudaMallocAsync(&memory, 16, one), cudaSuccess);
    void *refused = NULL;
    assert_int_equal(cudaMallocAsync(&refused, 16, one), cudaErrorMemoryAllocation);
    assert_string_equal(cudaGetErrorName(cudaGetLastError()), "cudaErrorMemoryAllocation");
    assert_int_equal(cudaFreeAsync(memory, one), cudaSuccess);
    assert_int_equal(standin_calls("cudaMallocAsync"), before + 2);
    standin_fail("kernel", 1, cudaErrorECCUncorrectable);
    assert_int_equal(launch_write(device, 0, 1, one), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(one), cudaErrorECCUncorrectable);
    assert_int_equal(fetch_on(two), cudaErrorECCUncorrectable); /* all of the device */
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess); /* and not the other one */
    assert_int_equal(cudaSetDevice(0), cudaErrorECCUncorrectable);
    standin_heal();
    standin_fail_from("cudaStreamQuery", 2, cudaErrorUnknown);
    assert_int_equal(cudaStreamQuery(one), cudaSuccess);
    assert_int_equal(cudaStreamQuery(one), cudaErrorUnknown);
    assert_int_equal(cudaStreamQuery(one), cudaErrorUnknown);
    standin_heal();
    assert_int_equal(cudaStreamQuery(one), cudaSuccess);
}

static void test_devices(void **state)
{
    (void)state;
    int count = 0;
    char bus[16];
    struct cudaDeviceProp prop;
    assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
    assert_int_equal(count, 2); /* of 4, by CUDA_VISIBLE_DEVICES */
    assert_int_equal(cudaGetDeviceProperties(&prop, 0), cudaSuccess);
    assert_string_equal(prop.name, "stand-in device 3");
    assert_int_equal(cudaGetDeviceProperties(&prop, 1), cudaSuccess);
    assert_string_equal(prop.name, "stand-in device 1");
    assert_int_equal(cudaDeviceGetPCIBusId(bus, sizeof(bus), 1), cudaSuccess);
    assert_string_equal(bus, "0000:02:00.0");
    assert_int_equal(cudaSetDevice(2), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_order_streams),
        cmocka_unit_test(test_streams_pass_each_other),
        cmocka_unit_test(test_default_stream),
        cmocka_unit_test(test_host_function_and_times),
        cmocka_unit_test(test_destroyed_with_work),
        cmocka_unit_test(test_calls_that_fail),
        cmocka_unit_test(test_devices),
    };
    (void)setenv("CADRE_STANDIN_DEVICES", "4", 1);
    (void)setenv("CUDA_VISIBLE_DEVICES", "3,GPU-57a2d100-0000-4000-8000-000000000001,7,0", 1);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
