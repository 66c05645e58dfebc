/* SPDX-License-Identifier: Apache-2.0
 * The stand-in guards a device's memory: the host cannot touch it, copies stay within blocks,
 * accesses to freed memory fail. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/gpu/standin/standin.h"
#include "tests/gpu/standin/tests/kernels.h"
#include "tests/lib/test.h"

#define SURVIVED 42

/* Runs first: the child has no thread of CUDA's from before. */
static void test_host_cannot_read(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        volatile float *device = NULL;
        (void)signal(SIGSEGV, SIG_DFL);
        if (freopen("/dev/null", "w", stderr) == NULL ||
            cudaMalloc((void **)(uintptr_t)&device, 4096) != cudaSuccess ||
            launch_write((uint32_t *)(uintptr_t)device, 3, 1, NULL) != cudaSuccess ||
            cudaDeviceSynchronize() != cudaSuccess) {
            _exit(SURVIVED + 1);
        }
        float read = device[3]; /* the kernel is over: this dies */
        _exit(read > 0 ? SURVIVED : SURVIVED + 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void test_new_memory_has_a_pattern(void **state)
{
    (void)state;
    unsigned char host[1000] = {0};
    void *device = NULL;
    size_t blocks = standin_memory_blocks(0);
    assert_int_equal(cudaMalloc(&device, sizeof(host)), cudaSuccess);
    assert_int_equal((uintptr_t)device % 256, 0);
    assert_int_equal(standin_memory_blocks(0), blocks + 1);
    assert_int_equal(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost), cudaSuccess);
    for (size_t i = 0; i < sizeof(host); i++) {
        assert_int_equal(host[i], 0xcb);
    }
    assert_int_equal(cudaFree(device), cudaSuccess);
    assert_int_equal(standin_memory_blocks(0), blocks);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    size_t left = 0;
    size_t total = 0;
    void *most = NULL;
    void *more = NULL;
    cudaStream_t stream = NULL;
    assert_int_equal(cudaStreamCreate(&stream), cudaSuccess);
    assert_int_equal(cudaMemGetInfo(&left, &total), cudaSuccess);
    assert_int_equal(total, 8 << 20);
    assert_int_equal(left, total);
    assert_int_equal(cudaMallocAsync(&most, (size_t)6 << 20, stream), cudaSuccess);
    assert_int_equal(cudaMalloc(&more, (size_t)3 << 20), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess); /* it does not stay */
    assert_int_equal(cudaFreeAsync(most, stream), cudaSuccess);
    assert_int_equal(cudaMallocAsync(&more, (size_t)3 << 20, stream), cudaSuccess);
    assert_int_equal(cudaFreeAsync(more, stream), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(standin_memory_used(0), 0);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
}

static void test_copies_stay_within_blocks(void **state)
{
    (void)state;
    char host[600];
    char *device = NULL;
    memset(host, 1, sizeof(host));
    assert_int_equal(cudaMalloc((void **)&device, 512), cudaSuccess);
    assert_int_equal(cudaMemcpy(device, host, 512, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(
        cudaMemcpy(device, host, 513, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    standin_heal();
    assert_int_equal(
        cudaMemcpy(host, device + 100, 413, cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
    standin_heal();
    assert_int_equal(cudaMemset(device + 511, 0, 2), cudaErrorIllegalAddress);
    standin_heal();
    assert_int_equal(cudaMemcpy(host, device, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(host, device + 100, 412, cudaMemcpyDefault), cudaSuccess);
    assert_int_equal(cudaFree(device), cudaSuccess);
    assert_int_equal(cudaMemcpy(host, device, 4, cudaMemcpyDefault), cudaErrorIllegalAddress);
    standin_heal();
    assert_int_equal(cudaFree(device), cudaErrorInvalidValue);
    standin_heal();
}

/* Between the end of a block and the next 256 bytes no page ends. */
static void test_writes_beside_a_block(void **state)
{
    (void)state;
    uint32_t *device = NULL;
    assert_int_equal(cudaMalloc((void **)&device, 1000), cudaSuccess);
    assert_int_equal(launch_write(device, 251, 1, NULL), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
    assert_int_equal(cudaFree(device), cudaSuccess);
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    standin_heal();
}

static void test_between_devices(void **state)
{
    (void)state;
    uint32_t there = 17;
    uint32_t got = 0;
    void *here = NULL;
    void *away = NULL;
    assert_int_equal(cudaMalloc(&here, 4), cudaSuccess);
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaMalloc(&away, 4), cudaSuccess);
    assert_int_equal(cudaMemcpy(away, &there, 4, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(cudaSetDevice(0), cudaSuccess);
    assert_int_equal(cudaMemcpyPeerAsync(here, 0, away, 1, 4, NULL), cudaSuccess);
    assert_int_equal(cudaMemcpy(&got, here, 4, cudaMemcpyDeviceToHost), cudaSuccess);
    assert_int_equal(got, 17);
    struct cudaPointerAttributes attributes;
    assert_int_equal(cudaPointerGetAttributes(&attributes, away), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(attributes.device, 1);
    assert_int_equal(launch_write(away, 0, 1, NULL), cudaSuccess); /* a kernel does not reach it */
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    standin_heal();
    assert_int_equal(cudaFree(here), cudaSuccess);
    assert_int_equal(cudaFree(away), cudaSuccess);
}

static void test_pinned(void **state)
{
    (void)state;
    struct cudaPointerAttributes attributes;
    void *pinned = NULL;
    char own[64];
    assert_int_equal(cudaHostAlloc(&pinned, 100, cudaHostAllocPortable), cudaSuccess);
    assert_int_equal(cudaHostRegister(own, sizeof(own), cudaHostRegisterDefault), cudaSuccess);
    assert_int_equal(cudaHostRegister(own, sizeof(own), cudaHostRegisterDefault),
        cudaErrorHostMemoryAlreadyRegistered);
    assert_int_equal(standin_pinned_blocks(), 2);
    assert_int_equal(cudaPointerGetAttributes(&attributes, (char *)pinned + 99), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeHost);
    assert_int_equal(cudaPointerGetAttributes(&attributes, &attributes), cudaSuccess);
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    assert_int_equal(cudaHostUnregister(own), cudaSuccess);
    assert_int_equal(cudaFreeHost(pinned), cudaSuccess);
    assert_int_equal(cudaFreeHost(pinned), cudaErrorInvalidValue);
    assert_int_equal(standin_pinned_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_cannot_read),
        cmocka_unit_test(test_new_memory_has_a_pattern),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_copies_stay_within_blocks),
        cmocka_unit_test(test_writes_beside_a_block),
        cmocka_unit_test(test_between_devices),
        cmocka_unit_test(test_pinned),
    };
    (void)setenv("CADRE_STANDIN_MEMORY", "8M", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
