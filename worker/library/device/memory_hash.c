/* SPDX-License-Identifier: Apache-2.0
 * See memory_hash.h. */
#include "worker/library/device/memory_hash.h"

#include <xxhash.h>

#include "common/pure/assert.h"

uint64_t hash_plain(const void *bytes, size_t size)
{
    return XXH3_64bits(size > 0 ? bytes : "", size);
}

uint64_t hash_seeded(const void *bytes, size_t size, uint64_t seed)
{
    return XXH3_64bits_withSeed(size > 0 ? bytes : "", size, seed);
}

size_t hash_chunk_count(size_t size)
{
    return size <= HASH_CHUNK_BYTES ? 1 : (size - 1) / HASH_CHUNK_BYTES + 1;
}

size_t hash_chunks(const void *bytes, size_t size, struct hash_turn turn, uint64_t chunks[])
{
    size_t count = hash_chunk_count(size);
    size_t hashed = 0;
    CADRE_ASSERT(turn.stride > 0);
    for (size_t i = turn.first; i < count; i += turn.stride) {
        size_t at = i * HASH_CHUNK_BYTES;
        size_t part = size - at < HASH_CHUNK_BYTES ? size - at : HASH_CHUNK_BYTES;
        chunks[i] = hash_plain(part > 0 ? (const char *)bytes + at : NULL, part);
        hashed += part;
    }
    return hashed;
}

uint64_t hash_join(const uint64_t chunks[], size_t count)
{
    CADRE_ASSERT(count > 0);
    return count == 1 ? chunks[0] : hash_plain(chunks, count * sizeof chunks[0]);
}
