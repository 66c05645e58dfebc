/* SPDX-License-Identifier: Apache-2.0
 * Hashes of memory that can be computed in parallel: XXH3 (64 bits, seed 0) of each chunk of
 * HASH_CHUNK_BYTES, the last of which may be shorter; and where there are several, XXH3 of their
 * hashes in a row. So memory of at most one chunk has its plain XXH3, and a caller that keeps the
 * chunks' hashes can update some of them. */
#ifndef CADRE_WORKER_DEVICE_MEMORY_HASH_H
#define CADRE_WORKER_DEVICE_MEMORY_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/device/device.h"
#include "worker/library/device/device_ops.h"

#define HASH_CHUNK_BYTES ((size_t)DEVICE_CHUNK_BYTES)

/* The name of these hashes where they are written. */
#define HASH_NAME "xxh3-chunks-65536"

/* XXH3 of it all at once; `bytes` may be NULL where `size` is 0. */
uint64_t hash_plain(const void *bytes, size_t size);
/* The same with a seed. */
uint64_t hash_seeded(const void *bytes, size_t size, uint64_t seed);

/* How many chunks it has; empty memory has one. */
size_t hash_chunk_count(size_t size);

/* Which chunks are hashed: the one of number `first`, and each `stride`-th after it. */
struct hash_turn {
    size_t first;
    size_t stride; /* from 1 on */
};

/* Sets chunks[i] of those whose turn it is. Returns how many bytes they have. */
size_t hash_chunks(const void *bytes, size_t size, struct hash_turn turn, uint64_t chunks[]);

/* The hash of memory of so many chunks. */
uint64_t hash_join(const uint64_t chunks[], size_t count);

/* --- The hashes of memory_hash.h of memory on a device, by a kernel of its own: only the hashes,
 * and chunks that are shorter than others, are copied to the host. --- */

/* One piece of a device's memory, and which of its chunks are hashed. */
struct device_hashed {
    const void *data;
    size_t size;
    struct hash_turn turn;
    uint64_t *chunks; /* [hash_chunk_count(size)], on the host; set where their turn is */
};

/* Waits until all are hashed, in the order of the compute stream. Adds how many bytes they had to
 * *hashed. Any thread. */
cadre_status device_hash(struct device *device, const struct device_hashed pieces[], size_t count,
    size_t *hashed, struct cadre_error *error);

#endif
