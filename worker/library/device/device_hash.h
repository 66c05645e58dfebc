/* SPDX-License-Identifier: Apache-2.0
 * The hashes of memory_hash.h of memory on a device, by a kernel of its own: only the hashes, and
 * chunks that are shorter than others, are copied to the host. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_HASH_H
#define CADRE_WORKER_DEVICE_DEVICE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/device/device.h"
#include "worker/library/device/memory_hash.h"

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
