/* SPDX-License-Identifier: Apache-2.0
 * Copies on the coordinator's disk of contents that lie in the object store, under their hashes.
 * A content is fetched when it is first needed, by one thread, and its hash checked; what was used
 * longest ago goes when the copies take more than their limit. All may be lost at any time. In
 * threads, but for open and close. */
#ifndef CADRE_COORDINATOR_DAEMON_OBJECTS_OBJECT_CACHE_H
#define CADRE_COORDINATOR_DAEMON_OBJECTS_OBJECT_CACHE_H

#include "common/base/sha256.h"
#include "coordinator/daemon/objects/objects.h"

struct object_cache;

/* The folder is there; what a kill left in it of fetches and uploads is removed. Both stay the
 * caller's. */
cadre_status object_cache_open(struct objects *objects, const char *folder, uint64_t limit_bytes,
    struct object_cache **ret_cache, struct cadre_error *error);
/* NULL is allowed; no thread may be at work. */
void object_cache_close(struct object_cache *cache);

/* Opens the file of a content in `folder` for reading; with a cache, whose folder that is, it is
 * fetched first where it is missing. NULL: the folder is where contents lie, and there is no store.
 * NOT_FOUND: there is no such content. DATA_LOSS: what is in the store does not have its hash.
 * UNAVAILABLE: the store is away. */
cadre_status object_cache_read(struct object_cache *cache, const char *folder,
    const uint8_t sha256[SHA256_BYTES], int *ret_fd, uint64_t *ret_bytes,
    struct cadre_error *error);

/* A copy of that many bytes got its name. */
void object_cache_came(struct object_cache *cache, uint64_t bytes);
/* The copy is removed, because it is damaged or the content is not needed any more. */
void object_cache_drop(struct object_cache *cache, const uint8_t sha256[SHA256_BYTES]);

#endif
