/* SPDX-License-Identifier: Apache-2.0
 * The stand-in's matrix products against the definition, in all orientations and types. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cublas_v2.h"
#include "standin_numbers.h"
#include "tests/gpu/standin/standin.h"
#include "tests/lib/test.h"

#define M     70
#define N     9
#define K     33
#define LD    80
#define BATCH 2
#define CELLS (LD * LD)

static cublasHandle_t handle;
static cudaStream_t stream;
static void *a, *b, *c;

static int set_up(void **state)
{
    (void)state;
    return (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) +
           (int)cublasCreate(&handle) + (int)cublasSetStream(handle, stream) +
           (int)cudaMalloc(&a, 4 * CELLS * BATCH) + (int)cudaMalloc(&b, 4 * CELLS * BATCH) +
           (int)cudaMalloc(&c, 4 * CELLS * BATCH);
}

static int tear_down(void **state)
{
    (void)state;
    return (int)cudaFree(a) + (int)cudaFree(b) + (int)cudaFree(c) + (int)cublasDestroy(handle) +
           (int)cudaStreamDestroy(stream);
}

static void put(void *to, const float *values, cudaDataType type)
{
    static uint16_t halves[CELLS * BATCH];
    for (size_t i = 0; type != CUDA_R_32F && i < CELLS * BATCH; i++) {
        halves[i] = type == CUDA_R_16F ? standin_f16_from(values[i]) : standin_bf16_from(values[i]);
    }
    const void *from = type == CUDA_R_32F ? (const void *)values : halves;
    size_t bytes = type == CUDA_R_32F ? 4 : 2;
    assert_int_equal(
        cudaMemcpyAsync(to, from, CELLS * BATCH * bytes, cudaMemcpyHostToDevice, stream),
        cudaSuccess);
}

static void take(float *values, const void *from, cudaDataType type)
{
    static uint16_t halves[CELLS * BATCH];
    void *to = type == CUDA_R_32F ? (void *)values : halves;
    size_t bytes = type == CUDA_R_32F ? 4 : 2;
    assert_int_equal(
        cudaMemcpyAsync(to, from, CELLS * BATCH * bytes, cudaMemcpyDeviceToHost, stream),
        cudaSuccess);
    for (size_t i = 0; type != CUDA_R_32F && i < CELLS * BATCH; i++) {
        values[i] = type == CUDA_R_16F ? standin_f16_to(halves[i]) : standin_bf16_to(halves[i]);
    }
}

/* Small whole numbers: every sum is exact in every type. */
static void check(bool turn_a, bool turn_b, cudaDataType in, cudaDataType out, float beta)
{
    static float x[CELLS * BATCH], y[CELLS * BATCH], z[CELLS * BATCH], got[CELLS * BATCH];
    float alpha = 2;
    for (int i = 0; i < CELLS * BATCH; i++) {
        x[i] = (float)(i % 3 - 1);
        y[i] = (float)(i % 5 - 2);
        z[i] = beta != 0 ? (float)(i % 7) : NAN; /* where it is not read any value may be */
    }
    put(a, x, in);
    put(b, y, in);
    put(c, z, out);
    assert_int_equal(
        cublasGemmStridedBatchedEx(handle, turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
            turn_b ? CUBLAS_OP_T : CUBLAS_OP_N, M, N, K, &alpha, a, in, LD, CELLS, b, in, LD, CELLS,
            &beta, c, out, LD, CELLS, BATCH, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
        CUBLAS_STATUS_SUCCESS);
    take(got, c, out);
    for (int batch = 0; batch < BATCH; batch++) {
        const float *xs = x + batch * CELLS;
        const float *ys = y + batch * CELLS;
        for (int j = 0; j < N; j++) {
            for (int i = 0; i < M; i++) {
                float sum = 0;
                for (int k = 0; k < K; k++) {
                    sum += (turn_a ? xs[k + i * LD] : xs[i + k * LD]) *
                           (turn_b ? ys[j + k * LD] : ys[k + j * LD]);
                }
                int at = batch * CELLS + i + j * LD;
                float wanted = alpha * sum + (beta != 0 ? beta * z[at] : 0);
                assert_true(got[at] == wanted);
            }
            int below = batch * CELLS + M + j * LD; /* the rest of a column is left alone */
            assert_true(got[below] == z[below] || (isnan(got[below]) && isnan(z[below])));
        }
    }
}

static void test_orientations(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        check((i & 1) != 0, (i & 2) != 0, CUDA_R_32F, CUDA_R_32F, (i & 4) != 0 ? 0.5f : 0);
    }
}

static void test_types(void **state)
{
    (void)state;
    check(false, false, CUDA_R_16BF, CUDA_R_16BF, 1);
    check(true, false, CUDA_R_16BF, CUDA_R_32F, 1);
    check(false, true, CUDA_R_16F, CUDA_R_16F, 0);
    check(true, true, CUDA_R_16F, CUDA_R_32F, 1);
}

static void test_refusals(void **state)
{
    (void)state;
    float one = 1;
    assert_int_equal(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a, 3, b, 4, &one, c, 4),
        CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(
        cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a, CUDA_R_64F, 4, b,
            CUDA_R_64F, 4, &one, c, CUDA_R_64F, 4, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT),
        CUBLAS_STATUS_NOT_SUPPORTED);
    assert_int_equal(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, BATCH * CELLS, &one, a, 4,
                         b, BATCH * CELLS, &one, c, 4),
        CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    standin_heal();
    standin_fail("cublasGemm", 1, CUBLAS_STATUS_EXECUTION_FAILED);
    assert_int_equal(
        cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a, 4, b, 4, &one, c, 4),
        CUBLAS_STATUS_EXECUTION_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orientations),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
