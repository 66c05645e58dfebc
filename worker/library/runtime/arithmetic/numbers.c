/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/arithmetic/numbers.h"

#include <math.h>

#include "common/pure/assert.h"
#include "common/pure/half.h"

/* Runs `expression` with a (of `to`) and b (of `from`) in the type `wide`, and stores it. */
#define EACH(type, wide, expression)                                                               \
    for (int64_t i = 0; i < count; i++) {                                                          \
        wide a = (wide)((const type *)to)[i];                                                      \
        wide b = (wide)((const type *)from)[i];                                                    \
        ((type *)to)[i] = (type)(expression);                                                      \
    }

#define EACH_HALF(widen, narrow, expression)                                                       \
    for (int64_t i = 0; i < count; i++) {                                                          \
        float a = widen(((const uint16_t *)to)[i]);                                                \
        float b = widen(((const uint16_t *)from)[i]);                                              \
        ((uint16_t *)to)[i] = narrow(expression);                                                  \
    }

void numbers_add(void *to, const void *from, int64_t count, cadre_dtype dtype, bool subtract)
{
    CADRE_ASSERT(dtype != CADRE_STRING);
    CADRE_ASSERT(count >= 0);
    switch (dtype) {
    case CADRE_F64:
        EACH(double, double, subtract ? a - b : a + b)
        break;
    case CADRE_F32:
        EACH(float, float, subtract ? a - b : a + b)
        break;
    case CADRE_F16:
        EACH_HALF(half_from_f16, half_to_f16, subtract ? a - b : a + b)
        break;
    case CADRE_BF16:
        EACH_HALF(half_from_bf16, half_to_bf16, subtract ? a - b : a + b)
        break;
    case CADRE_I64:
        EACH(int64_t, uint64_t, subtract ? a - b : a + b)
        break;
    case CADRE_I32:
        EACH(int32_t, uint32_t, subtract ? a - b : a + b)
        break;
    case CADRE_I16:
        EACH(int16_t, uint32_t, subtract ? a - b : a + b)
        break;
    case CADRE_I8:
        EACH(int8_t, uint32_t, subtract ? a - b : a + b)
        break;
    case CADRE_U32:
        EACH(uint32_t, uint32_t, subtract ? a - b : a + b)
        break;
    case CADRE_U16:
        EACH(uint16_t, uint32_t, subtract ? a - b : a + b)
        break;
    default:
        EACH(uint8_t, uint32_t, subtract ? a - b : a + b)
        break;
    }
}

void numbers_take_from(void *to, const void *from, int64_t count, cadre_dtype dtype)
{
    CADRE_ASSERT(dtype != CADRE_STRING);
    switch (dtype) {
    case CADRE_F64:
        EACH(double, double, b - a)
        break;
    case CADRE_F32:
        EACH(float, float, b - a)
        break;
    case CADRE_F16:
        EACH_HALF(half_from_f16, half_to_f16, b - a)
        break;
    case CADRE_BF16:
        EACH_HALF(half_from_bf16, half_to_bf16, b - a)
        break;
    case CADRE_I64:
        EACH(int64_t, uint64_t, b - a)
        break;
    case CADRE_I32:
        EACH(int32_t, uint32_t, b - a)
        break;
    case CADRE_I16:
        EACH(int16_t, uint32_t, b - a)
        break;
    case CADRE_I8:
        EACH(int8_t, uint32_t, b - a)
        break;
    case CADRE_U32:
        EACH(uint32_t, uint32_t, b - a)
        break;
    case CADRE_U16:
        EACH(uint16_t, uint32_t, b - a)
        break;
    default:
        EACH(uint8_t, uint32_t, b - a)
        break;
    }
}

#define TIMES(type, wide)                                                                          \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((type *)values)[i] = (type)((wide)((const type *)values)[i] * (wide)times);               \
    }

#define TIMES_HALF(widen, narrow)                                                                  \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((uint16_t *)values)[i] = narrow(widen(((const uint16_t *)values)[i]) * (float)times);     \
    }

void numbers_multiply(void *values, int64_t count, cadre_dtype dtype, uint32_t times)
{
    switch (dtype) {
    case CADRE_F64:
        TIMES(double, double)
        break;
    case CADRE_F32:
        TIMES(float, float)
        break;
    case CADRE_F16:
        TIMES_HALF(half_from_f16, half_to_f16)
        break;
    case CADRE_BF16:
        TIMES_HALF(half_from_bf16, half_to_bf16)
        break;
    case CADRE_I64:
        TIMES(int64_t, uint64_t)
        break;
    case CADRE_I32:
        TIMES(int32_t, uint32_t)
        break;
    case CADRE_I16:
        TIMES(int16_t, uint32_t)
        break;
    case CADRE_I8:
        TIMES(int8_t, uint32_t)
        break;
    case CADRE_U32:
        TIMES(uint32_t, uint32_t)
        break;
    case CADRE_U16:
        TIMES(uint16_t, uint32_t)
        break;
    case CADRE_U8:
        TIMES(uint8_t, uint32_t)
        break;
    default:
        break;
    }
}

/* Rounded towards zero; what remains goes to the first shares, one each. */
static int64_t share_of(int64_t value, uint32_t shares, uint32_t index)
{
    int64_t whole = value / (int64_t)shares;
    int64_t rest = value % (int64_t)shares;
    if (rest > 0 && (int64_t)index < rest) {
        return whole + 1;
    }
    return rest < 0 && (int64_t)index < -rest ? whole - 1 : whole;
}

#define SHARE(type)                                                                                \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((type *)values)[i] = (type)share_of(((const type *)values)[i], shares, index);            \
    }

#define DIVIDE(type)                                                                               \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((type *)values)[i] /= (type)shares;                                                       \
    }

#define DIVIDE_HALF(widen, narrow)                                                                 \
    for (int64_t i = 0; i < count; i++) {                                                          \
        ((uint16_t *)values)[i] = narrow(widen(((const uint16_t *)values)[i]) / (float)shares);    \
    }

void numbers_share(void *values, int64_t count, cadre_dtype dtype, uint32_t shares, uint32_t index)
{
    CADRE_ASSERT(shares > 0);
    CADRE_ASSERT(index < shares);
    switch (dtype) {
    case CADRE_F64:
        DIVIDE(double)
        break;
    case CADRE_F32:
        DIVIDE(float)
        break;
    case CADRE_F16:
        DIVIDE_HALF(half_from_f16, half_to_f16)
        break;
    case CADRE_BF16:
        DIVIDE_HALF(half_from_bf16, half_to_bf16)
        break;
    case CADRE_I64:
        SHARE(int64_t)
        break;
    case CADRE_I32:
        SHARE(int32_t)
        break;
    case CADRE_I16:
        SHARE(int16_t)
        break;
    case CADRE_I8:
        SHARE(int8_t)
        break;
    case CADRE_U32:
        SHARE(uint32_t)
        break;
    case CADRE_U16:
        SHARE(uint16_t)
        break;
    case CADRE_U8:
        SHARE(uint8_t)
        break;
    default:
        break;
    }
}

void numbers_store(void *values, int64_t i, cadre_dtype dtype, double value)
{
    CADRE_ASSERT(dtype != CADRE_STRING);
    switch (dtype) {
    case CADRE_F64:
        ((double *)values)[i] = value;
        break;
    case CADRE_F32:
        ((float *)values)[i] = (float)value;
        break;
    case CADRE_F16:
        ((uint16_t *)values)[i] = half_to_f16((float)value);
        break;
    case CADRE_BF16:
        ((uint16_t *)values)[i] = half_to_bf16((float)value);
        break;
    case CADRE_I64:
        ((int64_t *)values)[i] = (int64_t)value;
        break;
    case CADRE_I32:
        ((int32_t *)values)[i] = (int32_t)value;
        break;
    case CADRE_I16:
        ((int16_t *)values)[i] = (int16_t)value;
        break;
    case CADRE_I8:
        ((int8_t *)values)[i] = (int8_t)value;
        break;
    case CADRE_U32:
        ((uint32_t *)values)[i] = (uint32_t)value;
        break;
    case CADRE_U16:
        ((uint16_t *)values)[i] = (uint16_t)value;
        break;
    case CADRE_U8:
        ((uint8_t *)values)[i] = (uint8_t)value;
        break;
    default:
        ((uint8_t *)values)[i] = value != 0;
        break;
    }
}

bool numbers_fit(double value, cadre_dtype dtype)
{
    static const struct {
        double low;
        double high; /* first one that does not fit */
    } ranges[] = {
        [CADRE_I64] = {-0x1p63, 0x1p63},
        [CADRE_I32] = {-0x1p31, 0x1p31},
        [CADRE_I16] = {-0x1p15, 0x1p15},
        [CADRE_I8] = {-0x1p7, 0x1p7},
        [CADRE_U32] = {0, 0x1p32},
        [CADRE_U16] = {0, 0x1p16},
        [CADRE_U8] = {0, 0x1p8},
    };
    if (dtype <= CADRE_BF16 || dtype == CADRE_BOOL) {
        return true;
    }
    double whole = trunc(value);
    CADRE_ASSERT(dtype <= CADRE_U8);
    return whole >= ranges[dtype].low && whole < ranges[dtype].high;
}
