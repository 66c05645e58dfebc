/* SPDX-License-Identifier: Apache-2.0
 * Reductions of many vectors against one element at a time in plain C: each operation and type, on
 * each instruction set that this processor has, at any address and length, in place and apart, with
 * extreme values. Equal bits on all sets follow from equal bits with the plain ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "common/pure/half.h"
#include "worker/library/mesh/reduce/reduce_isa.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

enum {
    INS_MAX = 70,
    COUNT_MAX = 3000, /* elements */
    GUARD = 64,
    VECTOR_BYTES = COUNT_MAX * 8 + 2 * GUARD
};

/* --- one element --- */

union element {
    double f64;
    float f32;
    uint16_t half;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    int8_t i8;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
};

#define REAL(op, a, b)                                                                             \
    ((op) == MESH_SUM       ? (a) + (b)                                                            \
        : (op) == MESH_PROD ? (a) * (b)                                                            \
        : isnan(a)          ? (a)                                                                  \
        : isnan(b)          ? (b)                                                                  \
        : (op) == MESH_MIN  ? ((b) < (a) ? (b) : (a))                                              \
                            : ((b) > (a) ? (b) : (a)))
#define WHOLE(op, a, b)                                                                            \
    ((op) == MESH_SUM       ? (int64_t)((uint64_t)(a) + (uint64_t)(b))                             \
        : (op) == MESH_PROD ? (int64_t)((uint64_t)(a) * (uint64_t)(b))                             \
        : (op) == MESH_MIN  ? ((b) < (a) ? (b) : (a))                                              \
                            : ((b) > (a) ? (b) : (a)))

static union element join(enum mesh_op op, enum mesh_dtype dtype, union element a, union element b)
{
    union element into = {.i64 = 0};
    switch (dtype) {
    case MESH_F64:
        into.f64 = REAL(op, a.f64, b.f64);
        break;
    case MESH_I64:
        into.i64 = WHOLE(op, a.i64, b.i64);
        break;
    case MESH_I32:
        into.i32 = (int32_t)WHOLE(op, a.i32, b.i32);
        break;
    case MESH_I16:
        into.i16 = (int16_t)WHOLE(op, a.i16, b.i16);
        break;
    case MESH_I8:
        into.i8 = (int8_t)WHOLE(op, a.i8, b.i8);
        break;
    case MESH_U32:
        into.u32 = (uint32_t)WHOLE(op, a.u32, b.u32);
        break;
    case MESH_U16:
        into.u16 = (uint16_t)WHOLE(op, a.u16, b.u16);
        break;
    case MESH_U8:
        into.u8 = (uint8_t)WHOLE(op, a.u8, b.u8);
        break;
    default: /* the 16-bit ones have become float32 */
        into.f32 = REAL(op, a.f32, b.f32);
        break;
    }
    return into;
}

static bool is_half(enum mesh_dtype dtype)
{
    return dtype == MESH_F16 || dtype == MESH_BF16;
}

static union element leaf(enum mesh_dtype dtype, const uint8_t *from)
{
    union element element = {.i64 = 0};
    memcpy(&element, from, mesh_dtype_bytes(dtype));
    if (is_half(dtype)) {
        element.f32 =
            dtype == MESH_F16 ? half_from_f16(element.half) : half_from_bf16(element.half);
    }
    return element;
}

/* The block [first, first + width) of the canonical tree, cut at `in_count`; first < in_count. */
static union element tree(enum mesh_op op, enum mesh_dtype dtype, const uint8_t *const *ins,
    size_t in_count, size_t first, size_t width, size_t at)
{
    if (width == 1) {
        return leaf(dtype, ins[first] + at);
    }
    union element left = tree(op, dtype, ins, in_count, first, width / 2, at);
    if (first + width / 2 >= in_count) {
        return left;
    }
    return join(op, dtype, left, tree(op, dtype, ins, in_count, first + width / 2, width / 2, at));
}

static bool is_nan(enum mesh_dtype dtype, const uint8_t *at)
{
    union element element = leaf(dtype, at);
    return dtype == MESH_F64 ? isnan(element.f64)
                             : (dtype == MESH_F32 || is_half(dtype)) && isnan(element.f32);
}

/* The bits, but for those of a NaN. */
static void assert_same(enum mesh_dtype dtype, const uint8_t *wanted, const uint8_t *got)
{
    if (is_nan(dtype, wanted)) {
        assert_true(is_nan(dtype, got));
    } else {
        assert_memory_equal(wanted, got, mesh_dtype_bytes(dtype));
    }
}

/* --- vectors --- */

static uint8_t *memory[INS_MAX + 4];
static uint8_t *scratch;
static uint8_t *wanted;

static int make_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < INS_MAX + 4; i++) {
        memory[i] = malloc(VECTOR_BYTES);
    }
    wanted = malloc(VECTOR_BYTES);
    size_t bytes = (mesh_reduce_scratch_bytes(INS_MAX) + 63) / 64 * 64;
    scratch = aligned_alloc(64, bytes);
    return wanted == NULL || scratch == NULL;
}

static int free_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < INS_MAX + 4; i++) {
        free(memory[i]);
    }
    free(wanted);
    free(scratch);
    return 0;
}

/* NaN quiet and signalling, infinities, the largest, the smallest, subnormal, zeros, ones, halves
 * of the last digit. As float32; the other types take their bytes. */
static const uint32_t corners[] = {0x7fc00001, 0x7f800001, 0xffc00000, 0x7f800000, 0xff800000,
    0x7f7fffff, 0xff7fffff, 0x00800000, 0x007fffff, 0x00000001, 0x80000001, 0, 0x80000000,
    0x3f800000, 0xbf800000, 0x3f808000, 0x3f818000, 0x3f801000, 0x477fe000, 0x477ff000, 0x33000000,
    0x33000001, 0x387fc000, 0x38800000};

static void fill_element(struct prng *prng, enum mesh_dtype dtype, uint8_t *into)
{
    uint64_t bits = prng_next(prng);
    uint32_t corner = corners[prng_uniform(prng, CADRE_COUNT_OF(corners))];
    bool special = prng_chance(prng, 1, 8);
    float value = special ? half_float_of(corner)
                          : (float)((double)(int64_t)bits / 0x1p63 * (double)(1 + bits % 97));
    bool raw = prng_chance(prng, 1, 8);
    double wide = special ? (double)value : (double)(int64_t)bits / 0x1p60;
    uint16_t half = dtype == MESH_F16 ? half_to_f16(value) : half_to_bf16(value);
    switch (raw ? MESH_I64 : dtype) {
    case MESH_F64:
        memcpy(into, &wide, sizeof wide);
        break;
    case MESH_F32:
        memcpy(into, &value, sizeof value);
        break;
    case MESH_F16:
    case MESH_BF16:
        memcpy(into, &half, sizeof half);
        break;
    default:
        memcpy(into, &bits, mesh_dtype_bytes(dtype));
        break;
    }
}

/* One reduction and the addresses of its vectors. */
struct trial {
    enum mesh_op op;
    enum mesh_dtype dtype;
    size_t in_count;
    size_t out_count;
    bool in_place; /* outputs are inputs, in turned order */
    size_t at;     /* bytes */
    size_t count;  /* elements */
    const uint8_t *ins[INS_MAX];
    uint8_t *outs[INS_MAX];
};

static void lay_out(struct trial *trial, struct prng *prng)
{
    size_t size = mesh_dtype_bytes(trial->dtype);
    trial->at = prng_uniform(prng, 8) * size;
    for (size_t i = 0; i < trial->in_count; i++) {
        uint8_t *vector = memory[i] + GUARD / 2 + prng_uniform(prng, 8);
        trial->ins[i] = vector;
        for (size_t e = 0; e < trial->count; e++) {
            fill_element(prng, trial->dtype, vector + trial->at + e * size);
        }
    }
    for (size_t i = 0; i < trial->out_count; i++) {
        if (trial->in_place) {
            size_t turned = (i + trial->in_count / 2) % trial->in_count;
            trial->outs[i] = (uint8_t *)(uintptr_t)trial->ins[turned];
        } else {
            trial->outs[i] = memory[INS_MAX + i] + GUARD / 2 + prng_uniform(prng, 8);
        }
        trial->outs[i][trial->at - 1] = 0xa5;
        trial->outs[i][trial->at + trial->count * size] = 0xa5;
    }
}

static void compute_wanted(const struct trial *trial)
{
    size_t size = mesh_dtype_bytes(trial->dtype);
    size_t width = 1;
    while (width < trial->in_count) {
        width *= 2;
    }
    for (size_t e = 0; e < trial->count; e++) {
        union element element = tree(
            trial->op, trial->dtype, trial->ins, trial->in_count, 0, width, trial->at + e * size);
        if (is_half(trial->dtype)) {
            element.half =
                trial->dtype == MESH_F16 ? half_to_f16(element.f32) : half_to_bf16(element.f32);
        }
        memcpy(wanted + e * size, &element, size);
    }
}

static void check(const struct trial *trial, const uint8_t *got)
{
    size_t size = mesh_dtype_bytes(trial->dtype);
    for (size_t e = 0; e < trial->count; e++) {
        assert_same(trial->dtype, wanted + e * size, got + e * size);
    }
}

static void run_trial(struct trial *trial, struct prng *prng)
{
    size_t bytes = trial->count * mesh_dtype_bytes(trial->dtype);
    lay_out(trial, prng);
    compute_wanted(trial);
    mesh_reduce_many(trial->op, trial->dtype, trial->outs, trial->out_count, trial->ins,
        trial->in_count, trial->at, bytes, trial->in_count <= 4 ? NULL : scratch);
    for (size_t i = 0; i < trial->out_count; i++) {
        check(trial, trial->outs[i] + trial->at);
        assert_int_equal(trial->outs[i][trial->at - 1], 0xa5);
        assert_int_equal(trial->outs[i][trial->at + bytes], 0xa5);
    }
}

/* --- the tests; each for every instruction set --- */

static void on_every_set(void (*test)(struct prng *prng))
{
    const struct reduce_isa *isas[2];
    size_t isa_count = reduce_isas(isas);
    for (size_t i = 0; i < isa_count; i++) {
        struct prng prng = {.state = 17};
        reduce_isa_use(isas[i]);
        test(&prng);
    }
}

static size_t some_count(struct prng *prng, size_t in_count)
{
    static const size_t counts[] = {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 63, 100, 257};
    if (prng_chance(prng, 1, 6)) { /* several tiles */
        return COUNT_MAX / 2 / in_count + prng_uniform(prng, COUNT_MAX / 2);
    }
    return counts[prng_uniform(prng, CADRE_COUNT_OF(counts))];
}

static void many(struct prng *prng)
{
    static const size_t in_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 21, 64, 65, INS_MAX};
    for (unsigned dtype = 0; dtype < MESH_DTYPE_COUNT; dtype++) {
        for (unsigned op = 0; op < MESH_OP_COUNT; op++) {
            for (size_t i = 0; i < CADRE_COUNT_OF(in_counts); i++) {
                for (size_t out_count = 1; out_count <= 4; out_count++) {
                    struct trial trial = {.op = (enum mesh_op)op,
                        .dtype = (enum mesh_dtype)dtype,
                        .in_count = in_counts[i],
                        .out_count = out_count,
                        .count = in_counts[i] > 16 ? prng_uniform(prng, 40)
                                                   : some_count(prng, in_counts[i])};
                    run_trial(&trial, prng);
                    trial.in_place = true;
                    trial.out_count = out_count < trial.in_count ? out_count : trial.in_count;
                    run_trial(&trial, prng);
                }
            }
        }
    }
}

static void test_many(void **state)
{
    (void)state;
    on_every_set(many);
}

/* A tree in two parts, the right one cut, and rounding at last: the bits of one reduction. */
static void parts(struct prng *prng)
{
    for (unsigned dtype = 0; dtype < MESH_DTYPE_COUNT; dtype++) {
        for (size_t in_count = 5; in_count <= 32; in_count++) {
            size_t left = in_count <= 8 ? 4 : (in_count <= 16 ? 8 : 16);
            struct trial trial = {.op = (enum mesh_op)(in_count % MESH_OP_COUNT),
                .dtype = (enum mesh_dtype)dtype,
                .in_count = in_count,
                .out_count = 1,
                .count = prng_uniform(prng, 1500)};
            enum mesh_dtype part_dtype = mesh_reduce_part_dtype(trial.dtype);
            size_t bytes = trial.count * mesh_dtype_bytes(trial.dtype);
            size_t part_bytes = trial.count * mesh_dtype_bytes(part_dtype);
            lay_out(&trial, prng);
            compute_wanted(&trial);
            uint8_t *halves[] = {memory[INS_MAX + 2], memory[INS_MAX + 3]};
            mesh_reduce_part(
                trial.op, trial.dtype, halves[0], trial.ins, left, trial.at, bytes, scratch);
            mesh_reduce_part(trial.op, trial.dtype, halves[1], trial.ins + left, in_count - left,
                trial.at, bytes, scratch);
            mesh_reduce_pair(trial.op, part_dtype, halves[0], halves[0], halves[1], part_bytes);
            if (is_half(trial.dtype)) {
                mesh_narrow(
                    trial.dtype, halves[1], (const float *)(const void *)halves[0], trial.count);
            }
            check(&trial, is_half(trial.dtype) ? halves[1] : halves[0]);
        }
    }
}

static void test_parts(void **state)
{
    (void)state;
    on_every_set(parts);
}

/* Here the bits of NaNs too. */
static void conversions(struct prng *prng)
{
    enum { COUNT = 65536 + 5 };
    uint16_t *halves = malloc(COUNT * sizeof *halves);
    float *floats = malloc(COUNT * sizeof *floats);
    assert_true(halves != NULL && floats != NULL);
    for (size_t i = 0; i < COUNT; i++) {
        halves[i] = (uint16_t)i;
    }
    mesh_widen(MESH_F16, floats, halves, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(half_bits_of(floats[i]), half_bits_of(half_from_f16((uint16_t)i)));
    }
    mesh_widen(MESH_BF16, floats, halves, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(half_bits_of(floats[i]), half_bits_of(half_from_bf16((uint16_t)i)));
    }
    for (size_t i = 0; i < COUNT; i++) {
        floats[i] =
            half_float_of(i < CADRE_COUNT_OF(corners) ? corners[i] : (uint32_t)prng_next(prng));
    }
    mesh_narrow(MESH_F16, halves, floats, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(halves[i], half_to_f16(floats[i]));
    }
    mesh_narrow(MESH_BF16, halves, floats, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(halves[i], half_to_bf16(floats[i]));
    }
    free(halves);
    free(floats);
}

static void test_conversions(void **state)
{
    (void)state;
    on_every_set(conversions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_conversions),
    };
    return cmocka_run_group_tests(tests, make_vectors, free_vectors);
}
