/* SPDX-License-Identifier: Apache-2.0
 * The loops of reduce_isa.h as plain C, and REDUCE_TABLE, the rows of their table. Each file of an
 * instruction set includes this once; one that defines REDUCE_HALVES_BY_HAND has the loops of the
 * 16-bit floats itself.
 *
 * `omp simd` promises that no element depends on another one: `into` is an input or apart. */
#ifndef CADRE_WORKER_MESH_REDUCE_REDUCE_LOOPS_H
#define CADRE_WORKER_MESH_REDUCE_REDUCE_LOOPS_H

#include <stdint.h>

#include "common/pure/half.h"
#include "worker/library/mesh/reduce/reduce_isa.h"

/* Element types at any address that alias anything: tensors are packed without padding. */
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef double any_f64 UNALIGNED;
typedef float any_f32 UNALIGNED;
typedef int64_t any_i64 UNALIGNED;
typedef int32_t any_i32 UNALIGNED;
typedef int16_t any_i16 UNALIGNED;
typedef uint64_t any_u64 UNALIGNED;
typedef uint32_t any_u32 UNALIGNED;
typedef uint16_t any_u16 UNALIGNED;
typedef int8_t any_i8 UNALIGNED;
typedef uint8_t any_u8 UNALIGNED;

/* One operation on two elements of a type. Sums and products of integers wrap: computed without
 * sign, and narrow ones in 32 bits. A NaN differs from itself. */
#define STEP(name, type, expression)                                                               \
    static inline type name(type a, type b)                                                        \
    {                                                                                              \
        return expression;                                                                         \
    }
#define FLOAT_STEPS(name, type)                                                                    \
    STEP(name##_sum, type, a + b)                                                                  \
    STEP(name##_prod, type, a *b)                                                                  \
    STEP(name##_min, type, a != a ? a : (b != b || b < a ? b : a))                                 \
    STEP(name##_max, type, a != a ? a : (b != b || b > a ? b : a))
#define INTEGER_STEPS(name, type, unsigned_type, wide)                                             \
    STEP(name##_sum, type, (type)(unsigned_type)((wide)a + (wide)b))                               \
    STEP(name##_prod, type, (type)(unsigned_type)((wide)a * (wide)b))                              \
    STEP(name##_min, type, b < a ? b : a)                                                          \
    STEP(name##_max, type, b > a ? b : a)
FLOAT_STEPS(f64, double)
FLOAT_STEPS(f32, float)
INTEGER_STEPS(i64, int64_t, uint64_t, uint64_t)
INTEGER_STEPS(i32, int32_t, uint32_t, uint32_t)
INTEGER_STEPS(i16, int16_t, uint16_t, uint32_t)
INTEGER_STEPS(i8, int8_t, uint8_t, uint32_t)
INTEGER_STEPS(u32, uint32_t, uint32_t, uint32_t)
INTEGER_STEPS(u16, uint16_t, uint16_t, uint32_t)
INTEGER_STEPS(u8, uint8_t, uint8_t, uint32_t)

#define IDENTITY(x) (x)

#define INS_2(type)                                                                                \
    const type *a = ins[0];                                                                        \
    const type *b = ins[1];
#define INS_3(type)                                                                                \
    INS_2(type)                                                                                    \
    const type *c = ins[2];
#define INS_4(type)                                                                                \
    INS_3(type)                                                                                    \
    const type *d = ins[3];
#define OUTS_2(type)                                                                               \
    type *out_a = outs[0];                                                                         \
    type *out_b = outs[1];
#define OUTS_3(type)                                                                               \
    OUTS_2(type)                                                                                   \
    type *out_c = outs[2];
#define OUTS_4(type)                                                                               \
    OUTS_3(type)                                                                                   \
    type *out_d = outs[3];
#define SET_2                                                                                      \
    out_a[i] = value;                                                                              \
    out_b[i] = value;
#define SET_3                                                                                      \
    SET_2                                                                                          \
    out_c[i] = value;
#define SET_4                                                                                      \
    SET_3                                                                                          \
    out_d[i] = value;

#define EACH(expression)                                                                           \
    _Pragma("omp simd") for (size_t i = 0; i < count; i++)                                         \
    {                                                                                              \
        result[i] = expression;                                                                    \
    }
#define LOOP(name, in_count, from, to, expression)                                                 \
    static void name##_##in_count(void *into, const void *const *ins, size_t count)                \
    {                                                                                              \
        to *result = into;                                                                         \
        INS_##in_count(from) EACH(expression)                                                      \
    }

#define LOOP_ALL(name, in_count, type, expression)                                                 \
    static void name##_##in_count(void *const *outs, const void *const *ins, size_t count)         \
    {                                                                                              \
        OUTS_##in_count(type) INS_##in_count(type)                                                 \
            _Pragma("omp simd") for (size_t i = 0; i < count; i++)                                 \
        {                                                                                          \
            type value = expression;                                                               \
            SET_##in_count                                                                         \
        }                                                                                          \
    }

/* Elements of `from`, read by WIDEN, joined by `step`, written by NARROW as `to`. */
#define LOOPS(name, from, to, step, WIDEN, NARROW)                                                 \
    LOOP(name, 2, from, to, NARROW(step(WIDEN(a[i]), WIDEN(b[i]))))                                \
    LOOP(name, 3, from, to, NARROW(step(step(WIDEN(a[i]), WIDEN(b[i])), WIDEN(c[i]))))             \
    LOOP(name, 4, from, to,                                                                        \
        NARROW(step(step(WIDEN(a[i]), WIDEN(b[i])), step(WIDEN(c[i]), WIDEN(d[i])))))

#define LOOPS_ALL(name, type, step, WIDEN, NARROW)                                                 \
    LOOP_ALL(name, 2, type, NARROW(step(WIDEN(a[i]), WIDEN(b[i]))))                                \
    LOOP_ALL(name, 3, type, NARROW(step(step(WIDEN(a[i]), WIDEN(b[i])), WIDEN(c[i]))))             \
    LOOP_ALL(name, 4, type,                                                                        \
        NARROW(step(step(WIDEN(a[i]), WIDEN(b[i])), step(WIDEN(c[i]), WIDEN(d[i])))))

#define OPS(name, from, to, type, WIDEN, NARROW)                                                   \
    LOOPS(name##_sum, from, to, type##_sum, WIDEN, NARROW)                                         \
    LOOPS(name##_prod, from, to, type##_prod, WIDEN, NARROW)                                       \
    LOOPS(name##_min, from, to, type##_min, WIDEN, NARROW)                                         \
    LOOPS(name##_max, from, to, type##_max, WIDEN, NARROW)

OPS(loop_f64, any_f64, any_f64, f64, IDENTITY, IDENTITY)
OPS(loop_f32, any_f32, any_f32, f32, IDENTITY, IDENTITY)
LOOPS_ALL(all_f64, any_f64, f64_sum, IDENTITY, IDENTITY)
LOOPS_ALL(all_f32, any_f32, f32_sum, IDENTITY, IDENTITY)
OPS(loop_i64, any_i64, any_i64, i64, IDENTITY, IDENTITY)
OPS(loop_i32, any_i32, any_i32, i32, IDENTITY, IDENTITY)
OPS(loop_i16, any_i16, any_i16, i16, IDENTITY, IDENTITY)
OPS(loop_i8, any_i8, any_i8, i8, IDENTITY, IDENTITY)
OPS(loop_u32, any_u32, any_u32, u32, IDENTITY, IDENTITY)
OPS(loop_u16, any_u16, any_u16, u16, IDENTITY, IDENTITY)
OPS(loop_u8, any_u8, any_u8, u8, IDENTITY, IDENTITY)

/* The 16-bit floats: results as they are, and in float32; and the conversions alone. */
#define HALF_LOOPS(name, WIDEN, NARROW)                                                            \
    OPS(loop_##name, any_u16, any_u16, f32, WIDEN, NARROW)                                         \
    LOOPS_ALL(all_##name, any_u16, f32_sum, WIDEN, NARROW)                                         \
    OPS(wide_##name, any_u16, any_f32, f32, WIDEN, IDENTITY)                                       \
    static void widen_##name(float *into, const void *from, size_t count)                          \
    {                                                                                              \
        any_f32 *result = into;                                                                    \
        const any_u16 *a = from;                                                                   \
        EACH(WIDEN(a[i]))                                                                          \
    }                                                                                              \
    static void narrow_##name(void *into, const float *from, size_t count)                         \
    {                                                                                              \
        any_u16 *result = into;                                                                    \
        const any_f32 *a = from;                                                                   \
        EACH(NARROW(a[i]))                                                                         \
    }

#ifndef REDUCE_HALVES_BY_HAND
HALF_LOOPS(f16, half_from_f16, half_to_f16)
HALF_LOOPS(bf16, half_from_bf16, half_to_bf16)
#endif

#define COUNTS(name)     .of = {name##_2, name##_3, name##_4}
#define COUNTS_ALL(name) .all = {name##_2, name##_3, name##_4}
#define ROWS(name)                                                                                 \
    [MESH_PROD] = {COUNTS(name##_prod)}, [MESH_MIN] = {COUNTS(name##_min)},                        \
    [MESH_MAX] = {COUNTS(name##_max)}
#define ROW(name)                                                                                  \
    {                                                                                              \
        [MESH_SUM] = {COUNTS(loop_##name##_sum)}, ROWS(loop_##name)                                \
    }
#define FLOAT_ROW(name)                                                                            \
    {                                                                                              \
        [MESH_SUM] = {COUNTS(loop_##name##_sum), COUNTS_ALL(all_##name)}, ROWS(loop_##name)        \
    }
#define WIDE_ROW(name)                                                                             \
    {                                                                                              \
        [MESH_SUM] = {COUNTS(wide_##name##_sum)}, ROWS(wide_##name)                                \
    }
#define REDUCE_TABLE                                                                               \
    .same = {[MESH_F64] = FLOAT_ROW(f64),                                                          \
        [MESH_F32] = FLOAT_ROW(f32),                                                               \
        [MESH_F16] = FLOAT_ROW(f16),                                                               \
        [MESH_BF16] = FLOAT_ROW(bf16),                                                             \
        [MESH_I64] = ROW(i64),                                                                     \
        [MESH_I32] = ROW(i32),                                                                     \
        [MESH_I16] = ROW(i16),                                                                     \
        [MESH_I8] = ROW(i8),                                                                       \
        [MESH_U32] = ROW(u32),                                                                     \
        [MESH_U16] = ROW(u16),                                                                     \
        [MESH_U8] = ROW(u8)},                                                                      \
    .wide = {[REDUCE_F16] = WIDE_ROW(f16), [REDUCE_BF16] = WIDE_ROW(bf16)},                        \
    .widen = {[REDUCE_F16] = widen_f16, [REDUCE_BF16] = widen_bf16},                               \
    .narrow = {[REDUCE_F16] = narrow_f16, [REDUCE_BF16] = narrow_bf16}

#endif
