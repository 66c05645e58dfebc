/* SPDX-License-Identifier: Apache-2.0
 * A seeded generator without floats: the same draws on every machine and compiler.
 * Follows SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
#ifndef CADRE_PURE_PRNG_H
#define CADRE_PURE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 cadre_u128;

struct prng {
    uint64_t state;
};

/* One finalising round: a good 64-bit hash of `x`. */
static inline uint64_t prng_mix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static inline uint64_t prng_next(struct prng *prng)
{
    uint64_t drawn = prng_mix(prng->state);
    prng->state += UINT64_C(0x9E3779B97F4A7C15);
    return drawn;
}

/* As if so many had been drawn. */
static inline void prng_skip(struct prng *prng, uint64_t draws)
{
    prng->state += UINT64_C(0x9E3779B97F4A7C15) * draws;
}

/* Uniform in [0, bound); bound > 0. The bias of the multiply-shift is below 2^-32 for bounds under
 * 2^32. */
static inline uint64_t prng_uniform(struct prng *prng, uint64_t bound)
{
    return (uint64_t)(((cadre_u128)prng_next(prng) * bound) >> 64);
}

/* True with probability numerator / denominator. */
static inline bool prng_chance(struct prng *prng, uint64_t numerator, uint64_t denominator)
{
    return prng_uniform(prng, denominator) < numerator;
}

#endif
