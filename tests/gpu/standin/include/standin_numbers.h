/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: half-width floats as bits, rounded to nearest even as CUDA does. */
#ifndef CADRE_STANDIN_NUMBERS_H
#define CADRE_STANDIN_NUMBERS_H

#include <stdint.h>
#include <string.h>

static inline uint32_t standin_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float standin_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* A float that rounds to fewer digits as the double itself would, once: the excess is cut off, and
 * then the last bit is set. */
static inline float standin_odd(double value)
{
    float cut = (float)value;
    uint32_t bits = standin_bits(cut);
    if (value != value || (double)cut == value) {
        return cut;
    }
    double size = value < 0 ? -value : value;
    if ((double)standin_float(bits & 0x7fffffffu) > size) {
        bits--;
    }
    return standin_float(bits | 1u);
}

static inline uint16_t standin_bf16_from(float value)
{
    uint32_t bits = standin_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fff;
    }
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline float standin_bf16_to(uint16_t bits)
{
    return standin_float((uint32_t)bits << 16);
}

static inline uint16_t standin_f16_from(float value)
{
    uint32_t bits = standin_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return 0x7fff;
    }
    if (size >= 0x477ff000u) { /* rounds to more than 65504 */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (size >= 0x38800000u) {
        return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13));
    }
    /* Subnormal: the last digit of 0.5f is 2^-24, so the addition rounds to it. */
    return (uint16_t)(sign | (standin_bits(standin_float(size) + 0.5f) - 0x3f000000u));
}

static inline float standin_f16_to(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t fraction = half & 0x3ffu;
    if (exponent == 0) {
        float small = (float)fraction * 0x1p-24f;
        return standin_float(sign | standin_bits(small));
    }
    if (exponent == 31) {
        return standin_float(sign | 0x7f800000u | (fraction << 13));
    }
    return standin_float(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

#endif
