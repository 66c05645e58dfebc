/* SPDX-License-Identifier: Apache-2.0
 * Four ways to hash, by size; only long strings are read in a loop. Numbers are little endian. */
#include "worker/library/preprocessing/fingerprint.h"

#include <endian.h>
#include <string.h>

static const uint64_t K0 = UINT64_C(0xc3a5c85c97cb3127);
static const uint64_t K1 = UINT64_C(0xb492b66fbe98f273);
static const uint64_t K2 = UINT64_C(0x9ae16a3b2f90404f);

static uint64_t fingerprint_word(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

static uint64_t half_word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

/* 0 < bits < 64 */
static uint64_t fingerprint_rotate(uint64_t value, unsigned bits)
{
    return (value >> bits) | (value << (64 - bits));
}

static uint64_t fingerprint_fold(uint64_t value)
{
    return value ^ (value >> 47);
}

static uint64_t fingerprint_mix(uint64_t u, uint64_t v, uint64_t factor)
{
    uint64_t a = fingerprint_fold((u ^ v) * factor);
    return fingerprint_fold((v ^ a) * factor) * factor;
}

static uint64_t hash_to_16(const uint8_t *s, size_t size)
{
    uint64_t factor = K2 + size * 2;
    if (size >= 8) {
        uint64_t a = fingerprint_word(s) + K2;
        uint64_t b = fingerprint_word(s + size - 8);
        return fingerprint_mix(fingerprint_rotate(b, 37) * factor + a,
            (fingerprint_rotate(a, 25) + b) * factor, factor);
    }
    if (size >= 4) {
        return fingerprint_mix(size + (half_word(s) << 3), half_word(s + size - 4), factor);
    }
    if (size > 0) {
        uint64_t y = s[0] + ((uint64_t)s[size / 2] << 8);
        uint64_t z = size + ((uint64_t)s[size - 1] << 2);
        return fingerprint_fold((y * K2) ^ (z * K0)) * K2;
    }
    return K2;
}

static uint64_t hash_to_32(const uint8_t *s, size_t size)
{
    uint64_t factor = K2 + size * 2;
    uint64_t a = fingerprint_word(s) * K1;
    uint64_t b = fingerprint_word(s + 8);
    uint64_t c = fingerprint_word(s + size - 8) * factor;
    uint64_t d = fingerprint_word(s + size - 16) * K2;
    return fingerprint_mix(fingerprint_rotate(a + b, 43) + fingerprint_rotate(c, 30) + d,
        a + fingerprint_rotate(b + K2, 18) + c, factor);
}

static uint64_t hash_to_64(const uint8_t *s, size_t size)
{
    uint64_t factor = K2 + size * 2;
    uint64_t a = fingerprint_word(s) * K2;
    uint64_t b = fingerprint_word(s + 8);
    uint64_t c = fingerprint_word(s + size - 8) * factor;
    uint64_t d = fingerprint_word(s + size - 16) * K2;
    uint64_t y = fingerprint_rotate(a + b, 43) + fingerprint_rotate(c, 30) + d;
    uint64_t z = fingerprint_mix(y, a + fingerprint_rotate(b + K2, 18) + c, factor);
    uint64_t e = fingerprint_word(s + 16) * factor;
    uint64_t f = fingerprint_word(s + 24);
    uint64_t g = (y + fingerprint_word(s + size - 32)) * factor;
    uint64_t h = (z + fingerprint_word(s + size - 24)) * factor;
    return fingerprint_mix(fingerprint_rotate(e + f, 43) + fingerprint_rotate(g, 30) + h,
        e + fingerprint_rotate(f + a, 18) + g, factor);
}

/* What a long string is summed up in while it is read. */
struct state {
    uint64_t x, y, z;
    uint64_t v[2];
    uint64_t w[2];
};

static void sum_up(uint64_t pair[2], const uint8_t *s, uint64_t a, uint64_t b)
{
    a += fingerprint_word(s);
    b = fingerprint_rotate(b + a + fingerprint_word(s + 24), 21);
    uint64_t first = a;
    a += fingerprint_word(s + 8) + fingerprint_word(s + 16);
    pair[0] = a + fingerprint_word(s + 24);
    pair[1] = b + fingerprint_rotate(a, 44) + first;
}

/* 64 bytes; in the last block the factors are others. */
static void read_block(struct state *t, const uint8_t *s, uint64_t factor, uint64_t weight)
{
    t->x = fingerprint_rotate(t->x + t->y + t->v[0] + fingerprint_word(s + 8), 37) * factor;
    t->y = fingerprint_rotate(t->y + t->v[1] + fingerprint_word(s + 48), 42) * factor;
    t->x ^= t->w[1] * weight;
    t->y += t->v[0] * weight + fingerprint_word(s + 40);
    t->z = fingerprint_rotate(t->z + t->w[0], 33) * factor;
    sum_up(t->v, s, t->v[1] * factor, t->x + t->w[0]);
    sum_up(t->w, s + 32, t->z + t->w[1], t->y + fingerprint_word(s + 16));
    uint64_t z = t->z;
    t->z = t->x;
    t->x = z;
}

static uint64_t hash_long(const uint8_t *s, size_t size)
{
    const uint64_t seed = 81;
    struct state t = {.x = seed * K2 + fingerprint_word(s), .y = seed * K1 + 113};
    t.z = fingerprint_fold(t.y * K2 + 113) * K2;
    size_t rest = (size - 1) % 64;
    size_t whole = size - 1 - rest;
    for (size_t at = 0; at < whole; at += 64) {
        read_block(&t, s + at, K1, 1);
    }
    uint64_t factor = K1 + ((t.z & 0xff) << 1);
    t.w[0] += rest;
    t.v[0] += t.w[0];
    t.w[0] += t.v[0];
    read_block(&t, s + size - 64, factor, 9);
    return fingerprint_mix(
        fingerprint_mix(t.v[0], t.w[0], factor) + fingerprint_fold(t.y) * K0 + t.z,
        fingerprint_mix(t.v[1], t.w[1], factor) + t.x, factor);
}

uint64_t fingerprint64(const void *bytes, size_t size)
{
    const uint8_t *s = bytes;
    if (size <= 16) {
        return hash_to_16(s, size);
    }
    if (size <= 32) {
        return hash_to_32(s, size);
    }
    return size <= 64 ? hash_to_64(s, size) : hash_long(s, size);
}
