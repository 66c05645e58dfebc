/* SPDX-License-Identifier: Apache-2.0
 * See neighbour_map.h. */
#include "worker/library/neighbours/neighbour_map.h"

#include "common/pure/assert.h"
#include "common/pure/prng.h"

uint64_t neighbour_object(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *path != '\0'; path++) {
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    }
    return prng_mix(hash);
}

uint32_t neighbour_owner(const uint64_t ids[], uint32_t count, uint64_t object, uint64_t segment)
{
    uint64_t what = prng_mix(object ^ prng_mix(segment));
    uint32_t best = 0;
    uint64_t most = 0;
    CADRE_ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t weight = prng_mix(what ^ prng_mix(ids[i]));
        if (i == 0 || weight > most || (weight == most && ids[i] < ids[best])) {
            best = i;
            most = weight;
        }
    }
    return best;
}
