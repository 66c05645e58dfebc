/* SPDX-License-Identifier: Apache-2.0
 * Philox4x32-10: 128 random bits for each counter, under a key. No state, so any offset of a stream
 * costs the same. Follows Salmon, Moraes, Dror, Shaw, SC 2011. */
#ifndef CADRE_PURE_PHILOX_H
#define CADRE_PURE_PHILOX_H

#include <stdint.h>

#define PHILOX_ROUNDS 10

static inline void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_bits[4])
{
    uint32_t k0 = key[0];
    uint32_t k1 = key[1];
    uint32_t c0 = counter[0];
    uint32_t c1 = counter[1];
    uint32_t c2 = counter[2];
    uint32_t c3 = counter[3];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t even = (uint64_t)0xD2511F53u * c0;
        uint64_t odd = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(odd >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)odd;
        c2 = (uint32_t)(even >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)even;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    ret_bits[0] = c0;
    ret_bits[1] = c1;
    ret_bits[2] = c2;
    ret_bits[3] = c3;
}

#endif
