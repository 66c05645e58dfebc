/* SPDX-License-Identifier: Apache-2.0
 * The loops of store_isa.h as plain C, and STORE_LOOPS, their table. Each file of an instruction
 * set includes this once. */
#ifndef CADRE_PS_STORE_STORE_LOOPS_H
#define CADRE_PS_STORE_STORE_LOOPS_H

#include <stdint.h>

#include "common/pure/half.h"
#include "worker/library/ps/store/store_isa.h"

/* Values come from the network and have any alignment. */
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef double any_f64 UNALIGNED;
typedef float any_f32 UNALIGNED;
typedef uint64_t any_u64 UNALIGNED;
typedef uint32_t any_u32 UNALIGNED;
typedef uint16_t any_u16 UNALIGNED;
typedef uint8_t any_u8 UNALIGNED;

#define IDENTITY(x) (x)

/* into and from in their types, widened for the computation, narrowed for the result. */
#define ELEMENT_LOOP(name, into_type, from_type, WIDEN, operator, FROM, NARROW)                    \
    static void name(void *into, const void *from, size_t count)                                   \
    {                                                                                              \
        into_type *restrict result = into;                                                         \
        const from_type *restrict value = from;                                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            result[i] = NARROW(WIDEN(result[i]) operator FROM(value[i]));                          \
        }                                                                                          \
    }
#define BOTH_LOOPS(name, into_type, from_type, WIDEN, FROM, NARROW)                                \
    ELEMENT_LOOP(add_##name, into_type, from_type, WIDEN, +, FROM, NARROW)                         \
    ELEMENT_LOOP(sub_##name, into_type, from_type, WIDEN, -, FROM, NARROW)

#define TO_U16(x) ((uint16_t)(x))
#define TO_U8(x)  ((uint8_t)(x))
BOTH_LOOPS(f64, any_f64, any_f64, IDENTITY, IDENTITY, IDENTITY)
BOTH_LOOPS(f32, any_f32, any_f32, IDENTITY, IDENTITY, IDENTITY)
BOTH_LOOPS(f16, any_u16, any_u16, half_from_f16, half_from_f16, half_to_f16)
BOTH_LOOPS(bf16, any_u16, any_u16, half_from_bf16, half_from_bf16, half_to_bf16)
BOTH_LOOPS(u64, any_u64, any_u64, IDENTITY, IDENTITY, IDENTITY)
BOTH_LOOPS(u32, any_u32, any_u32, IDENTITY, IDENTITY, IDENTITY)
BOTH_LOOPS(u16, any_u16, any_u16, IDENTITY, IDENTITY, TO_U16)
BOTH_LOOPS(u8, any_u8, any_u8, IDENTITY, IDENTITY, TO_U8)
ELEMENT_LOOP(sum_f16, any_f32, any_u16, IDENTITY, +, half_from_f16, IDENTITY)
ELEMENT_LOOP(sum_bf16, any_f32, any_u16, IDENTITY, +, half_from_bf16, IDENTITY)
BOTH_LOOPS(sum_f16, any_u16, any_f32, half_from_f16, IDENTITY, half_to_f16)
BOTH_LOOPS(sum_bf16, any_u16, any_f32, half_from_bf16, IDENTITY, half_to_bf16)

#define MEAN_LOOP(name, type, any)                                                                 \
    static void mean_##name(void *into, const void *sums, double contributions, size_t count)      \
    {                                                                                              \
        any *restrict result = into;                                                               \
        const any *restrict sum = sums;                                                            \
        const type by = (type)contributions;                                                       \
        for (size_t i = 0; i < count; i++) {                                                       \
            result[i] = sum[i] / by;                                                               \
        }                                                                                          \
    }
MEAN_LOOP(f64, double, any_f64)
MEAN_LOOP(f32, float, any_f32)

#define LOOPS_OF(kind)                                                                             \
    {                                                                                              \
        [CADRE_F64] = kind##_f64, [CADRE_F32] = kind##_f32, [CADRE_F16] = kind##_f16,              \
        [CADRE_BF16] = kind##_bf16, [CADRE_I64] = kind##_u64, [CADRE_I32] = kind##_u32,            \
        [CADRE_I16] = kind##_u16, [CADRE_U32] = kind##_u32, [CADRE_U16] = kind##_u16,              \
        [CADRE_I8] = kind##_u8, [CADRE_U8] = kind##_u8                                             \
    }
#define SUM_LOOPS_OF(kind, halves)                                                                 \
    {                                                                                              \
        [CADRE_F64] = kind##_f64, [CADRE_F32] = kind##_f32, [CADRE_F16] = halves##_f16,            \
        [CADRE_BF16] = halves##_bf16, [CADRE_I64] = kind##_u64, [CADRE_I32] = kind##_u32,          \
        [CADRE_I16] = kind##_u16, [CADRE_U32] = kind##_u32, [CADRE_U16] = kind##_u16,              \
        [CADRE_I8] = kind##_u8, [CADRE_U8] = kind##_u8                                             \
    }
#define FLOATS_OF(kind)                                                                            \
    {                                                                                              \
        [CADRE_F64] = kind##_f64, [CADRE_F32] = kind##_f32                                         \
    }
#define STORE_LOOPS                                                                                \
    .add = LOOPS_OF(add), .sub = LOOPS_OF(sub), .sum = SUM_LOOPS_OF(add, sum),                     \
    .add_sum = SUM_LOOPS_OF(add, add_sum), .sub_sum = SUM_LOOPS_OF(sub, sub_sum),                  \
    .mean = FLOATS_OF(mean)

#endif
