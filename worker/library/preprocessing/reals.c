/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/preprocessing/reals.h"

#include "common/pure/assert.h"
#include "common/pure/half.h"

bool reals_possible(cadre_dtype dtype)
{
    return dtype >= CADRE_F64 && dtype <= CADRE_U8;
}

#define AS_IS(value) (value)

/* One loop for each type, so that they vectorise. */
#define CONVERT(from_type, to_type, convert)                                                       \
    do {                                                                                           \
        const from_type *from = (const from_type *)data + first;                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            to[i] = (to_type)convert(from[i]);                                                     \
        }                                                                                          \
    } while (0)

#define CONVERT_ANY(to_type)                                                                       \
    do {                                                                                           \
        const void *data = cadre_tensor_const_data(tensor);                                        \
        switch (cadre_tensor_dtype(tensor)) {                                                      \
        case CADRE_F64:                                                                            \
            CONVERT(double, to_type, AS_IS);                                                       \
            break;                                                                                 \
        case CADRE_F32:                                                                            \
            CONVERT(float, to_type, AS_IS);                                                        \
            break;                                                                                 \
        case CADRE_F16:                                                                            \
            CONVERT(uint16_t, to_type, half_from_f16);                                             \
            break;                                                                                 \
        case CADRE_BF16:                                                                           \
            CONVERT(uint16_t, to_type, half_from_bf16);                                            \
            break;                                                                                 \
        case CADRE_I64:                                                                            \
            CONVERT(int64_t, to_type, AS_IS);                                                      \
            break;                                                                                 \
        case CADRE_I32:                                                                            \
            CONVERT(int32_t, to_type, AS_IS);                                                      \
            break;                                                                                 \
        case CADRE_I16:                                                                            \
            CONVERT(int16_t, to_type, AS_IS);                                                      \
            break;                                                                                 \
        case CADRE_I8:                                                                             \
            CONVERT(int8_t, to_type, AS_IS);                                                       \
            break;                                                                                 \
        case CADRE_U32:                                                                            \
            CONVERT(uint32_t, to_type, AS_IS);                                                     \
            break;                                                                                 \
        case CADRE_U16:                                                                            \
            CONVERT(uint16_t, to_type, AS_IS);                                                     \
            break;                                                                                 \
        default:                                                                                   \
            CADRE_ASSERT(cadre_tensor_dtype(tensor) <= CADRE_BOOL);                                \
            CONVERT(uint8_t, to_type, AS_IS);                                                      \
            break;                                                                                 \
        }                                                                                          \
    } while (0)

void reals_double(const cadre_tensor *tensor, int64_t first, size_t count, double to[])
{
    CONVERT_ANY(double);
}

void reals_float(const cadre_tensor *tensor, int64_t first, size_t count, float to[])
{
    CONVERT_ANY(float);
}
