/* SPDX-License-Identifier: Apache-2.0
 * The loops for x86-64 with AVX2 and F16C. Those of the 16-bit floats are by hand: the compilers do
 * not make F16C of the conversions in plain C, and need three times as many instructions for
 * rounding to bfloat16. reduce_kernels.c chooses this table. */
#include <immintrin.h>
#include <string.h>

#include "worker/library/mesh/reduce/reduce_isa.h"

/* Sixteen elements in float32: of float16 the first and the last eight, of bfloat16 those at even
 * and those at odd indices, which is how they come out of a word without shuffling. */
#define LANES 16
struct lanes {
    __m256 x;
    __m256 y;
};

#define INLINE static inline __attribute__((always_inline))

/* --- operations --- */

typedef __m256 vector_step(__m256 a, __m256 b);

INLINE __m256 vector_sum(__m256 a, __m256 b)
{
    return _mm256_add_ps(a, b);
}

INLINE __m256 vector_prod(__m256 a, __m256 b)
{
    return _mm256_mul_ps(a, b);
}

/* The left NaN, else the right one, else `chosen`. */
INLINE __m256 vector_or_nan(__m256 a, __m256 b, __m256 chosen)
{
    __m256 right = _mm256_blendv_ps(chosen, b, _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
    return _mm256_blendv_ps(right, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

/* Where the two compare equal the instruction gives its second operand. */
INLINE __m256 vector_min(__m256 a, __m256 b)
{
    return vector_or_nan(a, b, _mm256_min_ps(b, a));
}

INLINE __m256 vector_max(__m256 a, __m256 b)
{
    return vector_or_nan(a, b, _mm256_max_ps(b, a));
}

INLINE struct lanes join(struct lanes a, struct lanes b, vector_step *step)
{
    return (struct lanes){.x = step(a.x, b.x), .y = step(a.y, b.y)};
}

/* --- bfloat16 --- */

/* The upper 16 bits are the result, as of half_to_bf16. */
INLINE __m256i rounded_to_bf16(__m256 vector)
{
    __m256i bits = _mm256_castps_si256(vector);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
}

INLINE __m256i with_quiet_nans(__m256i rounded, __m256 vector)
{
    __m256i quiet = _mm256_or_si256(_mm256_castps_si256(vector), _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(vector, vector, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quiet, nan);
}

INLINE __m256i to_bf16(struct lanes lanes)
{
    __m256i even = rounded_to_bf16(lanes.x);
    __m256i odd = rounded_to_bf16(lanes.y);
    if (_mm256_movemask_ps(_mm256_cmp_ps(lanes.x, lanes.y, _CMP_UNORD_Q)) != 0) {
        even = with_quiet_nans(even, lanes.x);
        odd = with_quiet_nans(odd, lanes.y);
    }
    return _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xaa);
}

INLINE struct lanes from_bf16(__m256i pairs)
{
    return (struct lanes){.x = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)),
        .y = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000)))};
}

/* --- memory; `half` is a constant --- */

INLINE struct lanes load_halves(const uint16_t *from, int half)
{
    if (half == REDUCE_BF16) {
        return from_bf16(_mm256_loadu_si256((const void *)from));
    }
    return (struct lanes){.x = _mm256_cvtph_ps(_mm_loadu_si128((const void *)from)),
        .y = _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + LANES / 2)))};
}

INLINE __m256i halves_of(struct lanes lanes, int half)
{
    if (half == REDUCE_BF16) {
        return to_bf16(lanes);
    }
    return _mm256_set_m128i(_mm256_cvtps_ph(lanes.y, _MM_FROUND_TO_NEAREST_INT),
        _mm256_cvtps_ph(lanes.x, _MM_FROUND_TO_NEAREST_INT));
}

INLINE void store_halves(uint16_t *into, __m256i halves)
{
    _mm256_storeu_si256((void *)into, halves);
}

INLINE void store_wide(float *into, struct lanes lanes, int half)
{
    if (half == REDUCE_BF16) {
        __m256 low = _mm256_unpacklo_ps(lanes.x, lanes.y);
        __m256 high = _mm256_unpackhi_ps(lanes.x, lanes.y);
        lanes.x = _mm256_permute2f128_ps(low, high, 0x20);
        lanes.y = _mm256_permute2f128_ps(low, high, 0x31);
    }
    _mm256_storeu_ps(into, lanes.x);
    _mm256_storeu_ps(into + LANES / 2, lanes.y);
}

INLINE struct lanes load_wide(const float *from, int half)
{
    struct lanes lanes = {.x = _mm256_loadu_ps(from), .y = _mm256_loadu_ps(from + LANES / 2)};
    if (half == REDUCE_BF16) {
        __m256 first = _mm256_permute2f128_ps(lanes.x, lanes.y, 0x20);
        __m256 last = _mm256_permute2f128_ps(lanes.x, lanes.y, 0x31);
        lanes.x = _mm256_shuffle_ps(first, last, 0x88);
        lanes.y = _mm256_shuffle_ps(first, last, 0xdd);
    }
    return lanes;
}

/* --- loops; all arguments behind `count` are constants where they are called --- */

INLINE struct lanes tree_at(
    const uint16_t *const *ins, size_t in_count, size_t at, int half, vector_step *step)
{
    struct lanes left = load_halves(ins[0] + at, half);
    if (in_count == 1) {
        return left;
    }
    left = join(left, load_halves(ins[1] + at, half), step);
    if (in_count == 2) {
        return left;
    }
    struct lanes right = load_halves(ins[2] + at, half);
    if (in_count == 4) {
        right = join(right, load_halves(ins[3] + at, half), step);
    }
    return join(left, right, step);
}

/* The last few elements, in blocks of their own: the inputs are set to these. */
struct rest {
    uint16_t blocks[REDUCE_INS_MAX][LANES];
};

INLINE void copy_rest(
    struct rest *rest, const uint16_t **ins, size_t in_count, size_t at, size_t count)
{
    memset(rest, 0, sizeof *rest);
    for (size_t i = 0; i < in_count; i++) {
        memcpy(rest->blocks[i], ins[i] + at, count * sizeof rest->blocks[i][0]);
        ins[i] = rest->blocks[i];
    }
}

INLINE void halves_loop(void *const *outs, const void *const *from, size_t count, size_t out_count,
    size_t in_count, int half, vector_step *step)
{
    const uint16_t *ins[REDUCE_INS_MAX];
    uint16_t *into[REDUCE_INS_MAX];
    size_t at = 0;
    for (size_t i = 0; i < in_count; i++) {
        ins[i] = from[i];
    }
    for (size_t i = 0; i < out_count; i++) {
        into[i] = outs[i];
    }
    for (; at + LANES <= count; at += LANES) {
        __m256i halves = halves_of(tree_at(ins, in_count, at, half, step), half);
        for (size_t i = 0; i < out_count; i++) {
            store_halves(into[i] + at, halves);
        }
    }
    if (at < count) {
        struct rest rest;
        uint16_t halves[LANES];
        copy_rest(&rest, ins, in_count, at, count - at);
        store_halves(halves, halves_of(tree_at(ins, in_count, 0, half, step), half));
        for (size_t i = 0; i < out_count; i++) {
            memcpy(into[i] + at, halves, (count - at) * sizeof halves[0]);
        }
    }
}

INLINE void wide_loop(
    void *into, const void *const *from, size_t count, size_t in_count, int half, vector_step *step)
{
    const uint16_t *ins[REDUCE_INS_MAX];
    size_t at = 0;
    for (size_t i = 0; i < in_count; i++) {
        ins[i] = from[i];
    }
    for (; at + LANES <= count; at += LANES) {
        store_wide((float *)into + at, tree_at(ins, in_count, at, half, step), half);
    }
    if (at < count) {
        struct rest rest;
        float floats[LANES];
        copy_rest(&rest, ins, in_count, at, count - at);
        store_wide(floats, tree_at(ins, in_count, 0, half, step), half);
        memcpy((float *)into + at, floats, (count - at) * sizeof floats[0]);
    }
}

INLINE void narrow_loop(void *into, const float *from, size_t count, int half)
{
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        store_halves((uint16_t *)into + at, halves_of(load_wide(from + at, half), half));
    }
    if (at < count) {
        float floats[LANES] = {0};
        uint16_t halves[LANES];
        memcpy(floats, from + at, (count - at) * sizeof floats[0]);
        store_halves(halves, halves_of(load_wide(floats, half), half));
        memcpy((uint16_t *)into + at, halves, (count - at) * sizeof halves[0]);
    }
}

#define LOOP_BY_HAND(name, op, in_count, half)                                                     \
    static void loop_##name##_##op##_##in_count(void *into, const void *const *ins, size_t count)  \
    {                                                                                              \
        halves_loop(&into, ins, count, 1, in_count, half, vector_##op);                            \
    }                                                                                              \
    static void wide_##name##_##op##_##in_count(void *into, const void *const *ins, size_t count)  \
    {                                                                                              \
        wide_loop(into, ins, count, in_count, half, vector_##op);                                  \
    }
#define OP_BY_HAND(name, op, half)                                                                 \
    LOOP_BY_HAND(name, op, 2, half)                                                                \
    LOOP_BY_HAND(name, op, 3, half)                                                                \
    LOOP_BY_HAND(name, op, 4, half)
#define ALL_BY_HAND(name, in_count, half)                                                          \
    static void all_##name##_##in_count(void *const *outs, const void *const *ins, size_t count)   \
    {                                                                                              \
        halves_loop(outs, ins, count, in_count, in_count, half, vector_sum);                       \
    }
#define LOOPS_BY_HAND(name, half)                                                                  \
    OP_BY_HAND(name, sum, half)                                                                    \
    OP_BY_HAND(name, prod, half)                                                                   \
    OP_BY_HAND(name, min, half)                                                                    \
    OP_BY_HAND(name, max, half)                                                                    \
    ALL_BY_HAND(name, 2, half)                                                                     \
    ALL_BY_HAND(name, 3, half)                                                                     \
    ALL_BY_HAND(name, 4, half)                                                                     \
    static void widen_##name(float *into, const void *from, size_t count)                          \
    {                                                                                              \
        wide_loop(into, &from, count, 1, half, vector_sum);                                        \
    }                                                                                              \
    static void narrow_##name(void *into, const float *from, size_t count)                         \
    {                                                                                              \
        narrow_loop(into, from, count, half);                                                      \
    }

LOOPS_BY_HAND(f16, REDUCE_F16)
LOOPS_BY_HAND(bf16, REDUCE_BF16)

#define REDUCE_HALVES_BY_HAND
#include "worker/library/mesh/reduce/reduce_loops.h"

const struct reduce_isa reduce_isa_avx2 = {.name = "avx2", REDUCE_TABLE};
