/* SPDX-License-Identifier: Apache-2.0
 * The order-independent digest of sample ids; see digest.h. */
#include "common/pure/digest.h"

#include "common/pure/prng.h"

/* Two unrelated constants: the lanes must not be functions of each other. */
#define LANE_0 UINT64_C(0x243F6A8885A308D3)
#define LANE_1 UINT64_C(0x13198A2E03707344)

struct digest_key digest_key_make(const char *name, size_t name_bytes, uint64_t epoch)
{
    struct digest_key key = {.lane = {LANE_0, LANE_1}};
    for (size_t i = 0; i < name_bytes; i++) {
        uint64_t byte = (unsigned char)name[i];
        key.lane[0] = prng_mix(key.lane[0] ^ byte);
        key.lane[1] = prng_mix(key.lane[1] + byte);
    }
    key.lane[0] = prng_mix(prng_mix(key.lane[0] ^ name_bytes) ^ epoch);
    key.lane[1] = prng_mix(prng_mix(key.lane[1] + name_bytes) + epoch);
    return key;
}

void digest_add(struct digest *digest, const struct digest_key *key, uint64_t id)
{
    digest->lane[0] += prng_mix(prng_mix(id ^ key->lane[0]) ^ key->lane[1]);
    digest->lane[1] += prng_mix(prng_mix(id + key->lane[1]) + key->lane[0]);
}

void digest_add_each(
    struct digest *digest, const struct digest_key *key, const uint64_t ids[], size_t count)
{
    struct digest sum = *digest; /* in registers */
    const struct digest_key own = *key;
    for (size_t i = 0; i < count; i++) {
        digest_add(&sum, &own, ids[i]);
    }
    *digest = sum;
}

void digest_merge(struct digest *digest, const struct digest *other)
{
    digest->lane[0] += other->lane[0];
    digest->lane[1] += other->lane[1];
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return a->lane[0] == b->lane[0] && a->lane[1] == b->lane[1];
}
