/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: __half with its conversions and arithmetic. Every operation is done in
 * float and rounded once. */
#ifndef CADRE_STANDIN_FP16_H
#define CADRE_STANDIN_FP16_H

#include "standin_types.h"

#ifndef __cplusplus
typedef struct {
    unsigned short __x;
} __half;
typedef __half half;
#else
#include <math.h>

#include "standin_numbers.h"

struct alignas(2) __half {
    unsigned short __x;

    __half() = default;
    __half(float value) : __x(standin_f16_from(value))
    {
    }
    __half(double value) : __x(standin_f16_from(static_cast<float>(value)))
    {
    }
    __half(int value) : __x(standin_f16_from(static_cast<float>(value)))
    {
    }
    __half(unsigned int value) : __x(standin_f16_from(static_cast<float>(value)))
    {
    }
    operator float() const
    {
        return standin_f16_to(__x);
    }
    __half &operator=(float value)
    {
        __x = standin_f16_from(value);
        return *this;
    }
};
typedef __half half;

struct alignas(4) __half2 {
    __half x, y;

    __half2() = default;
    __half2(__half first, __half second) : x(first), y(second)
    {
    }
};
typedef __half2 half2;

static inline __half __float2half(float value)
{
    return __half(value);
}
static inline __half __float2half_rn(float value)
{
    return __half(value);
}
static inline __half __double2half(double value)
{
    return __half(standin_odd(value));
}
static inline __half __int2half_rn(int value)
{
    return __half(static_cast<float>(value));
}
static inline unsigned short __half_as_ushort(__half value)
{
    return value.__x;
}
static inline __half __ushort_as_half(unsigned short bits)
{
    __half value;
    value.__x = bits;
    return value;
}
static inline float __half2float(__half value)
{
    return standin_f16_to(value.__x);
}
static inline __half2 __floats2half2_rn(float x, float y)
{
    return __half2(__half(x), __half(y));
}
static inline __half2 __float22half2_rn(float2 of)
{
    return __half2(__half(of.x), __half(of.y));
}
static inline float2 __half22float2(__half2 of)
{
    return float2{__half2float(of.x), __half2float(of.y)};
}
static inline __half2 __half2half2(__half value)
{
    return __half2(value, value);
}
static inline __half2 make_half2(__half x, __half y)
{
    return __half2(x, y);
}
static inline float __low2float(__half2 of)
{
    return __half2float(of.x);
}
static inline float __high2float(__half2 of)
{
    return __half2float(of.y);
}

#define STANDIN_OPERATOR(sign)                                                                     \
    static inline __half operator sign(__half a, __half b)                                         \
    {                                                                                              \
        return __half(static_cast<float>(a) sign static_cast<float>(b));                           \
    }                                                                                              \
    static inline __half &operator sign##=(__half &a, __half b)                                    \
    {                                                                                              \
        return a = a sign b;                                                                       \
    }
STANDIN_OPERATOR(+)
STANDIN_OPERATOR(-)
STANDIN_OPERATOR(*)
STANDIN_OPERATOR(/)
#undef STANDIN_OPERATOR
#define STANDIN_COMPARE(sign)                                                                      \
    static inline bool operator sign(__half a, __half b)                                           \
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
static inline __half operator-(__half a)
{
    return __half(-static_cast<float>(a));
}
static inline __half __hadd(__half a, __half b)
{
    return a + b;
}
static inline __half __hsub(__half a, __half b)
{
    return a - b;
}
static inline __half __hmul(__half a, __half b)
{
    return a * b;
}
static inline __half __hdiv(__half a, __half b)
{
    return a / b;
}
static inline __half __hneg(__half a)
{
    return -a;
}
static inline __half __hfma(__half a, __half b, __half c)
{
    return __half(fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
static inline __half __hmax(__half a, __half b)
{
    return __half(fmaxf(static_cast<float>(a), static_cast<float>(b)));
}
static inline __half __hmin(__half a, __half b)
{
    return __half(fminf(static_cast<float>(a), static_cast<float>(b)));
}
static inline bool __hisnan(__half a)
{
    return isnan(static_cast<float>(a));
}
static inline __half2 __hadd2(__half2 a, __half2 b)
{
    return __half2(a.x + b.x, a.y + b.y);
}
static inline __half2 __hmul2(__half2 a, __half2 b)
{
    return __half2(a.x * b.x, a.y * b.y);
}
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
#endif
#endif
