/* SPDX-License-Identifier: Apache-2.0
 * The scalar reference of the canonical order. */
#include "tests/conformance/mesh/reference.h"

#include <math.h>
#include <string.h>

#include "common/pure/prng.h"

/* One element of any type. Floats of 16 bits are held as the double they stand for. */
union value {
    double f64;
    float f32;
    int64_t i64;
};

static bool is_half(enum mesh_dtype dtype)
{
    return dtype == MESH_F16 || dtype == MESH_BF16;
}

static bool is_integer(enum mesh_dtype dtype)
{
    return !is_half(dtype) && dtype != MESH_F64 && dtype != MESH_F32;
}

/* Digits and exponents of a half-width float. */
struct format {
    int mantissa_bits;
    int exponent_min; /* of the smallest normal number */
    int exponent_max;
};

static struct format format_of(enum mesh_dtype dtype)
{
    return dtype == MESH_F16 ? (struct format){10, -14, 15} : (struct format){7, -126, 127};
}

/* To the nearest representable number, ties to even, by the current rounding mode of rint. */
static double round_to_half(enum mesh_dtype dtype, double value)
{
    struct format format = format_of(dtype);
    if (value == 0.0 || !isfinite(value)) {
        return value;
    }
    int exponent = ilogb(value);
    exponent = exponent < format.exponent_min ? format.exponent_min : exponent;
    double unit = ldexp(1.0, exponent - format.mantissa_bits);
    double rounded = rint(value / unit) * unit;
    return fabs(rounded) >= ldexp(1.0, format.exponent_max + 1) ? copysign(INFINITY, rounded)
                                                                : rounded;
}

static uint16_t half_bits(enum mesh_dtype dtype, double value)
{
    struct format format = format_of(dtype);
    unsigned sign = signbit(value) ? 0x8000u : 0u;
    double size = fabs(value);
    if (isinf(value)) {
        return (uint16_t)(sign | (unsigned)(2 * format.exponent_max + 1) << format.mantissa_bits);
    }
    if (size < ldexp(1.0, format.exponent_min)) {
        return (uint16_t)(sign | (unsigned)ldexp(size, format.mantissa_bits - format.exponent_min));
    }
    int exponent = ilogb(size);
    unsigned biased = (unsigned)(exponent - format.exponent_min + 1);
    unsigned mantissa = (unsigned)ldexp(size, format.mantissa_bits - exponent);
    return (uint16_t)(sign | ((biased << format.mantissa_bits) +
                                 (mantissa - (1u << format.mantissa_bits))));
}

static union value draw(enum mesh_dtype dtype, uint64_t seed, uint32_t replica, uint64_t index)
{
    uint64_t bits = prng_mix(prng_mix(seed ^ ((uint64_t)replica << 40)) ^ index);
    union value value = {.i64 = (int64_t)bits};
    if (is_integer(dtype)) {
        return value;
    }
    /* 20 bits and a scale of 2^-8 to 2^7: sums round, and do not overflow in 16 bits too often. */
    double number = (double)((int64_t)(bits >> 44) - (1 << 19)) * 0x1p-20;
    number *= (double)(1u << (bits & 15)) * 0x1p-8;
    if (dtype == MESH_F64) {
        value.f64 = number + (double)(bits >> 20 & 0xffff) * 0x1p-44;
    } else if (dtype == MESH_F32) {
        value.f32 = (float)number;
    } else if (is_half(dtype)) {
        value.f64 = round_to_half(dtype, number);
    }
    return value;
}

static void store(enum mesh_dtype dtype, union value value, void *into)
{
    size_t bytes = mesh_dtype_bytes(dtype);
    if (is_half(dtype)) {
        uint16_t half = half_bits(dtype, value.f64);
        memcpy(into, &half, sizeof half);
    } else {
        memcpy(into, &value, bytes); /* the low bytes of an integer */
    }
}

/* The integer that the low bytes of `wide` are in this type. */
static int64_t narrow(enum mesh_dtype dtype, int64_t wide)
{
    switch (dtype) {
    case MESH_I32:
        return (int32_t)(uint32_t)(uint64_t)wide;
    case MESH_I16:
        return (int16_t)(uint16_t)(uint64_t)wide;
    case MESH_I8:
        return (int8_t)(uint8_t)(uint64_t)wide;
    case MESH_U32:
        return (uint32_t)(uint64_t)wide;
    case MESH_U16:
        return (uint16_t)(uint64_t)wide;
    case MESH_U8:
        return (uint8_t)(uint64_t)wide;
    default:
        return wide;
    }
}

static double join_floats(enum mesh_op op, double a, double b)
{
    switch (op) {
    case MESH_SUM:
        return a + b;
    case MESH_PROD:
        return a * b;
    case MESH_MIN:
        return b < a ? b : a;
    default:
        return b > a ? b : a;
    }
}

static float join_singles(enum mesh_op op, float a, float b)
{
    switch (op) {
    case MESH_SUM:
        return a + b;
    case MESH_PROD:
        return a * b;
    case MESH_MIN:
        return b < a ? b : a;
    default:
        return b > a ? b : a;
    }
}

static int64_t join_integers(enum mesh_op op, int64_t a, int64_t b)
{
    switch (op) {
    case MESH_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MESH_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MESH_MIN:
        return b < a ? b : a;
    default:
        return b > a ? b : a;
    }
}

static union value join(enum mesh_op op, enum mesh_dtype dtype, union value a, union value b)
{
    union value joined = {.i64 = 0};
    if (dtype == MESH_F64) {
        joined.f64 = join_floats(op, a.f64, b.f64);
    } else if (dtype == MESH_F32) {
        joined.f32 = join_singles(op, a.f32, b.f32);
    } else if (is_half(dtype)) {
        /* Rounded once, at the end. */
        joined.f64 = (double)join_singles(op, (float)a.f64, (float)b.f64);
    } else {
        joined.i64 = narrow(dtype, join_integers(op, a.i64, b.i64));
    }
    return joined;
}

/* One element of all replicas, to be reduced. */
struct element {
    enum mesh_op op;
    enum mesh_dtype dtype;
    uint64_t seed;
    uint64_t index;
    const struct reference_seats *seats;
};

typedef union value leaf_of(const struct element *element, uint32_t at, uint32_t host);

/* The block [first, first + width) of leaves, cut at `count`; `first` < count. */
static union value block(const struct element *element, leaf_of *leaf, uint32_t host,
    uint32_t count, uint32_t first, uint32_t width)
{
    if (width == 1) {
        return leaf(element, first, host);
    }
    uint32_t half = width / 2;
    union value left = block(element, leaf, host, count, first, half);
    if (first + half >= count) {
        return left;
    }
    return join(
        element->op, element->dtype, left, block(element, leaf, host, count, first + half, half));
}

static union value balanced(
    const struct element *element, leaf_of *leaf, uint32_t host, uint32_t count)
{
    uint32_t width = 1;
    while (width < count) {
        width *= 2;
    }
    return block(element, leaf, host, count, 0, width);
}

static union value of_slot(const struct element *element, uint32_t slot, uint32_t host)
{
    enum mesh_dtype dtype = element->dtype;
    const uint32_t *replicas = element->seats->replicas;
    for (uint32_t i = 0; i < host; i++) {
        replicas += element->seats->slots[i];
    }
    union value leaf = draw(dtype, element->seed, replicas[slot], element->index);
    leaf.i64 = is_integer(dtype) ? narrow(dtype, leaf.i64) : leaf.i64;
    return leaf;
}

static union value of_host(const struct element *element, uint32_t host, uint32_t unused)
{
    (void)unused;
    return balanced(element, of_slot, host, element->seats->slots[host]);
}

void reference_draw(
    enum mesh_dtype dtype, uint64_t seed, uint32_t replica, uint64_t index, void *into)
{
    store(dtype, draw(dtype, seed, replica, index), into);
}

void reference_reduce(enum mesh_op op, enum mesh_dtype dtype, uint64_t seed,
    const struct reference_seats *seats, uint64_t index, void *into)
{
    struct element element = {op, dtype, seed, index, seats};
    union value reduced = balanced(&element, of_host, 0, seats->host_count);
    if (is_half(dtype)) {
        reduced.f64 = round_to_half(dtype, reduced.f64);
    }
    store(dtype, reduced, into);
}
