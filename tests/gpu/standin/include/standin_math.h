/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: CUDA's mathematical functions that C++ has not. The approximate ones
 * (__expf) are the exact ones here: results differ from a GPU's in their last digits. */
#ifndef CADRE_STANDIN_MATH_H
#define CADRE_STANDIN_MATH_H

#include <math.h>

#include <cstdint>
#include <cstring>

/* The C library declares some of these names and does not define them: hence macros. */
#define __expf(x)    expf(x)
#define __exp10f(x)  exp10f(x)
#define __logf(x)    logf(x)
#define __log2f(x)   log2f(x)
#define __log10f(x)  log10f(x)
#define __sinf(x)    sinf(x)
#define __cosf(x)    cosf(x)
#define __tanf(x)    tanf(x)
#define __powf(x, y) powf(x, y)
#define rsqrtf(x)    standin_rsqrtf(x)
#define rsqrt(x)     standin_rsqrt(x)

static inline float standin_rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline double standin_rsqrt(double x)
{
    return 1.0 / sqrt(x);
}

static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __fdiv_rn(float x, float y)
{
    return x / y;
}
static inline float __frcp_rn(float x)
{
    return 1.0f / x;
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline float __frsqrt_rn(float x)
{
    return 1.0f / sqrtf(x);
}
static inline float __fadd_rn(float x, float y)
{
    return x + y;
}
static inline float __fsub_rn(float x, float y)
{
    return x - y;
}
static inline float __fmul_rn(float x, float y)
{
    return x * y;
}
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
static inline double __dadd_rn(double x, double y)
{
    return x + y;
}
static inline double __dmul_rn(double x, double y)
{
    return x * y;
}
static inline float __saturatef(float x)
{
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}

static inline int __float_as_int(float value)
{
    int bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}
static inline unsigned int __float_as_uint(float value)
{
    unsigned int bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}
static inline float __int_as_float(int bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}
static inline float __uint_as_float(unsigned int bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}
static inline int __float2int_rn(float value)
{
    return static_cast<int>(rintf(value));
}
static inline int __float2int_rz(float value)
{
    return static_cast<int>(value);
}
static inline int __float2int_rd(float value)
{
    return static_cast<int>(floorf(value));
}
static inline unsigned int __float2uint_rn(float value)
{
    return static_cast<unsigned int>(rintf(value));
}
static inline float __int2float_rn(int value)
{
    return static_cast<float>(value);
}
static inline float __uint2float_rn(unsigned int value)
{
    return static_cast<float>(value);
}
static inline float __double2float_rn(double value)
{
    return static_cast<float>(value);
}

static inline int __popc(unsigned int bits)
{
    return __builtin_popcount(bits);
}
static inline int __popcll(unsigned long long bits)
{
    return __builtin_popcountll(bits);
}
static inline int __clz(int bits)
{
    return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(bits));
}
static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}
static inline unsigned int __umulhi(unsigned int x, unsigned int y)
{
    return static_cast<unsigned int>((static_cast<uint64_t>(x) * y) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    __extension__ typedef unsigned __int128 wide;
    return static_cast<unsigned long long>((static_cast<wide>(x) * y) >> 64);
}

#define STANDIN_MIN_MAX(type)                                                                      \
    static inline type min(type x, type y)                                                         \
    {                                                                                              \
        return y < x ? y : x;                                                                      \
    }                                                                                              \
    static inline type max(type x, type y)                                                         \
    {                                                                                              \
        return x < y ? y : x;                                                                      \
    }
STANDIN_MIN_MAX(int)
STANDIN_MIN_MAX(unsigned int)
STANDIN_MIN_MAX(long)
STANDIN_MIN_MAX(unsigned long)
STANDIN_MIN_MAX(long long)
STANDIN_MIN_MAX(unsigned long long)
#undef STANDIN_MIN_MAX
static inline float min(float x, float y)
{
    return fminf(x, y);
}
static inline float max(float x, float y)
{
    return fmaxf(x, y);
}
static inline double min(double x, double y)
{
    return fmin(x, y);
}
static inline double max(double x, double y)
{
    return fmax(x, y);
}

#endif
