/* SPDX-License-Identifier: Apache-2.0
 * Which content of the cache an object of a store is: <blobs>/object-<hash of the store's address,
 * URL, ETag and size> holds the hash of the content. For threads of the pool. */
#ifndef CADRE_WORKER_DAEMON_OBJECTS_OBJECT_INDEX_H
#define CADRE_WORKER_DAEMON_OBJECTS_OBJECT_INDEX_H

#include "common/base/error.h"
#include "common/base/sha256.h"
#include "common/storage/storage.h"
#include "worker/host/daemon/objects/job_storage.h"

/* The path of the entry; malloc'ed. *ret_path is NULL, and the status OK, when the object has no
 * version by which it could be known. */
cadre_status object_index_path(const char *blob_dir, const struct job_storage *storage,
    const char *url, const struct storage_info *info, char **ret_path, struct cadre_error *error);
/* False: there is no entry, or no content of that size. */
bool object_index_find(
    const char *path, const char *blob_dir, uint64_t size_bytes, uint8_t ret_sha256[SHA256_BYTES]);
/* Without an entry the object is fetched again by the next task. */
void object_index_keep(const char *path, const uint8_t sha256[SHA256_BYTES]);
/* At the start of the daemon: removes the entries of contents that are not here any more. */
void object_index_clear(const char *blob_dir);

#endif
