/* SPDX-License-Identifier: Apache-2.0
 * A seeded permutation of [0, n), computed per index in O(1) memory: the same on every machine and
 * compiler.
 *
 * A Feistel network of PERMUTATION_ROUNDS rounds over the smallest power of two >= n (at least 64),
 * with prng_mix under round keys drawn from (seed, epoch) as its round function; values outside [0,
 * n) are walked along their cycle until they fall inside, fewer than two steps on average for n
 * > 32. Quality: tests/unit/input/test_permutation.c checks over many epochs that each (index,
 * value) and each pair of neighbours is equally frequent. It is a shuffle, not a cipher. */
#ifndef CADRE_PURE_PERMUTATION_H
#define CADRE_PURE_PERMUTATION_H

#include <stddef.h>
#include <stdint.h>

#define PERMUTATION_ROUNDS    12
#define PERMUTATION_COUNT_MAX (UINT64_C(1) << 63)

struct permutation {
    uint64_t count;
    uint64_t low_mask;  /* the lower half of an index */
    uint64_t high_mask; /* the upper half, shifted down; as wide or one bit wider */
    uint32_t low_bits;
    uint64_t keys[PERMUTATION_ROUNDS];
};

/* `count` is at most PERMUTATION_COUNT_MAX; 0 is allowed and permutes nothing. */
void permutation_init(
    struct permutation *permutation, uint64_t count, uint64_t seed, uint64_t epoch);

/* Where index `index` < count goes: a value in [0, count). */
uint64_t permutation_at(const struct permutation *permutation, uint64_t index);

/* The same for each of `count` indices, in place: several times faster than one after the other. */
void permutation_at_each(const struct permutation *permutation, uint64_t indices[], size_t count);

#endif
