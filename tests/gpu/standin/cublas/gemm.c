/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: matrix products in the order of a stream. Matrices are stored by
 * columns; sums are float32 for all types and go over k in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cublas_v2.h"
#include "standin_numbers.h"
#include "tests/gpu/standin/standin.h"

struct cublasContext {
    cudaStream_t stream;
    int device;
};

struct matrix {
    const void *data;
    cudaDataType type;
    int leading;
    long long stride;
};

struct gemm {
    int m, n, k, batch;
    bool turn_a, turn_b;
    float alpha, beta;
    struct matrix a, b, c;
};

static size_t element_bytes(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : type == CUDA_R_16F || type == CUDA_R_16BF ? 2 : 0;
}

static float get(const void *data, cudaDataType type, size_t at)
{
    if (type == CUDA_R_32F) {
        return ((const float *)data)[at];
    }
    uint16_t half = ((const uint16_t *)data)[at];
    return type == CUDA_R_16F ? standin_f16_to(half) : standin_bf16_to(half);
}

static void set(void *data, cudaDataType type, size_t at, float value)
{
    if (type == CUDA_R_32F) {
        ((float *)data)[at] = value;
    } else {
        ((uint16_t *)data)[at] =
            type == CUDA_R_16F ? standin_f16_from(value) : standin_bf16_from(value);
    }
}

#define PANEL 64 /* sums that go on side by side */

/* Copies as float32: to[i * across + j] is the value in row i and column j, of `from` turned or
 * not.
 */
static void unpack(
    float *to, const struct matrix *from, const void *data, int rows, int across, bool turned)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < across; j++) {
            size_t at = turned ? (size_t)i * (size_t)from->leading + (size_t)j
                               : (size_t)j * (size_t)from->leading + (size_t)i;
            to[(size_t)i * (size_t)across + (size_t)j] = get(data, from->type, at);
        }
    }
}

/* C's rows from `first` on, at most PANEL of them, of one column. `a` has a row for each of k. */
static void sum_panel(
    const struct gemm *gemm, const float *a, const float *column, int first, void *c, int j)
{
    float sums[PANEL] = {0};
    int rows = gemm->m - first < PANEL ? gemm->m - first : PANEL;
    for (int i = 0; i < gemm->k; i++) {
        const float *values = a + (size_t)i * (size_t)gemm->m + (size_t)first;
        for (int row = 0; row < rows; row++) {
            sums[row] += values[row] * column[i];
        }
    }
    for (int row = 0; row < rows; row++) {
        size_t at = (size_t)j * (size_t)gemm->c.leading + (size_t)(first + row);
        float sum = gemm->alpha * sums[row];
        if (gemm->beta != 0) { /* else C is not read: it may hold anything */
            sum += gemm->beta * get(c, gemm->c.type, at);
        }
        set(c, gemm->c.type, at, sum);
    }
}

static void multiply(const struct gemm *gemm, const void *a, const void *b, void *c, float *space)
{
    float *by_k = space;
    float *columns = space + (size_t)gemm->m * (size_t)gemm->k;
    unpack(by_k, &gemm->a, a, gemm->k, gemm->m, !gemm->turn_a);
    unpack(columns, &gemm->b, b, gemm->n, gemm->k, !gemm->turn_b);
    for (int j = 0; j < gemm->n; j++) {
        for (int first = 0; first < gemm->m; first += PANEL) {
            sum_panel(gemm, by_k, columns + (size_t)j * (size_t)gemm->k, first, c, j);
        }
    }
}

/* Where a matrix of `columns` columns of `rows` values is; NULL: not within one block. */
static char *reach(const struct matrix *matrix, int rows, int columns, int batch)
{
    size_t last = (size_t)matrix->stride * (size_t)(batch - 1) +
                  (size_t)matrix->leading * (size_t)(columns - 1) + (size_t)rows;
    return standin_reach(matrix->data, last * element_bytes(matrix->type));
}

static cudaError_t run_gemm(void *user)
{
    const struct gemm *gemm = user;
    STANDIN_CALL("kernel");
    if (standin_fault != 0) {
        return (cudaError_t)standin_fault;
    }
    char *c = reach(&gemm->c, gemm->m, gemm->n, gemm->batch);
    const char *a = gemm->k == 0   ? c
                    : gemm->turn_a ? reach(&gemm->a, gemm->k, gemm->m, gemm->batch)
                                   : reach(&gemm->a, gemm->m, gemm->k, gemm->batch);
    const char *b = gemm->k == 0   ? c
                    : gemm->turn_b ? reach(&gemm->b, gemm->n, gemm->k, gemm->batch)
                                   : reach(&gemm->b, gemm->k, gemm->n, gemm->batch);
    if (a == NULL || b == NULL || c == NULL) {
        fprintf(stderr, "stand-in: a matrix of a product is not within one block of the device\n");
        return cudaErrorIllegalAddress;
    }
    size_t values = ((size_t)gemm->m + (size_t)gemm->n) * (size_t)gemm->k;
    float *space = malloc(values * sizeof(float) + 1);
    if (space == NULL) {
        return cudaErrorLaunchOutOfResources;
    }
    for (int i = 0; i < gemm->batch; i++) {
        multiply(gemm, a + i * gemm->a.stride * (long long)element_bytes(gemm->a.type),
            b + i * gemm->b.stride * (long long)element_bytes(gemm->b.type),
            c + i * gemm->c.stride * (long long)element_bytes(gemm->c.type), space);
    }
    free(space);
    return cudaSuccess;
}

static bool fits(const struct gemm *gemm)
{
    int rows_a = gemm->turn_a ? gemm->k : gemm->m;
    int rows_b = gemm->turn_b ? gemm->n : gemm->k;
    return gemm->m >= 0 && gemm->n >= 0 && gemm->k >= 0 && gemm->batch >= 0 &&
           gemm->a.leading >= (rows_a > 1 ? rows_a : 1) &&
           gemm->b.leading >= (rows_b > 1 ? rows_b : 1) &&
           gemm->c.leading >= (gemm->m > 1 ? gemm->m : 1);
}

static bool knows(const struct gemm *gemm, cublasComputeType_t compute)
{
    bool single = compute == CUBLAS_COMPUTE_32F || compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                  compute == CUBLAS_COMPUTE_32F_FAST_16F ||
                  compute == CUBLAS_COMPUTE_32F_FAST_16BF ||
                  compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    bool same = gemm->c.type == gemm->a.type || gemm->c.type == CUDA_R_32F;
    return single && same && gemm->a.type == gemm->b.type && element_bytes(gemm->a.type) != 0;
}

static cublasStatus_t post(cublasHandle_t handle, int fault, cublasComputeType_t compute,
    const void *alpha, const void *beta, const struct gemm *wanted)
{
    int device = -1;
    if (fault != 0 || handle == NULL) {
        return fault != 0 ? (cublasStatus_t)fault : CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (!fits(wanted) || alpha == NULL || beta == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!knows(wanted, compute)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (cudaGetDevice(&device) != cudaSuccess || device != handle->device) {
        return CUBLAS_STATUS_EXECUTION_FAILED; /* a handle works on the device it was made on */
    }
    if (wanted->m == 0 || wanted->n == 0 || wanted->batch == 0) {
        return CUBLAS_STATUS_SUCCESS;
    }
    struct gemm *gemm = malloc(sizeof(*gemm));
    if (gemm == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    *gemm = *wanted;
    gemm->alpha = *(const float *)alpha;
    gemm->beta = *(const float *)beta;
    return standin_enqueue(handle->stream, run_gemm, free, gemm) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const void *alpha, const void *A,
    cudaDataType Atype, int lda, long long int strideA, const void *B, cudaDataType Btype, int ldb,
    long long int strideB, const void *beta, void *C, cudaDataType Ctype, int ldc,
    long long int strideC, int batchCount, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    STANDIN_CALL("cublasGemm");
    (void)algo;
    struct gemm gemm = {.m = m, .n = n, .k = k, .batch = batchCount};
    gemm.turn_a = transa != CUBLAS_OP_N;
    gemm.turn_b = transb != CUBLAS_OP_N;
    gemm.a = (struct matrix){.data = A, .type = Atype, .leading = lda, .stride = strideA};
    gemm.b = (struct matrix){.data = B, .type = Btype, .leading = ldb, .stride = strideB};
    gemm.c = (struct matrix){.data = C, .type = Ctype, .leading = ldc, .stride = strideC};
    return post(handle, standin_fault, computeType, alpha, beta, &gemm);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const void *alpha, const void *A,
    cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb, const void *beta,
    void *C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, 0, B,
        Btype, ldb, 0, beta, C, Ctype, ldc, 0, 1, computeType, algo);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const float *alpha, const float *A, int lda,
    long long int strideA, const float *B, int ldb, long long int strideB, const float *beta,
    float *C, int ldc, long long int strideC, int batchCount)
{
    return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A, CUDA_R_32F, lda,
        strideA, B, CUDA_R_32F, ldb, strideB, beta, C, CUDA_R_32F, ldc, strideC, batchCount,
        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const float *alpha, const float *A, int lda,
    const float *B, int ldb, const float *beta, float *C, int ldc)
{
    return cublasSgemmStridedBatched(
        handle, transa, transb, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta, C, ldc, 0, 1);
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    STANDIN_CALL("cublasCreate");
    int device = 0;
    if (standin_fault != 0) {
        return (cublasStatus_t)standin_fault;
    }
    if (cudaGetDevice(&device) != cudaSuccess || cudaFree(NULL) != cudaSuccess) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    *handle = calloc(1, sizeof(**handle));
    if (*handle == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    (*handle)->device = device;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (handle == NULL) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    (void)handle;
    *version = 130100;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId)
{
    handle->stream = streamId;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *streamId)
{
    *streamId = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

/* It needs none. */
cublasStatus_t cublasSetWorkspace_v2(
    cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes)
{
    (void)workspace;
    (void)workspaceSizeInBytes;
    return handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    (void)mode;
    return handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
    (void)mode;
    return handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
    (void)handle;
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    }
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return cublasGetStatusName(status);
}
