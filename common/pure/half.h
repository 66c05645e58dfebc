/* SPDX-License-Identifier: Apache-2.0
 * float16 and bfloat16 to float32 and back, rounding to nearest even; NaN stays NaN and becomes
 * quiet. Without branches, so that loops over them vectorise. */
#ifndef CADRE_COMMON_PURE_HALF_H
#define CADRE_COMMON_PURE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t half_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float half_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float half_from_bf16(uint16_t half)
{
    return half_float_of((uint32_t)half << 16);
}

static inline uint16_t half_to_bf16(float value)
{
    uint32_t bits = half_bits_of(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float half_from_f16(uint16_t half)
{
    uint32_t sign = ((uint32_t)half & 0x8000u) << 16;
    uint32_t exponent = ((uint32_t)half >> 10) & 31u;
    uint32_t mantissa = (uint32_t)half & 0x3ffu;
    /* A subnormal is its mantissa times 2^-24, which float32 holds as a normal number. */
    uint32_t small = half_bits_of((float)(int32_t)mantissa * 0x1p-24f);
    uint32_t normal = ((exponent + 112u) << 23) | (mantissa << 13);
    uint32_t special = 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u);
    uint32_t magnitude = exponent == 0 ? small : (exponent == 31 ? special : normal);
    return half_float_of(sign | magnitude);
}

static inline uint16_t half_to_f16(float value)
{
    uint32_t bits = half_bits_of(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    /* Next to 0.5 the unit in the last place is 2^-24, the smallest float16: adding rounds. */
    uint32_t tiny = magnitude < 0x38800000u ? magnitude : 0u;
    uint32_t small = half_bits_of(half_float_of(tiny) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
    uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    uint32_t half = magnitude < 0x38800000u ? small : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half; /* 65520 and more rounds to infinity */
    half = magnitude > 0x7f800000u ? nan : half;
    return (uint16_t)(sign | half);
}

#endif
