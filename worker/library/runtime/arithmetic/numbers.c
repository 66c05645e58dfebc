/* SPDX-License-Identifier: Apache-2.0
 * See numbers.h. Called by variables/, reductions/ and loss.c. */
#include "worker/library/runtime/arithmetic/numbers.h"

#include <math.h>

#include "common/pure/assert.h"
#include "common/pure/half.h"

/* One loop or statement for the element type `dtype`: REAL(type), HALF(widen, narrow) for the
 * 16-bit floats, and WHOLE(type, wide) with an unsigned type in which sums and products wrap; OTHER
 * for CADRE_BOOL. */
#define BY_DTYPE(dtype, REAL, HALF, WHOLE, OTHER)                                                  \
    switch (dtype) {                                                                               \
    case CADRE_F64:                                                                                \
        REAL(double) break;                                                                        \
    case CADRE_F32:                                                                                \
        REAL(float) break;                                                                         \
    case CADRE_F16:                                                                                \
        HALF(half_from_f16, half_to_f16) break;                                                    \
    case CADRE_BF16:                                                                               \
        HALF(half_from_bf16, half_to_bf16) break;                                                  \
    case CADRE_I64:                                                                                \
        WHOLE(int64_t, uint64_t) break;                                                            \
    case CADRE_I32:                                                                                \
        WHOLE(int32_t, uint32_t) break;                                                            \
    case CADRE_I16:                                                                                \
        WHOLE(int16_t, uint32_t) break;                                                            \
    case CADRE_I8:                                                                                 \
        WHOLE(int8_t, uint32_t) break;                                                             \
    case CADRE_U32:                                                                                \
        WHOLE(uint32_t, uint32_t) break;                                                           \
    case CADRE_U16:                                                                                \
        WHOLE(uint16_t, uint32_t) break;                                                           \
    case CADRE_U8:                                                                                 \
        WHOLE(uint8_t, uint32_t) break;                                                            \
    default:                                                                                       \
        OTHER break;                                                                               \
    }

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
#define REAL(type)          EACH(type, type, subtract ? a - b : a + b)
#define HALF(widen, narrow) EACH_HALF(widen, narrow, subtract ? a - b : a + b)
#define WHOLE(type, wide)   EACH(type, wide, subtract ? a - b : a + b)
    CADRE_ASSERT(dtype != CADRE_STRING);
    CADRE_ASSERT(count >= 0);
    BY_DTYPE(dtype, REAL, HALF, WHOLE, WHOLE(uint8_t, uint32_t))
#undef REAL
#undef HALF
#undef WHOLE
}

void numbers_take_from(void *to, const void *from, int64_t count, cadre_dtype dtype)
{
#define REAL(type)          EACH(type, type, b - a)
#define HALF(widen, narrow) EACH_HALF(widen, narrow, b - a)
#define WHOLE(type, wide)   EACH(type, wide, b - a)
    CADRE_ASSERT(dtype != CADRE_STRING);
    BY_DTYPE(dtype, REAL, HALF, WHOLE, WHOLE(uint8_t, uint32_t))
#undef REAL
#undef HALF
#undef WHOLE
}

/* Stores `expression` for each of the `count` values, which is `value` in it. */
#define REPLACE(type, wide, expression)                                                            \
    for (int64_t i = 0; i < count; i++) {                                                          \
        wide value = (wide)((const type *)values)[i];                                              \
        ((type *)values)[i] = (type)(expression);                                                  \
    }

#define REPLACE_HALF(widen, narrow, expression)                                                    \
    for (int64_t i = 0; i < count; i++) {                                                          \
        float value = widen(((const uint16_t *)values)[i]);                                        \
        ((uint16_t *)values)[i] = narrow(expression);                                              \
    }

void numbers_multiply(void *values, int64_t count, cadre_dtype dtype, uint32_t times)
{
#define REAL(type)          REPLACE(type, type, value *(type)times)
#define HALF(widen, narrow) REPLACE_HALF(widen, narrow, value *(float)times)
#define WHOLE(type, wide)   REPLACE(type, wide, value *(wide)times)
    BY_DTYPE(dtype, REAL, HALF, WHOLE, )
#undef REAL
#undef HALF
#undef WHOLE
}

/* Rounded towards zero; the rest is given to the first shares, one each. */
static int64_t share_of(int64_t value, uint32_t shares, uint32_t index)
{
    int64_t whole = value / (int64_t)shares;
    int64_t rest = value % (int64_t)shares;
    if (rest > 0 && (int64_t)index < rest) {
        return whole + 1;
    }
    return rest < 0 && (int64_t)index < -rest ? whole - 1 : whole;
}

void numbers_share(void *values, int64_t count, cadre_dtype dtype, uint32_t shares, uint32_t index)
{
#define REAL(type)          REPLACE(type, type, value / (type)shares)
#define HALF(widen, narrow) REPLACE_HALF(widen, narrow, value / (float)shares)
#define WHOLE(type, wide)   REPLACE(type, int64_t, share_of(value, shares, index))
    CADRE_ASSERT(shares > 0);
    CADRE_ASSERT(index < shares);
    BY_DTYPE(dtype, REAL, HALF, WHOLE, )
#undef REAL
#undef HALF
#undef WHOLE
}

void numbers_store(void *values, int64_t i, cadre_dtype dtype, double value)
{
#define REAL(type)          ((type *)values)[i] = (type)value;
#define HALF(widen, narrow) ((uint16_t *)values)[i] = narrow((float)value);
#define WHOLE(type, wide)   ((type *)values)[i] = (type)value;
    CADRE_ASSERT(dtype != CADRE_STRING);
    BY_DTYPE(dtype, REAL, HALF, WHOLE, ((uint8_t *)values)[i] = value != 0;)
#undef REAL
#undef HALF
#undef WHOLE
}

bool numbers_fit(double value, cadre_dtype dtype)
{
    static const struct {
        double low;
        double high; /* the first number that does not fit */
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
