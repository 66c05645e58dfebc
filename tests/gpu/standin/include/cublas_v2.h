/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the part of cuBLAS's interface that this project uses. */
#ifndef CADRE_STANDIN_CUBLAS_V2_H
#define CADRE_STANDIN_CUBLAS_V2_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum {
    CUBLAS_DEFAULT_MATH = 0,
    CUBLAS_TENSOR_OP_MATH = 1,
    CUBLAS_PEDANTIC_MATH = 2,
    CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_16F = 64,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32F_FAST_16F = 74,
    CUBLAS_COMPUTE_32F_FAST_16BF = 75,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef cudaDataType cublasDataType_t;

typedef struct cublasContext *cublasHandle_t;

STANDIN_API cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
STANDIN_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
STANDIN_API cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
STANDIN_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t streamId);
STANDIN_API cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *streamId);
STANDIN_API cublasStatus_t cublasSetWorkspace_v2(
    cublasHandle_t handle, void *workspace, size_t workspaceSizeInBytes);
STANDIN_API cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
STANDIN_API cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
STANDIN_API cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
STANDIN_API const char *cublasGetStatusName(cublasStatus_t status);
STANDIN_API const char *cublasGetStatusString(cublasStatus_t status);
STANDIN_API cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const float *alpha, const float *A, int lda,
    const float *B, int ldb, const float *beta, float *C, int ldc);
STANDIN_API cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle,
    cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const float *alpha,
    const float *A, int lda, long long int strideA, const float *B, int ldb, long long int strideB,
    const float *beta, float *C, int ldc, long long int strideC, int batchCount);
STANDIN_API cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
    cublasOperation_t transb, int m, int n, int k, const void *alpha, const void *A,
    cudaDataType Atype, int lda, const void *B, cudaDataType Btype, int ldb, const void *beta,
    void *C, cudaDataType Ctype, int ldc, cublasComputeType_t computeType, cublasGemmAlgo_t algo);
STANDIN_API cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle,
    cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k, const void *alpha,
    const void *A, cudaDataType Atype, int lda, long long int strideA, const void *B,
    cudaDataType Btype, int ldb, long long int strideB, const void *beta, void *C,
    cudaDataType Ctype, int ldc, long long int strideC, int batchCount,
    cublasComputeType_t computeType, cublasGemmAlgo_t algo);

#define cublasCreate         cublasCreate_v2
#define cublasDestroy        cublasDestroy_v2
#define cublasGetVersion     cublasGetVersion_v2
#define cublasSetStream      cublasSetStream_v2
#define cublasGetStream      cublasGetStream_v2
#define cublasSetWorkspace   cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasSgemm          cublasSgemm_v2

#ifdef __cplusplus
}
#endif
#endif
