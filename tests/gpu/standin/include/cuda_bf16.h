/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: __nv_bfloat16 with its conversions and arithmetic. Every operation is
 * done in float and rounded once. */
#ifndef CADRE_STANDIN_BF16_H
#define CADRE_STANDIN_BF16_H

#include "standin_types.h"

#ifndef __cplusplus
typedef struct {
    unsigned short __x;
} __nv_bfloat16;
typedef __nv_bfloat16 nv_bfloat16;
#else
#include <math.h>

#include "standin_numbers.h"

struct alignas(2) __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
    __nv_bfloat16(float value) : __x(standin_bf16_from(value))
    {
    }
    __nv_bfloat16(double value) : __x(standin_bf16_from(static_cast<float>(value)))
    {
    }
    __nv_bfloat16(int value) : __x(standin_bf16_from(static_cast<float>(value)))
    {
    }
    __nv_bfloat16(unsigned int value) : __x(standin_bf16_from(static_cast<float>(value)))
    {
    }
    operator float() const
    {
        return standin_bf16_to(__x);
    }
    __nv_bfloat16 &operator=(float value)
    {
        __x = standin_bf16_from(value);
        return *this;
    }
};
typedef __nv_bfloat16 nv_bfloat16;

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 first, __nv_bfloat16 second) : x(first), y(second)
    {
    }
};
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float value)
{
    return __nv_bfloat16(value);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    return __nv_bfloat16(value);
}
static inline __nv_bfloat16 __double2bfloat16(double value)
{
    return __nv_bfloat16(standin_odd(value));
}
static inline __nv_bfloat16 __int2bfloat16_rn(int value)
{
    return __nv_bfloat16(static_cast<float>(value));
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value)
{
    return value.__x;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 value;
    value.__x = bits;
    return value;
}
static inline float __bfloat162float(__nv_bfloat16 value)
{
    return standin_bf16_to(value.__x);
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y));
}
static inline __nv_bfloat162 __float22bfloat162_rn(float2 of)
{
    return __nv_bfloat162(__nv_bfloat16(of.x), __nv_bfloat16(of.y));
}
static inline float2 __bfloat1622float2(__nv_bfloat162 of)
{
    return float2{__bfloat162float(of.x), __bfloat162float(of.y)};
}
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value)
{
    return __nv_bfloat162(value, value);
}
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __nv_bfloat162(x, y);
}
static inline float __low2float(__nv_bfloat162 of)
{
    return __bfloat162float(of.x);
}
static inline float __high2float(__nv_bfloat162 of)
{
    return __bfloat162float(of.y);
}

#define STANDIN_OPERATOR(sign)                                                                     \
    static inline __nv_bfloat16 operator sign(__nv_bfloat16 a, __nv_bfloat16 b)                    \
    {                                                                                              \
        return __nv_bfloat16(static_cast<float>(a) sign static_cast<float>(b));                    \
    }                                                                                              \
    static inline __nv_bfloat16 &operator sign##=(__nv_bfloat16 &a, __nv_bfloat16 b)               \
    {                                                                                              \
        return a = a sign b;                                                                       \
    }
STANDIN_OPERATOR(+)
STANDIN_OPERATOR(-)
STANDIN_OPERATOR(*)
STANDIN_OPERATOR(/)
#undef STANDIN_OPERATOR
#define STANDIN_COMPARE(sign)                                                                      \
    static inline bool operator sign(__nv_bfloat16 a, __nv_bfloat16 b)                             \
    {                                                                                              \
        return static_cast<float>(a) sign static_cast<float>(b);                                   \
    }
STANDIN_COMPARE(==)
STANDIN_COMPARE(!=)
STANDIN_COMPARE(<)
STANDIN_COMPARE(<=)
STANDIN_COMPARE(>)
STANDIN_COMPARE(>=)
#undef STANDIN_COMPARE
static inline __nv_bfloat16 operator-(__nv_bfloat16 a)
{
    return __nv_bfloat16(-static_cast<float>(a));
}
static inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a + b;
}
static inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a - b;
}
static inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a * b;
}
static inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return a / b;
}
static inline __nv_bfloat16 __hneg(__nv_bfloat16 a)
{
    return -a;
}
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    return __nv_bfloat16(fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
static inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(fmaxf(static_cast<float>(a), static_cast<float>(b)));
}
static inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(fminf(static_cast<float>(a), static_cast<float>(b)));
}
static inline bool __hisnan(__nv_bfloat16 a)
{
    return isnan(static_cast<float>(a));
}
static inline __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __nv_bfloat162(a.x + b.x, a.y + b.y);
}
static inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __nv_bfloat162(a.x * b.x, a.y * b.y);
}
static inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c)
{
    return __nv_bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
#endif
#endif
