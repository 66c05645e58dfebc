/* SPDX-License-Identifier: Apache-2.0
 * The operations in plain C, on the thread that calls them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute.h"
#include "product.h"

struct cpu {
    struct compute compute; /* the first member: what all are given */
    float *room;            /* of products */
};

static void cpu_product(struct compute *compute, const struct product *product)
{
    product_run(product, ((struct cpu *)compute)->room);
}

static void cpu_close(struct compute *compute)
{
    free(((struct cpu *)compute)->room);
    free(compute);
}

/* --- bytes to channels --- */

static void cpu_embed(struct compute *compute, const struct windows *windows, int64_t channels,
    const float *table, const float *positions, float *out)
{
    (void)compute;
    for (int64_t row = 0; row < windows->rows; row++) {
        const uint8_t *bytes = windows->bytes + row * (windows->length + 1);
        for (int64_t t = 0; t < windows->length; t++, out += channels) {
            for (int64_t c = 0; c < channels; c++) {
                out[c] = table[bytes[t] * channels + c] + positions[t * channels + c];
            }
        }
    }
}

static void cpu_embed_slopes(struct compute *compute, const struct windows *windows,
    int64_t channels, const float *errors, float *table_slopes, float *position_slopes)
{
    (void)compute;
    memset(table_slopes, 0, (size_t)(VOCABULARY * channels) * sizeof *table_slopes);
    memset(position_slopes, 0, (size_t)(windows->length * channels) * sizeof *position_slopes);
    for (int64_t row = 0; row < windows->rows; row++) {
        const uint8_t *bytes = windows->bytes + row * (windows->length + 1);
        for (int64_t t = 0; t < windows->length; t++, errors += channels) {
            for (int64_t c = 0; c < channels; c++) {
                table_slopes[bytes[t] * channels + c] += errors[c];
                position_slopes[t * channels + c] += errors[c];
            }
        }
    }
}

/* --- layer norm --- */

static void cpu_norm(struct compute *compute, int64_t rows, int64_t channels, const float *in,
    const float *weights, float *out, float *moments)
{
    (void)compute;
    const float *biases = weights + channels;
    for (int64_t row = 0; row < rows; row++, in += channels, out += channels, moments += 2) {
        float sum = 0;
        float squares = 0;
        for (int64_t c = 0; c < channels; c++) {
            sum += in[c];
        }
        const float mean = sum / (float)channels;
        for (int64_t c = 0; c < channels; c++) {
            squares += (in[c] - mean) * (in[c] - mean);
        }
        const float inverse = 1 / sqrtf(squares / (float)channels + NORM_EPSILON);
        for (int64_t c = 0; c < channels; c++) {
            out[c] = (in[c] - mean) * inverse * weights[c] + biases[c];
        }
        moments[0] = mean;
        moments[1] = inverse;
    }
}

static void cpu_norm_back(struct compute *compute, int64_t rows, int64_t channels, const float *in,
    const float *weights, const float *moments, const float *out_errors, float *in_errors,
    float *slopes)
{
    (void)compute;
    float *bias_slopes = slopes + channels;
    memset(slopes, 0, (size_t)(2 * channels) * sizeof *slopes);
    for (int64_t row = 0; row < rows; row++) {
        const float mean = moments[2 * row];
        const float inverse = moments[2 * row + 1];
        float sum = 0;
        float along = 0;
        for (int64_t c = 0; c < channels; c++) {
            const float normal = (in[c] - mean) * inverse;
            const float error = out_errors[c] * weights[c];
            slopes[c] += out_errors[c] * normal;
            bias_slopes[c] += out_errors[c];
            sum += error;
            along += error * normal;
        }
        for (int64_t c = 0; c < channels; c++) {
            const float normal = (in[c] - mean) * inverse;
            const float rest = (sum + normal * along) / (float)channels;
            in_errors[c] += inverse * (out_errors[c] * weights[c] - rest);
        }
        in += channels;
        out_errors += channels;
        in_errors += channels;
    }
}

/* --- GELU, by its approximation with tanh, which is one with the logistic function --- */

static float logistic(float x)
{
    return 1 / (1 + expf(-x));
}

static void cpu_gelu(struct compute *compute, int64_t count, const float *in, float *out)
{
    (void)compute;
    for (int64_t i = 0; i < count; i++) {
        const float x = in[i];
        out[i] = x * logistic(GELU_SLOPE * (x + GELU_CUBE * x * x * x));
    }
}

static void cpu_gelu_back(struct compute *compute, int64_t count, const float *in, float *errors)
{
    (void)compute;
    for (int64_t i = 0; i < count; i++) {
        const float x = in[i];
        const float share = logistic(GELU_SLOPE * (x + GELU_CUBE * x * x * x));
        const float inner = GELU_SLOPE * (1 + 3 * GELU_CUBE * x * x);
        errors[i] *= share + x * share * (1 - share) * inner;
    }
}

/* --- attention's odds --- */

static void cpu_softmax(
    struct compute *compute, int64_t matrices, int64_t length, float scale, float *scores)
{
    (void)compute;
    for (int64_t row = 0; row < matrices * length; row++, scores += length) {
        const int64_t seen = row % length + 1;
        float top = scores[0];
        float sum = 0;
        for (int64_t i = 1; i < seen; i++) {
            top = scores[i] > top ? scores[i] : top;
        }
        for (int64_t i = 0; i < seen; i++) {
            scores[i] = expf(scale * (scores[i] - top));
            sum += scores[i];
        }
        for (int64_t i = 0; i < length; i++) {
            scores[i] = i < seen ? scores[i] / sum : 0;
        }
    }
}

static void cpu_softmax_back(struct compute *compute, int64_t matrices, int64_t length, float scale,
    const float *odds, float *errors)
{
    (void)compute;
    for (int64_t row = 0; row < matrices * length; row++, odds += length, errors += length) {
        float along = 0;
        for (int64_t i = 0; i < length; i++) {
            along += odds[i] * errors[i];
        }
        for (int64_t i = 0; i < length; i++) {
            errors[i] = scale * odds[i] * (errors[i] - along);
        }
    }
}

/* --- the loss --- */

static float cross_entropy(float *scores, uint8_t wanted, float scale)
{
    float top = scores[0];
    float sum = 0;
    for (int v = 1; v < VOCABULARY; v++) {
        top = scores[v] > top ? scores[v] : top;
    }
    const float margin = top - scores[wanted];
    for (int v = 0; v < VOCABULARY; v++) {
        scores[v] = expf(scores[v] - top);
        sum += scores[v];
    }
    for (int v = 0; v < VOCABULARY; v++) {
        scores[v] = scale * (scores[v] / sum - (v == wanted ? 1.0f : 0.0f));
    }
    return logf(sum) + margin;
}

static void cpu_loss(struct compute *compute, const struct windows *windows, float scale,
    float *scores, float *losses, float *total)
{
    (void)compute;
    double sum = 0;
    for (int64_t row = 0; row < windows->rows; row++) {
        const uint8_t *bytes = windows->bytes + row * (windows->length + 1);
        for (int64_t t = 0; t < windows->length; t++, scores += VOCABULARY, losses++) {
            *losses = cross_entropy(scores, bytes[t + 1], scale);
            sum += (double)*losses;
        }
    }
    *total = (float)((double)scale * sum);
}

/* --- the rest --- */

static void cpu_copy(struct compute *compute, int64_t count, const float *from, float *to)
{
    (void)compute;
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void cpu_zero(struct compute *compute, int64_t count, float *values)
{
    (void)compute;
    memset(values, 0, (size_t)count * sizeof *values);
}

static void cpu_adamw(struct compute *compute, const struct adamw *step, int64_t count,
    float *weights, float *first, float *second, const float *slopes)
{
    (void)compute;
    for (int64_t i = 0; i < count; i++) {
        first[i] = step->beta1 * first[i] + (1 - step->beta1) * slopes[i];
        second[i] = step->beta2 * second[i] + (1 - step->beta2) * slopes[i] * slopes[i];
        const float deviation = sqrtf(second[i] / step->correction2) + step->epsilon;
        weights[i] -=
            step->rate * (first[i] / step->correction1 / deviation + step->decay * weights[i]);
    }
}

struct compute *compute_cpu_open(void)
{
    static const struct operations operations = {
        .name = "CPU",
        .close = cpu_close,
        .product = cpu_product,
        .embed = cpu_embed,
        .embed_slopes = cpu_embed_slopes,
        .norm = cpu_norm,
        .norm_back = cpu_norm_back,
        .gelu = cpu_gelu,
        .gelu_back = cpu_gelu_back,
        .softmax = cpu_softmax,
        .softmax_back = cpu_softmax_back,
        .loss = cpu_loss,
        .copy = cpu_copy,
        .zero = cpu_zero,
        .adamw = cpu_adamw,
    };
    struct cpu *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL) {
        return NULL;
    }
    cpu->compute.does = &operations;
    cpu->room = aligned_alloc(64, product_room() * sizeof *cpu->room);
    if (cpu->room == NULL) {
        free(cpu);
        return NULL;
    }
    return &cpu->compute;
}
