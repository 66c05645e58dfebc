/* SPDX-License-Identifier: Apache-2.0
 * A piece of b that fits the second cache is packed into panels of WIDE columns, and pieces of a
 * into panels of HIGH rows, whichever way they lie in memory. Then every tile of c, HIGH x WIDE, is
 * the sum of the outer products along its two panels and stays in registers meanwhile. */
#include "product.h"

#include <string.h>

enum { HIGH = 6, WIDE = 16 };                          /* a tile of c: 12 registers of 8 floats */
enum { DEPTH = 256, ROWS = 16 * HIGH, COLUMNS = 256 }; /* pieces: 96 KiB of a, 256 KiB of b */

/* Half a row of a tile. */
typedef float half __attribute__((vector_size(WIDE / 2 * sizeof(float)), may_alias));

size_t product_room(void)
{
    return (size_t)DEPTH * (ROWS + COLUMNS);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* tile [HIGH, WIDE] = the panels' product over `depth`. */
static inline __attribute__((always_inline)) void multiply(
    int64_t depth, const float *high, const float *side, float *tile)
{
    half sums[HIGH][2];
    memset(sums, 0, sizeof sums);
    for (int64_t k = 0; k < depth; k++) {
        const half *row = (const half *)(side + k * WIDE);
        for (int i = 0; i < HIGH; i++) {
            sums[i][0] += high[k * HIGH + i] * row[0];
            sums[i][1] += high[k * HIGH + i] * row[1];
        }
    }
    memcpy(tile, sums, sizeof sums);
}

static void multiply_plainly(int64_t depth, const float *high, const float *side, float *tile)
{
    multiply(depth, high, side, tile);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void multiply_avx2(
    int64_t depth, const float *high, const float *side, float *tile)
{
    multiply(depth, high, side, tile);
}
#endif

typedef void (*multiply_function)(int64_t depth, const float *high, const float *side, float *tile);

static multiply_function multiply_here(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return multiply_avx2;
    }
#endif
    return multiply_plainly;
}

/* Panels of `width` lines along the depth: packed[panel][k][line], with zeros where there are no
 * lines. A line lies `line_step` from the next, its elements `depth_step` apart. */
static void pack(const float *from, int64_t rows, int64_t row_step, int64_t depth,
    int64_t depth_step, int64_t width, float *packed)
{
    for (int64_t first = 0; first < rows; first += width, packed += width * depth) {
        const int64_t count = least(width, rows - first);
        const float *panel = from + first * row_step;
        for (int64_t k = 0; k < depth; k++) {
            float *to = packed + k * width;
            for (int64_t i = 0; i < count; i++) {
                to[i] = panel[i * row_step + k * depth_step];
            }
            for (int64_t i = count; i < width; i++) {
                to[i] = 0;
            }
        }
    }
}

static void store(const float *tile, int64_t rows, int64_t columns, bool add, float *c, int64_t ldc)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            c[i * ldc + j] = tile[i * WIDE + j] + (add ? c[i * ldc + j] : 0);
        }
    }
}

/* A piece of each, over `depth` from `k` on. */
static void multiply_pieces(const struct product *p, int64_t column, int64_t k, int64_t depth,
    float *side, float *high, multiply_function multiply_tile)
{
    const int64_t columns = least(COLUMNS, p->n - column);
    const int64_t across_b = p->b.transposed ? p->b.ld : 1;
    const int64_t down_b = p->b.transposed ? 1 : p->b.ld;
    const int64_t down_a = p->a.transposed ? 1 : p->a.ld;
    const int64_t across_a = p->a.transposed ? p->a.ld : 1;
    const bool add = p->add || k > 0;
    float tile[HIGH * WIDE] __attribute__((aligned(64)));
    pack(p->b.data + column * across_b + k * down_b, columns, across_b, depth, down_b, WIDE, side);
    for (int64_t row = 0; row < p->m; row += ROWS) {
        const int64_t rows = least(ROWS, p->m - row);
        pack(p->a.data + row * down_a + k * across_a, rows, down_a, depth, across_a, HIGH, high);
        for (int64_t j = 0; j < columns; j += WIDE) {
            for (int64_t i = 0; i < rows; i += HIGH) {
                multiply_tile(depth, high + i * depth, side + j * depth, tile);
                store(tile, least(HIGH, rows - i), least(WIDE, columns - j), add,
                    p->c + (row + i) * p->ldc + column + j, p->ldc);
            }
        }
    }
}

void product_run(const struct product *product, float *room)
{
    float *side = room;
    float *high = room + (size_t)DEPTH * COLUMNS;
    const multiply_function multiply_tile = multiply_here();
    struct product one = *product;
    for (int64_t i = 0; i < product->batch; i++) {
        for (int64_t column = 0; column < one.n; column += COLUMNS) {
            for (int64_t k = 0; k < one.k; k += DEPTH) {
                multiply_pieces(
                    &one, column, k, least(DEPTH, one.k - k), side, high, multiply_tile);
            }
        }
        one.a.data += one.a.stride;
        one.b.data += one.b.stride;
        one.c += one.stride_c;
    }
}
