/* SPDX-License-Identifier: Apache-2.0
 * The kernels: plain loops, one per operation and element type, written twice: into a third place
 * and into the left operand, so that the compiler may vectorise both without a test for overlap. */
#include "worker/mesh/reduce_kernels.h"

#include "common/pure/assert.h"
#include "worker/mesh/half.h"
#include "worker/mesh/names.h"

/* Element types that may lie anywhere and alias anything: tensors are packed without padding. */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef double any_f64 ANYWHERE;
typedef float any_f32 ANYWHERE;
typedef int64_t any_i64 ANYWHERE;
typedef int32_t any_i32 ANYWHERE;
typedef int16_t any_i16 ANYWHERE;
typedef uint64_t any_u64 ANYWHERE;
typedef uint32_t any_u32 ANYWHERE;
typedef uint16_t any_u16 ANYWHERE;
typedef int8_t any_i8 ANYWHERE;
typedef uint8_t any_u8 ANYWHERE;

typedef void pair_kernel(
    void *restrict into, const void *restrict left, const void *restrict right, size_t count);
typedef void onto_kernel(void *restrict left, const void *restrict right, size_t count);

struct kernel {
    pair_kernel *pair;
    onto_kernel *onto;
};

/* Both forms of one kernel. STEP(a, b) is the operation on two elements of `type`. */
#define KERNEL(name, type, STEP)                                                                   \
    static void name##_pair(                                                                       \
        void *restrict into, const void *restrict left, const void *restrict right, size_t count)  \
    {                                                                                              \
        type *to = into;                                                                           \
        const type *a = left;                                                                      \
        const type *b = right;                                                                     \
        for (size_t i = 0; i < count; i++) {                                                       \
            to[i] = STEP(a[i], b[i]);                                                              \
        }                                                                                          \
    }                                                                                              \
    static void name##_onto(void *restrict left, const void *restrict right, size_t count)         \
    {                                                                                              \
        type *a = left;                                                                            \
        const type *b = right;                                                                     \
        for (size_t i = 0; i < count; i++) {                                                       \
            a[i] = STEP(a[i], b[i]);                                                               \
        }                                                                                          \
    }

#define FLOAT_SUM(a, b)  ((a) + (b))
#define FLOAT_PROD(a, b) ((a) * (b))
/* A NaN differs from itself. */
#define FLOAT_MIN(a, b)  ((a) != (a) ? (a) : ((b) != (b) || (b) < (a) ? (b) : (a)))
#define FLOAT_MAX(a, b)  ((a) != (a) ? (a) : ((b) != (b) || (b) > (a) ? (b) : (a)))
#define INT_MIN_OF(a, b) ((b) < (a) ? (b) : (a))
#define INT_MAX_OF(a, b) ((b) > (a) ? (b) : (a))
/* Sums and products of integers wrap: computed without sign, and narrow ones in 32 bits. */
#define WRAP64_SUM(a, b)  ((a) + (b))
#define WRAP64_PROD(a, b) ((a) * (b))
#define WRAP16_SUM(a, b)  ((uint16_t)((uint32_t)(a) + (uint32_t)(b)))
#define WRAP16_PROD(a, b) ((uint16_t)((uint32_t)(a) * (uint32_t)(b)))
#define WRAP8_SUM(a, b)   ((uint8_t)((uint32_t)(a) + (uint32_t)(b)))
#define WRAP8_PROD(a, b)  ((uint8_t)((uint32_t)(a) * (uint32_t)(b)))
#define F16_SUM(a, b)     half_to_f16(half_from_f16(a) + half_from_f16(b))
#define F16_PROD(a, b)    half_to_f16(half_from_f16(a) * half_from_f16(b))
#define BF16_SUM(a, b)    half_to_bf16(half_from_bf16(a) + half_from_bf16(b))
#define BF16_PROD(a, b)   half_to_bf16(half_from_bf16(a) * half_from_bf16(b))

static inline float float_min(float a, float b)
{
    return FLOAT_MIN(a, b);
}

static inline float float_max(float a, float b)
{
    return FLOAT_MAX(a, b);
}

#define F16_MIN(a, b)  half_to_f16(float_min(half_from_f16(a), half_from_f16(b)))
#define F16_MAX(a, b)  half_to_f16(float_max(half_from_f16(a), half_from_f16(b)))
#define BF16_MIN(a, b) half_to_bf16(float_min(half_from_bf16(a), half_from_bf16(b)))
#define BF16_MAX(a, b) half_to_bf16(float_max(half_from_bf16(a), half_from_bf16(b)))

KERNEL(f64_sum, any_f64, FLOAT_SUM)
KERNEL(f64_prod, any_f64, FLOAT_PROD)
KERNEL(f64_min, any_f64, FLOAT_MIN)
KERNEL(f64_max, any_f64, FLOAT_MAX)
KERNEL(f32_sum, any_f32, FLOAT_SUM)
KERNEL(f32_prod, any_f32, FLOAT_PROD)
KERNEL(f32_min, any_f32, FLOAT_MIN)
KERNEL(f32_max, any_f32, FLOAT_MAX)
KERNEL(f16_sum, any_u16, F16_SUM)
KERNEL(f16_prod, any_u16, F16_PROD)
KERNEL(f16_min, any_u16, F16_MIN)
KERNEL(f16_max, any_u16, F16_MAX)
KERNEL(bf16_sum, any_u16, BF16_SUM)
KERNEL(bf16_prod, any_u16, BF16_PROD)
KERNEL(bf16_min, any_u16, BF16_MIN)
KERNEL(bf16_max, any_u16, BF16_MAX)
KERNEL(i64_sum, any_u64, WRAP64_SUM)
KERNEL(i64_prod, any_u64, WRAP64_PROD)
KERNEL(i64_min, any_i64, INT_MIN_OF)
KERNEL(i64_max, any_i64, INT_MAX_OF)
KERNEL(i32_sum, any_u32, WRAP64_SUM)
KERNEL(i32_prod, any_u32, WRAP64_PROD)
KERNEL(i32_min, any_i32, INT_MIN_OF)
KERNEL(i32_max, any_i32, INT_MAX_OF)
KERNEL(i16_sum, any_u16, WRAP16_SUM)
KERNEL(i16_prod, any_u16, WRAP16_PROD)
KERNEL(i16_min, any_i16, INT_MIN_OF)
KERNEL(i16_max, any_i16, INT_MAX_OF)
KERNEL(i8_sum, any_u8, WRAP8_SUM)
KERNEL(i8_prod, any_u8, WRAP8_PROD)
KERNEL(i8_min, any_i8, INT_MIN_OF)
KERNEL(i8_max, any_i8, INT_MAX_OF)
KERNEL(u8_min, any_u8, INT_MIN_OF)
KERNEL(u8_max, any_u8, INT_MAX_OF)

#define BOTH(name)                                                                                 \
    {                                                                                              \
        .pair = name##_pair, .onto = name##_onto                                                   \
    }
#define ROW(type)                                                                                  \
    {                                                                                              \
        [MESH_SUM] = BOTH(type##_sum), [MESH_PROD] = BOTH(type##_prod),                            \
        [MESH_MIN] = BOTH(type##_min), [MESH_MAX] = BOTH(type##_max)                               \
    }

static const struct kernel kernels[MESH_DTYPE_COUNT][MESH_OP_COUNT] = {
    [MESH_F64] = ROW(f64),
    [MESH_F32] = ROW(f32),
    [MESH_F16] = ROW(f16),
    [MESH_BF16] = ROW(bf16),
    [MESH_I64] = ROW(i64),
    [MESH_I32] = ROW(i32),
    [MESH_I16] = ROW(i16),
    [MESH_I8] = ROW(i8),
    [MESH_U8] = {[MESH_SUM] = BOTH(i8_sum),
        [MESH_PROD] = BOTH(i8_prod),
        [MESH_MIN] = BOTH(u8_min),
        [MESH_MAX] = BOTH(u8_max)},
};

void mesh_reduce_pair(enum mesh_op op, enum mesh_dtype dtype, uint8_t *into, const uint8_t *left,
    const uint8_t *right, size_t bytes)
{
    size_t element_bytes = mesh_dtype_bytes(dtype);
    CADRE_ASSERT(bytes % element_bytes == 0);
    const struct kernel *kernel = &kernels[dtype][op];
    if (into == left) {
        kernel->onto(into, right, bytes / element_bytes);
    } else {
        kernel->pair(into, left, right, bytes / element_bytes);
    }
}
