/* SPDX-License-Identifier: Apache-2.0
 * The index file of a cache: where each element lies in the data file, and what the cache is of. It
 * is written last, so where it is the cache is complete. */
#ifndef CADRE_WORKER_INPUT_CACHE_CACHE_INDEX_H
#define CADRE_WORKER_INPUT_CACHE_CACHE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/sha256.h"
#include "worker/library/input/node/node.h"

struct cache_entry {
    uint64_t offset;
    uint64_t bytes;    /* 0: not there */
    uint64_t checksum; /* CRC-32C */
};

/* Zeroed: empty. */
struct cache_index {
    struct sha256 pipeline; /* of the description and the element spec of what was cached */
    uint64_t stamp;         /* that the data file begins with */
    uint64_t data_bytes;
    uint64_t count;
    struct cache_entry *entries;
};

/* What a cache of `data` is of: how the pipeline was built, and what its elements look like. */
cadre_status cache_index_pipeline(
    cadre_dataset *data, struct sha256 *ret_hash, struct cadre_error *error);

/* NOT_FOUND: there is none. DATA_LOSS: it is cut short, damaged, or no index at all. The entries
 * lie inside the data. On success the caller's to clear. */
cadre_status cache_index_read(
    const char *path, struct cache_index *ret_index, struct cadre_error *error);

/* Whole, or not at all. */
cadre_status cache_index_write(
    const char *path, const struct cache_index *index, struct cadre_error *error);

void cache_index_clear(struct cache_index *index);

#endif
