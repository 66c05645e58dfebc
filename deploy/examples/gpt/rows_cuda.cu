/* SPDX-License-Identifier: Apache-2.0
 * Operations on rows: a warp has a row, its lanes take the columns by turns and meet in shuffles.
 * Sums are made in one order, so a step has the same bits in every run. */
#include "cuda.h"

static __device__ float warp_sum(float value)
{
    for (int apart = WARP / 2; apart > 0; apart /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, apart);
    }
    return value;
}

static __device__ float warp_max(float value)
{
    for (int apart = WARP / 2; apart > 0; apart /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, apart));
    }
    return value;
}

/* The row of this thread's warp; the same for all its lanes. */
static __device__ int64_t row_here()
{
    return static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / WARP;
}

static __device__ int64_t lane_here()
{
    return threadIdx.x % WARP;
}

/* --- layer norm --- */

static __global__ void norm_rows(int64_t rows, int64_t channels, const float *in,
    const float *weights, float *out, float *moments)
{
    const int64_t row = row_here();
    if (row >= rows) {
        return;
    }
    const float *x = in + row * channels;
    float sum = 0;
    float squares = 0;
    for (int64_t c = lane_here(); c < channels; c += WARP) {
        sum += x[c];
    }
    const float mean = warp_sum(sum) / static_cast<float>(channels);
    for (int64_t c = lane_here(); c < channels; c += WARP) {
        squares += (x[c] - mean) * (x[c] - mean);
    }
    const float variance = warp_sum(squares) / static_cast<float>(channels);
    const float inverse = 1 / sqrtf(variance + NORM_EPSILON);
    for (int64_t c = lane_here(); c < channels; c += WARP) {
        out[row * channels + c] = (x[c] - mean) * inverse * weights[c] + weights[channels + c];
    }
    if (lane_here() == 0) {
        moments[2 * row] = mean;
        moments[2 * row + 1] = inverse;
    }
}

static __global__ void norm_rows_back(int64_t rows, int64_t channels, const float *in,
    const float *weights, const float *moments, const float *out_errors, float *in_errors)
{
    const int64_t row = row_here();
    if (row >= rows) {
        return;
    }
    const float *x = in + row * channels;
    const float *errors = out_errors + row * channels;
    const float mean = moments[2 * row];
    const float inverse = moments[2 * row + 1];
    float sum = 0;
    float along = 0;
    for (int64_t c = lane_here(); c < channels; c += WARP) {
        sum += errors[c] * weights[c];
        along += errors[c] * weights[c] * (x[c] - mean) * inverse;
    }
    sum = warp_sum(sum);
    along = warp_sum(along);
    for (int64_t c = lane_here(); c < channels; c += WARP) {
        const float rest = (sum + (x[c] - mean) * inverse * along) / static_cast<float>(channels);
        in_errors[row * channels + c] += inverse * (errors[c] * weights[c] - rest);
    }
}

/* Pieces of this many rows are summed by blocks of their own, which fill a GPU. */
enum { PIECE_ROWS = 256 };

/* A block has WARP columns of a piece: thread (lane, warp) adds up every WARPS-th row of one of
 * them. A piece has 2 x channels sums. */
static __global__ void norm_slopes_of_pieces(int64_t rows, int64_t channels, const float *in,
    const float *moments, const float *out_errors, float *sums)
{
    __shared__ float gains[WARPS][WARP];
    __shared__ float biases[WARPS][WARP];
    const unsigned lane = threadIdx.x % WARP;
    const unsigned warp = threadIdx.x / WARP;
    const int64_t groups = (channels + WARP - 1) / WARP;
    const int64_t c = blockIdx.x % groups * WARP + lane;
    const int64_t piece = blockIdx.x / groups;
    const int64_t end = (piece + 1) * PIECE_ROWS < rows ? (piece + 1) * PIECE_ROWS : rows;
    float gain = 0;
    float bias = 0;
    for (int64_t row = piece * PIECE_ROWS + warp; c < channels && row < end; row += WARPS) {
        const float error = out_errors[row * channels + c];
        gain += error * (in[row * channels + c] - moments[2 * row]) * moments[2 * row + 1];
        bias += error;
    }
    gains[warp][lane] = gain;
    biases[warp][lane] = bias;
    __syncthreads();
    if (warp == 0 && c < channels) {
        for (int i = 1; i < WARPS; i++) {
            gain += gains[i][lane];
            bias += biases[i][lane];
        }
        sums[2 * piece * channels + c] = gain;
        sums[(2 * piece + 1) * channels + c] = bias;
    }
}

/* A thread has one of the `count` numbers that each piece has a sum of. */
static __global__ void add_pieces(int64_t pieces, int64_t count, const float *sums, float *slopes)
{
    const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count) {
        float sum = 0;
        for (int64_t piece = 0; piece < pieces; piece++) {
            sum += sums[piece * count + i];
        }
        slopes[i] = sum;
    }
}

void cuda_norm(struct compute *compute, int64_t rows, int64_t channels, const float *in,
    const float *weights, float *out, float *moments)
{
    cuda_launch(compute, "layer norm", blocks_for(rows, WARPS), norm_rows, rows, channels, in,
        weights, out, moments);
}

void cuda_norm_back(struct compute *compute, int64_t rows, int64_t channels, const float *in,
    const float *weights, const float *moments, const float *out_errors, float *in_errors,
    float *slopes)
{
    cuda_launch(compute, "layer norm's errors", blocks_for(rows, WARPS), norm_rows_back, rows,
        channels, in, weights, moments, out_errors, in_errors);
    const char *what = "layer norm's slopes";
    const int64_t pieces = blocks_for(rows, PIECE_ROWS);
    float *sums = cuda_room(compute, what, 2 * pieces * channels);
    cuda_launch(compute, what, pieces * blocks_for(channels, WARP), norm_slopes_of_pieces, rows,
        channels, in, moments, out_errors, sums);
    cuda_launch(compute, what, blocks_for(2 * channels, THREADS), add_pieces, pieces, 2 * channels,
        sums, slopes);
    cuda_room_end(compute, sums);
}

/* --- attention's odds --- */

static __global__ void softmax_rows(int64_t rows, int64_t length, float scale, float *scores)
{
    const int64_t row = row_here();
    if (row >= rows) {
        return;
    }
    float *s = scores + row * length;
    const int64_t seen = row % length + 1;
    float top = -INFINITY;
    float sum = 0;
    for (int64_t i = lane_here(); i < seen; i += WARP) {
        top = fmaxf(top, s[i]);
    }
    top = warp_max(top);
    for (int64_t i = lane_here(); i < seen; i += WARP) {
        s[i] = expf(scale * (s[i] - top));
        sum += s[i];
    }
    sum = warp_sum(sum);
    for (int64_t i = lane_here(); i < length; i += WARP) {
        s[i] = i < seen ? s[i] / sum : 0;
    }
}

static __global__ void softmax_rows_back(
    int64_t rows, int64_t length, float scale, const float *odds, float *errors)
{
    const int64_t row = row_here();
    if (row >= rows) {
        return;
    }
    const float *p = odds + row * length;
    float *e = errors + row * length;
    float along = 0;
    for (int64_t i = lane_here(); i < length; i += WARP) {
        along += p[i] * e[i];
    }
    along = warp_sum(along);
    for (int64_t i = lane_here(); i < length; i += WARP) {
        e[i] = scale * p[i] * (e[i] - along);
    }
}

void cuda_softmax(
    struct compute *compute, int64_t matrices, int64_t length, float scale, float *scores)
{
    const int64_t rows = matrices * length;
    cuda_launch(
        compute, "softmax", blocks_for(rows, WARPS), softmax_rows, rows, length, scale, scores);
}

void cuda_softmax_back(struct compute *compute, int64_t matrices, int64_t length, float scale,
    const float *odds, float *errors)
{
    const int64_t rows = matrices * length;
    cuda_launch(compute, "softmax's errors", blocks_for(rows, WARPS), softmax_rows_back, rows,
        length, scale, odds, errors);
}

/* --- the loss --- */

static __global__ void loss_rows(
    int64_t rows, int64_t length, const uint8_t *bytes, float scale, float *scores, float *losses)
{
    const int64_t row = row_here();
    if (row >= rows) {
        return;
    }
    float *s = scores + row * VOCABULARY;
    const int64_t wanted = bytes[row / length * (length + 1) + row % length + 1];
    const bool owns =
        lane_here() == wanted % WARP; /* of the byte's score, which becomes an error */
    const float score = owns ? s[wanted] : 0;
    float top = -INFINITY;
    float sum = 0;
    for (int64_t v = lane_here(); v < VOCABULARY; v += WARP) {
        top = fmaxf(top, s[v]);
    }
    top = warp_max(top);
    for (int64_t v = lane_here(); v < VOCABULARY; v += WARP) {
        sum += expf(s[v] - top);
    }
    sum = warp_sum(sum);
    for (int64_t v = lane_here(); v < VOCABULARY; v += WARP) {
        s[v] = scale * (expf(s[v] - top) / sum - (v == wanted ? 1.0f : 0.0f));
    }
    if (owns) {
        losses[row] = logf(sum) + top - score;
    }
}

/* One block: *total = scale x the sum of all. */
static __global__ void add_up(int64_t count, float scale, const float *values, float *total)
{
    __shared__ float sums[THREADS];
    float sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        sum += values[i];
    }
    sums[threadIdx.x] = sum;
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        *total = scale * sums[0];
    }
}

void cuda_loss(struct compute *compute, const struct windows *windows, float scale, float *scores,
    float *losses, float *total)
{
    const int64_t rows = windows->rows * windows->length;
    cuda_launch(compute, "cross-entropy", blocks_for(rows, WARPS), loss_rows, rows, windows->length,
        windows->bytes, scale, scores, losses);
    cuda_launch(compute, "the sum of losses", 1, add_up, rows, scale, losses, total);
}
