/* SPDX-License-Identifier: Apache-2.0
 * The operations that the network is made of, once for the CPU (compute_cpu.c) and once for a GPU
 * (compute_cuda.cu). All matrices are float32, row-major. An operation enqueues its work and
 * returns nothing: the first failure is kept, and what is called after it does nothing. */
#ifndef GPT_COMPUTE_H
#define GPT_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cadre/cadre.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VOCABULARY = 256 };

#define NORM_EPSILON 1e-5f
#define GELU_SLOPE   1.5957691216f /* twice the root of 2 / pi */
#define GELU_CUBE    0.044715f

/* How matrices are multiplied on a GPU; the numbers in memory are float32 with all of them. */
enum precision { PRECISION_F32, PRECISION_TF32, PRECISION_BF16 };

/* c [m, n] = a [m, k] x b [k, n], or added to c; `batch` of them, `stride` elements apart. A
 * transposed matrix lies in memory as [k, m] or [n, k]. `ld`: elements from one row to the next. */
struct matrix {
    const float *data;
    int64_t ld;
    bool transposed;
    int64_t stride;
};
struct product {
    int64_t m, n, k;
    struct matrix a, b;
    float *c;
    int64_t ldc, stride_c;
    int64_t batch;
    bool add;
};

/* `rows` windows of `length` + 1 bytes: byte t is read, byte t + 1 is to be foretold. */
struct windows {
    const uint8_t *bytes;
    int64_t rows;
    int64_t length;
};

struct adamw {
    float rate;
    float beta1, beta2, epsilon;
    float decay;                    /* of the weights, times the rate */
    float correction1, correction2; /* 1 - beta^step */
};

struct compute;

/* "errors" are gradients by an operation's result or argument, "slopes" those by weights. */
struct operations {
    const char *name;
    void (*close)(struct compute *compute);
    void (*product)(struct compute *compute, const struct product *product);

    /* out [rows * length, channels] = table [VOCABULARY, channels] of the byte + its position's. */
    void (*embed)(struct compute *compute, const struct windows *windows, int64_t channels,
        const float *table, const float *positions, float *out);
    void (*embed_slopes)(struct compute *compute, const struct windows *windows, int64_t channels,
        const float *errors, float *table_slopes, float *position_slopes);

    /* Layer norm of each row. weights: gains [channels], then biases [channels]. moments [rows, 2]:
     * the mean and one by the deviation, for the way back, which adds to `in_errors`. */
    void (*norm)(struct compute *compute, int64_t rows, int64_t channels, const float *in,
        const float *weights, float *out, float *moments);
    void (*norm_back)(struct compute *compute, int64_t rows, int64_t channels, const float *in,
        const float *weights, const float *moments, const float *out_errors, float *in_errors,
        float *slopes);

    /* The way back turns errors of the result into errors of `in`. */
    void (*gelu)(struct compute *compute, int64_t count, const float *in, float *out);
    void (*gelu_back)(struct compute *compute, int64_t count, const float *in, float *errors);

    /* Of `matrices` matrices [length, length], in place: row t becomes odds over columns 0 to t of
     * `scale` x the scores, and 0 behind. The way back turns errors of odds into errors of scores.
     */
    void (*softmax)(
        struct compute *compute, int64_t matrices, int64_t length, float scale, float *scores);
    void (*softmax_back)(struct compute *compute, int64_t matrices, int64_t length, float scale,
        const float *odds, float *errors);

    /* Cross-entropy. scores [rows * length, VOCABULARY] become their errors; *total = scale x the
     * sum of all losses. `losses` [rows * length] is room for it. */
    void (*loss)(struct compute *compute, const struct windows *windows, float scale, float *scores,
        float *losses, float *total);

    void (*copy)(struct compute *compute, int64_t count, const float *from, float *to);
    void (*zero)(struct compute *compute, int64_t count, float *values);

    void (*adamw)(struct compute *compute, const struct adamw *step, int64_t count, float *weights,
        float *first, float *second, const float *slopes);
};

/* What one replica computes with; used by one thread at a time. */
struct compute {
    const struct operations *does;
    cadre_status status; /* the first failure */
    char message[160];
};

/* NULL: no memory. */
struct compute *compute_cpu_open(void);

/* On a stream (cudaStream_t) of the current device, which outlives it. NULL: cadre_fail said why.
 */
struct compute *compute_cuda_open(void *stream, enum precision precision);

/* The failure that was kept, by cadre_fail. */
static inline cadre_status compute_status(const struct compute *compute)
{
    return compute->status == CADRE_OK ? CADRE_OK
                                       : cadre_fail(compute->status, "%s", compute->message);
}

static inline void compute_close(struct compute *compute) /* NULL is allowed */
{
    if (compute != NULL) {
        compute->does->close(compute);
    }
}

#ifdef __cplusplus
}
#endif
#endif
