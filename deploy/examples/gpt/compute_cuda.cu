/* SPDX-License-Identifier: Apache-2.0
 * The operations on a GPU: matrix products by cuBLAS, the others by kernels; those that work on
 * rows are in rows_cuda.cu. All of them go on the replica's stream, and nothing waits. */
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

void cuda_failed(struct cuda *cuda, const char *what, const char *why)
{
    if (cuda->compute.status == CADRE_OK) {
        cuda->compute.status = CADRE_INTERNAL;
        snprintf(cuda->compute.message, sizeof cuda->compute.message, "%s failed on the GPU: %s",
            what, why);
    }
}

float *cuda_room(struct compute *compute, const char *what, int64_t count)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    void *room = NULL;
    if (compute->status == CADRE_OK) {
        cuda_check(cuda, what,
            cudaMallocAsync(&room, static_cast<size_t>(count) * sizeof(float), cuda->stream));
    }
    return static_cast<float *>(compute->status == CADRE_OK ? room : NULL);
}

void cuda_room_end(struct compute *compute, float *room)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    if (room != NULL) {
        cuda_check(cuda, "giving memory back", cudaFreeAsync(room, cuda->stream));
    }
}

/* --- matrix products. cuBLAS counts by columns: it is asked for c^T = b^T x a^T. --- */

static void product_of(
    struct compute *compute, const struct product *p, cublasComputeType_t precision)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    if (compute->status != CADRE_OK) {
        return;
    }
    const float one = 1;
    const float kept = p->add ? 1.0f : 0.0f;
    const cublasStatus_t status = cublasGemmStridedBatchedEx(cuda->products,
        p->b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N, p->a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
        static_cast<int>(p->n), static_cast<int>(p->m), static_cast<int>(p->k), &one, p->b.data,
        CUDA_R_32F, static_cast<int>(p->b.ld), p->b.stride, p->a.data, CUDA_R_32F,
        static_cast<int>(p->a.ld), p->a.stride, &kept, p->c, CUDA_R_32F, static_cast<int>(p->ldc),
        p->stride_c, static_cast<int>(p->batch), precision, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) {
        cuda_failed(cuda, "a matrix product", cublasGetStatusString(status));
    }
}

static void cuda_product(struct compute *compute, const struct product *p)
{
    product_of(compute, p, reinterpret_cast<struct cuda *>(compute)->precision);
}

/* --- one thread for each number --- */

static __device__ int64_t number_here()
{
    return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

static __global__ void embed_numbers(int64_t count, int64_t length, int64_t channels,
    const uint8_t *bytes, const float *table, const float *positions, float *out)
{
    const int64_t i = number_here();
    if (i < count) {
        const int64_t token = i / channels;
        const int64_t t = token % length;
        const int64_t byte = bytes[token / length * (length + 1) + t];
        out[i] = table[byte * channels + i % channels] + positions[t * channels + i % channels];
    }
}

/* A row of VOCABULARY numbers for each token: 1 at its byte. */
static __global__ void mark_bytes(int64_t count, int64_t length, const uint8_t *bytes, float *marks)
{
    const int64_t i = number_here();
    if (i < count) {
        const int64_t token = i / VOCABULARY;
        const int64_t byte = bytes[token / length * (length + 1) + token % length];
        marks[i] = i % VOCABULARY == byte ? 1.0f : 0.0f;
    }
}

static __global__ void position_slopes_of_numbers(
    int64_t count, int64_t rows, const float *errors, float *slopes)
{
    const int64_t i = number_here();
    if (i < count) {
        float sum = 0;
        for (int64_t row = 0; row < rows; row++) {
            sum += errors[row * count + i];
        }
        slopes[i] = sum;
    }
}

static __global__ void gelu_numbers(int64_t count, const float *in, float *out)
{
    const int64_t i = number_here();
    if (i < count) {
        const float x = in[i];
        out[i] = x / (1 + expf(-GELU_SLOPE * (x + GELU_CUBE * x * x * x)));
    }
}

static __global__ void gelu_numbers_back(int64_t count, const float *in, float *errors)
{
    const int64_t i = number_here();
    if (i < count) {
        const float x = in[i];
        const float share = 1 / (1 + expf(-GELU_SLOPE * (x + GELU_CUBE * x * x * x)));
        const float inner = GELU_SLOPE * (1 + 3 * GELU_CUBE * x * x);
        errors[i] *= share + x * share * (1 - share) * inner;
    }
}

static __global__ void adamw_numbers(struct adamw step, int64_t count, float *weights, float *first,
    float *second, const float *slopes)
{
    const int64_t i = number_here();
    if (i < count) {
        const float slope = slopes[i];
        const float mean = step.beta1 * first[i] + (1 - step.beta1) * slope;
        const float square = step.beta2 * second[i] + (1 - step.beta2) * slope * slope;
        const float deviation = sqrtf(square / step.correction2) + step.epsilon;
        first[i] = mean;
        second[i] = square;
        weights[i] -= step.rate * (mean / step.correction1 / deviation + step.decay * weights[i]);
    }
}

static void cuda_embed(struct compute *compute, const struct windows *windows, int64_t channels,
    const float *table, const float *positions, float *out)
{
    const int64_t count = windows->rows * windows->length * channels;
    cuda_launch(compute, "the embedding", blocks_for(count, THREADS), embed_numbers, count,
        windows->length, channels, windows->bytes, table, positions, out);
}

static void cuda_embed_slopes(struct compute *compute, const struct windows *windows,
    int64_t channels, const float *errors, float *table_slopes, float *position_slopes)
{
    const int64_t tokens = windows->rows * windows->length;
    const int64_t count = windows->length * channels;
    const int64_t marked = tokens * VOCABULARY;
    /* A sum over the tokens of each byte, as a product: it has one order, and all of the GPU. */
    float *marks = cuda_room(compute, "the embedding's slopes", marked);
    struct product product = {};
    product.m = VOCABULARY;
    product.n = channels;
    product.k = tokens;
    product.a.data = marks;
    product.a.ld = VOCABULARY;
    product.a.transposed = true;
    product.b.data = errors;
    product.b.ld = channels;
    product.c = table_slopes;
    product.ldc = channels;
    product.batch = 1;
    cuda_launch(compute, "the embedding's slopes", blocks_for(marked, THREADS), mark_bytes, marked,
        windows->length, windows->bytes, marks);
    product_of(compute, &product, CUBLAS_COMPUTE_32F);
    cuda_room_end(compute, marks);
    cuda_launch(compute, "the positions' slopes", blocks_for(count, THREADS),
        position_slopes_of_numbers, count, windows->rows, errors, position_slopes);
}

static void cuda_gelu(struct compute *compute, int64_t count, const float *in, float *out)
{
    cuda_launch(compute, "GELU", blocks_for(count, THREADS), gelu_numbers, count, in, out);
}

static void cuda_gelu_back(struct compute *compute, int64_t count, const float *in, float *errors)
{
    cuda_launch(
        compute, "GELU's errors", blocks_for(count, THREADS), gelu_numbers_back, count, in, errors);
}

static void cuda_adamw(struct compute *compute, const struct adamw *step, int64_t count,
    float *weights, float *first, float *second, const float *slopes)
{
    cuda_launch(compute, "the update", blocks_for(count, THREADS), adamw_numbers, *step, count,
        weights, first, second, slopes);
}

static void cuda_copy(struct compute *compute, int64_t count, const float *from, float *to)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    if (compute->status == CADRE_OK) {
        cuda_check(cuda, "a copy",
            cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof *to,
                cudaMemcpyDeviceToDevice, cuda->stream));
    }
}

static void cuda_zero(struct compute *compute, int64_t count, float *values)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    if (compute->status == CADRE_OK) {
        cuda_check(cuda, "setting to zero",
            cudaMemsetAsync(values, 0, static_cast<size_t>(count) * sizeof *values, cuda->stream));
    }
}

/* --- creating and ending --- */

static void cuda_close(struct compute *compute)
{
    struct cuda *cuda = reinterpret_cast<struct cuda *>(compute);
    int before = 0;
    if (cuda->products != NULL && cudaGetDevice(&before) == cudaSuccess) {
        (void)cudaSetDevice(cuda->device); /* the handle belongs to it */
        (void)cublasDestroy(cuda->products);
        (void)cudaSetDevice(before);
    }
    free(cuda);
}

/* In the order of struct operations. */
static const struct operations operations = {
    "GPU",
    cuda_close,
    cuda_product,
    cuda_embed,
    cuda_embed_slopes,
    cuda_norm,
    cuda_norm_back,
    cuda_gelu,
    cuda_gelu_back,
    cuda_softmax,
    cuda_softmax_back,
    cuda_loss,
    cuda_copy,
    cuda_zero,
    cuda_adamw,
};

struct compute *compute_cuda_open(void *stream, enum precision precision)
{
    static const cublasComputeType_t types[] = {
        CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F_FAST_16BF};
    struct cuda *cuda = static_cast<struct cuda *>(calloc(1, sizeof *cuda));
    if (cuda == NULL) {
        cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory for products");
        return NULL;
    }
    cuda->compute.does = &operations;
    cuda->stream = static_cast<cudaStream_t>(stream);
    cuda->precision = types[precision];
    cuda_check(cuda, "asking for the device", cudaGetDevice(&cuda->device));
    cublasStatus_t status = cublasCreate(&cuda->products);
    if (status == CUBLAS_STATUS_SUCCESS) {
        status = cublasSetStream(cuda->products, cuda->stream);
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
        cadre_fail(CADRE_INTERNAL, "cuBLAS does not start: %s", cublasGetStatusString(status));
        cuda_close(&cuda->compute);
        return NULL;
    }
    return &cuda->compute;
}
