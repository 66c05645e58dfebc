/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/input/node/sample_id.h"

#include "common/pure/prng.h"

#define HASHED (UINT64_C(1) << 63)

uint64_t sample_id_of(uint64_t outer_id, uint64_t ordinal)
{
    if (outer_id >> SAMPLE_ID_OUTER_BITS == 0 && ordinal >> SAMPLE_ID_ORDINAL_BITS == 0) {
        return outer_id << SAMPLE_ID_ORDINAL_BITS | ordinal;
    }
    return HASHED | prng_mix(prng_mix(outer_id) + ordinal);
}

bool sample_id_split(uint64_t id, uint64_t *ret_outer_id, uint64_t *ret_ordinal)
{
    *ret_outer_id = id >> SAMPLE_ID_ORDINAL_BITS;
    *ret_ordinal = id & ((UINT64_C(1) << SAMPLE_ID_ORDINAL_BITS) - 1);
    return *ret_outer_id >> SAMPLE_ID_OUTER_BITS == 0;
}
