/* SPDX-License-Identifier: Apache-2.0
 * A Feistel network with cycle walking; see permutation.h. The input pipeline's shuffles call it.
 */
#include "common/pure/permutation.h"

#include "common/pure/assert.h"
#include "common/pure/prng.h"

/* Under this width the halves are so narrow that the rounds repeat themselves; walking costs less.
 */
#define DOMAIN_BITS_MIN 6

#define LANES 8
#define CHUNK 64

/* gcc keeps the lanes in registers only when the loops over them are written out. */
#ifdef __clang__
#define EACH_LANE _Pragma("unroll") for (uint32_t lane = 0; lane < LANES; lane++)
#else
#define EACH_LANE _Pragma("GCC unroll 8") for (uint32_t lane = 0; lane < LANES; lane++)
#endif
_Static_assert(CHUNK % LANES == 0, "the last lanes are full");

void permutation_init(
    struct permutation *permutation, uint64_t count, uint64_t seed, uint64_t epoch)
{
    CADRE_ASSERT(count <= PERMUTATION_COUNT_MAX);
    uint32_t bits = DOMAIN_BITS_MIN;
    while ((UINT64_C(1) << bits) < count) {
        bits++;
    }
    permutation->count = count;
    permutation->low_bits = bits / 2;
    permutation->low_mask = (UINT64_C(1) << (bits / 2)) - 1;
    permutation->high_mask = (UINT64_C(1) << (bits - bits / 2)) - 1;
    /* Two rounds of mixing, so that (seed, epoch) and (seed + 1, epoch - 1) share nothing. */
    struct prng prng = {.state = prng_mix(prng_mix(seed) ^ epoch)};
    for (uint32_t round = 0; round < PERMUTATION_ROUNDS; round++) {
        permutation->keys[round] = prng_next(&prng);
    }
}

/* One pass of the network: a permutation of [0, 2^bits). Even rounds change the upper half by the
 * lower one, odd rounds the other way round, so the halves need not be equally wide. */
static uint64_t permutation_encipher(const struct permutation *permutation, uint64_t value)
{
    uint64_t low = value & permutation->low_mask;
    uint64_t high = value >> permutation->low_bits;
    for (uint32_t round = 0; round < PERMUTATION_ROUNDS; round += 2) {
        high ^= (prng_mix(low ^ permutation->keys[round]) >> 7) & permutation->high_mask;
        low ^= (prng_mix(high ^ permutation->keys[round + 1]) >> 7) & permutation->low_mask;
    }
    return (high << permutation->low_bits) | low;
}

uint64_t permutation_at(const struct permutation *permutation, uint64_t index)
{
    CADRE_ASSERT(index < permutation->count);
    uint64_t value = permutation_encipher(permutation, index);
    /* Following the cycle of `index` comes back to `index` at the latest, so this ends. */
    while (value >= permutation->count) {
        value = permutation_encipher(permutation, value);
    }
    return value;
}

/* Several networks at a time, because the rounds of one depend on each other. */
static void encipher_lanes(const struct permutation *permutation, uint64_t values[LANES])
{
    uint64_t low[LANES];
    uint64_t high[LANES];
    EACH_LANE
    {
        low[lane] = values[lane] & permutation->low_mask;
        high[lane] = values[lane] >> permutation->low_bits;
    }
    for (uint32_t round = 0; round < PERMUTATION_ROUNDS; round += 2) {
        EACH_LANE
        {
            high[lane] ^=
                (prng_mix(low[lane] ^ permutation->keys[round]) >> 7) & permutation->high_mask;
        }
        EACH_LANE
        {
            low[lane] ^=
                (prng_mix(high[lane] ^ permutation->keys[round + 1]) >> 7) & permutation->low_mask;
        }
    }
    EACH_LANE
    {
        values[lane] = (high[lane] << permutation->low_bits) | low[lane];
    }
}

void permutation_at_each(const struct permutation *permutation, uint64_t indices[], size_t count)
{
    if (count < LANES / 2) {
        for (size_t i = 0; i < count; i++) {
            indices[i] = permutation_at(permutation, indices[i]);
        }
        return;
    }
    for (size_t base = 0; base < count; base += CHUNK) {
        uint64_t values[CHUNK] = {0}; /* those that are not inside yet, one behind the other */
        uint32_t targets[CHUNK];      /* of each in the chunk */
        size_t left = count - base < CHUNK ? count - base : CHUNK;
        for (uint32_t i = 0; i < left; i++) {
            CADRE_ASSERT(indices[base + i] < permutation->count);
            values[i] = indices[base + i];
            targets[i] = i;
        }
        while (left > 0) {
            for (size_t i = 0; i < left; i += LANES) {
                encipher_lanes(permutation, values + i);
            }
            size_t outside = 0;
            for (size_t i = 0; i < left; i++) {
                uint64_t value = values[i];
                uint32_t target = targets[i];
                indices[base + target] = value;
                values[outside] = value;
                targets[outside] = target;
                outside += value >= permutation->count ? 1 : 0;
            }
            left = outside;
        }
    }
}
