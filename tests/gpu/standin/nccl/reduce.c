/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: reductions of all types. Each step rounds to the type, as one hop of
 * NCCL's does. */
#include "standin_numbers.h"
#include "tests/gpu/standin/nccl/nccl_internal.h"

static const struct {
    const char *name;
    size_t bytes;
} types[ncclNumTypes] = {
    [ncclInt8] = {"int8", 1},
    [ncclUint8] = {"uint8", 1},
    [ncclInt32] = {"int32", 4},
    [ncclUint32] = {"uint32", 4},
    [ncclInt64] = {"int64", 8},
    [ncclUint64] = {"uint64", 8},
    [ncclFloat16] = {"float16", 2},
    [ncclFloat32] = {"float32", 4},
    [ncclFloat64] = {"float64", 8},
    [ncclBfloat16] = {"bfloat16", 2},
};

size_t reduce_element_bytes(uint32_t type)
{
    return type < ncclNumTypes ? types[type].bytes : 0;
}

const char *reduce_type_name(uint32_t type)
{
    return reduce_element_bytes(type) != 0 ? types[type].name : "no type";
}

/* Integers are combined as unsigned ones, whose overflow is defined. */
#define FOLD_INTEGER(name, type, wide)                                                             \
    static void fold_##name(uint32_t reduction, type *to, const type *from, size_t count)          \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            type a = to[i];                                                                        \
            type b = from[i];                                                                      \
            to[i] = reduction == ncclProd  ? (type)((wide)a * (wide)b)                             \
                    : reduction == ncclMax ? (a < b ? b : a)                                       \
                    : reduction == ncclMin ? (b < a ? b : a)                                       \
                                           : (type)((wide)a + (wide)b);                            \
        }                                                                                          \
    }
FOLD_INTEGER(i8, int8_t, uint32_t)
FOLD_INTEGER(u8, uint8_t, uint32_t)
FOLD_INTEGER(i32, int32_t, uint32_t)
FOLD_INTEGER(u32, uint32_t, uint32_t)
FOLD_INTEGER(i64, int64_t, uint64_t)
FOLD_INTEGER(u64, uint64_t, uint64_t)

#define FOLD_FLOAT(name, type, wide, read, write)                                                  \
    static void fold_##name(uint32_t reduction, type *to, const type *from, size_t count)          \
    {                                                                                              \
        for (size_t i = 0; i < count; i++) {                                                       \
            wide a = read(to[i]);                                                                  \
            wide b = read(from[i]);                                                                \
            to[i] = write(reduction == ncclProd  ? a * b                                           \
                          : reduction == ncclMax ? (a < b ? b : a)                                 \
                          : reduction == ncclMin ? (b < a ? b : a)                                 \
                                                 : a + b);                                         \
        }                                                                                          \
    }
#define SAME(value) (value)
FOLD_FLOAT(f16, uint16_t, float, standin_f16_to, standin_f16_from)
FOLD_FLOAT(bf16, uint16_t, float, standin_bf16_to, standin_bf16_from)
FOLD_FLOAT(f32, float, float, SAME, SAME)
FOLD_FLOAT(f64, double, double, SAME, SAME)

void reduce_fold(uint32_t type, uint32_t reduction, void *to, const void *from, size_t count)
{
    switch (type) {
    case ncclInt8:
        fold_i8(reduction, to, from, count);
        break;
    case ncclUint8:
        fold_u8(reduction, to, from, count);
        break;
    case ncclInt32:
        fold_i32(reduction, to, from, count);
        break;
    case ncclUint32:
        fold_u32(reduction, to, from, count);
        break;
    case ncclInt64:
        fold_i64(reduction, to, from, count);
        break;
    case ncclUint64:
        fold_u64(reduction, to, from, count);
        break;
    case ncclFloat16:
        fold_f16(reduction, to, from, count);
        break;
    case ncclBfloat16:
        fold_bf16(reduction, to, from, count);
        break;
    case ncclFloat32:
        fold_f32(reduction, to, from, count);
        break;
    default:
        fold_f64(reduction, to, from, count);
        break;
    }
}

void reduce_before(uint32_t type, uint32_t reduction, void *values, size_t count, uint32_t world)
{
    for (size_t i = 0; reduction == ncclAvg && i < count; i++) {
        if (type == ncclFloat16) {
            uint16_t *half = values;
            half[i] = standin_f16_from(standin_f16_to(half[i]) * (1.0f / (float)world));
        } else if (type == ncclBfloat16) {
            uint16_t *half = values;
            half[i] = standin_bf16_from(standin_bf16_to(half[i]) * (1.0f / (float)world));
        } else if (type == ncclFloat32) {
            ((float *)values)[i] *= 1.0f / (float)world;
        } else if (type == ncclFloat64) {
            ((double *)values)[i] *= 1.0 / world;
        }
    }
}

void reduce_after(uint32_t type, uint32_t reduction, void *values, size_t count, uint32_t world)
{
    for (size_t i = 0; reduction == ncclAvg && i < count; i++) {
        switch (type) {
        case ncclInt8:
            ((int8_t *)values)[i] = (int8_t)(((int8_t *)values)[i] / (int)world);
            break;
        case ncclUint8:
            ((uint8_t *)values)[i] = (uint8_t)(((uint8_t *)values)[i] / world);
            break;
        case ncclInt32:
            ((int32_t *)values)[i] /= (int32_t)world;
            break;
        case ncclUint32:
            ((uint32_t *)values)[i] /= world;
            break;
        case ncclInt64:
            ((int64_t *)values)[i] /= (int64_t)world;
            break;
        case ncclUint64:
            ((uint64_t *)values)[i] /= world;
            break;
        default:
            break;
        }
    }
}
