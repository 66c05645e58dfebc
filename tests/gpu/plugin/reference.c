/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <math.h>
#include <string.h>

#include "common/pure/half.h"

const cadre_dtype reference_dtypes[11] = {CADRE_F64, CADRE_F32, CADRE_F16, CADRE_BF16, CADRE_I64,
    CADRE_I32, CADRE_I16, CADRE_I8, CADRE_U32, CADRE_U16, CADRE_U8};

size_t reference_bytes(cadre_dtype dtype)
{
    static const size_t bytes[] = {[CADRE_F64] = 8,
        [CADRE_F32] = 4,
        [CADRE_F16] = 2,
        [CADRE_BF16] = 2,
        [CADRE_I64] = 8,
        [CADRE_I32] = 4,
        [CADRE_I16] = 2,
        [CADRE_I8] = 1,
        [CADRE_U32] = 4,
        [CADRE_U16] = 2,
        [CADRE_U8] = 1,
        [CADRE_BOOL] = 1};
    return dtype <= CADRE_BOOL ? bytes[dtype] : 0;
}

bool reference_is_float(cadre_dtype dtype)
{
    return dtype == CADRE_F64 || dtype == CADRE_F32 || dtype == CADRE_F16 || dtype == CADRE_BF16;
}

/* An element as a number, which is exact, and back. Integers are their bits, without a sign. */
static double load_float(cadre_dtype dtype, const unsigned char *at)
{
    double number = 0;
    float single = 0;
    uint16_t half = 0;
    switch (dtype) {
    case CADRE_F64:
        memcpy(&number, at, sizeof number);
        return number;
    case CADRE_F32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    default:
        memcpy(&half, at, sizeof half);
        return (double)(dtype == CADRE_F16 ? half_from_f16(half) : half_from_bf16(half));
    }
}

static void store_single(cadre_dtype dtype, unsigned char *at, float single)
{
    if (dtype == CADRE_F32) {
        memcpy(at, &single, sizeof single);
        return;
    }
    uint16_t half = dtype == CADRE_F16 ? half_to_f16(single) : half_to_bf16(single);
    memcpy(at, &half, sizeof half);
}

/* A float32 that rounds on to a narrower type as the float64 itself would: cut off, and its last
 * bit is set when anything was. */
static float round_to_odd(double number)
{
    float single = (float)number;
    if (isnan(number) || (double)single == number) {
        return single;
    }
    uint32_t bits = half_bits_of(single);
    if (fabs((double)single) > fabs(number)) {
        bits--;
    }
    return half_float_of(bits | 1);
}

void reference_draw(struct prng *prng, cadre_dtype dtype, void *data, size_t count)
{
    size_t bytes = reference_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char *at = (unsigned char *)data + i * bytes;
        uint64_t bits = prng_next(prng);
        double number = ldexp((double)(int64_t)bits, (int)prng_uniform(prng, 16) - 68);
        if (!reference_is_float(dtype) || prng_chance(prng, 1, 4)) {
            memcpy(at, &bits, bytes);
        } else if (dtype == CADRE_F64) {
            memcpy(at, &number, sizeof number);
        } else {
            store_single(dtype, at, (float)number);
        }
    }
}

#define COMBINE(a, b) (how == DEVICE_ADD ? (a) + (b) : how == DEVICE_SUB ? (a) - (b) : (a) * (b))

static void combine_floats(
    enum device_arithmetic how, cadre_dtype dtype, unsigned char *to, const unsigned char *from)
{
    double a = load_float(dtype, to);
    double b = load_float(dtype, from);
    if (dtype == CADRE_F64) {
        double result = COMBINE(a, b);
        memcpy(to, &result, sizeof result);
    } else {
        store_single(dtype, to, COMBINE((float)a, (float)b));
    }
}

void reference_arithmetic(
    enum device_arithmetic how, cadre_dtype dtype, void *to, const void *from, size_t count)
{
    size_t bytes = reference_bytes(dtype);
    if (how == DEVICE_SET) {
        memcpy(to, from, count * bytes);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned char *a = (unsigned char *)to + i * bytes;
        const unsigned char *b = (const unsigned char *)from + i * bytes;
        if (reference_is_float(dtype)) {
            combine_floats(how, dtype, a, b);
            continue;
        }
        uint64_t x = 0; /* the lower bytes of a result depend on no others */
        uint64_t y = 0;
        memcpy(&x, a, bytes);
        memcpy(&y, b, bytes);
        uint64_t result = COMBINE(x, y);
        memcpy(a, &result, bytes);
    }
}

void reference_scale(cadre_dtype dtype, void *data, size_t count, double factor)
{
    size_t bytes = reference_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        unsigned char *at = (unsigned char *)data + i * bytes;
        double result = load_float(dtype, at) * factor;
        if (dtype == CADRE_F64) {
            memcpy(at, &result, sizeof result);
        } else {
            store_single(dtype, at, dtype == CADRE_F32 ? (float)result : round_to_odd(result));
        }
    }
}

size_t reference_compare(cadre_dtype dtype, const void *a, const void *b, size_t count)
{
    size_t bytes = reference_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *x = (const unsigned char *)a + i * bytes;
        const unsigned char *y = (const unsigned char *)b + i * bytes;
        bool both_nan =
            reference_is_float(dtype) && isnan(load_float(dtype, x)) && isnan(load_float(dtype, y));
        if (memcmp(x, y, bytes) != 0 && !both_nan) {
            return i;
        }
    }
    return count;
}
