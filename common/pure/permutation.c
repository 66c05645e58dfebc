/* SPDX-License-Identifier: Apache-2.0
 * A Feistel network with cycle walking; see permutation.h. */
#include "common/pure/permutation.h"

#include "common/pure/assert.h"
#include "common/pure/prng.h"

/* Below this width the halves are so narrow that the rounds repeat themselves; walking costs less.
 */
#define DOMAIN_BITS_MIN 6

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
static uint64_t encipher(const struct permutation *permutation, uint64_t value)
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
    uint64_t value = encipher(permutation, index);
    /* Following the cycle of `index` comes back to `index` at the latest, so this ends. */
    while (value >= permutation->count) {
        value = encipher(permutation, value);
    }
    return value;
}
