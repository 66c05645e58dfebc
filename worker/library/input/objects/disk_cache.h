/* SPDX-License-Identifier: Apache-2.0
 * Blocks of objects on the disk of this host, for all tasks of it and for later epochs, jobs and
 * starts: in the folder CADRE_CACHE_FOLDER, up to CADRE_CACHE_MIB mebibytes (16384). Without the
 * folder there is none.
 *
 *     FOLDER/<hash of path, ETag, size>/<number of the block>     a head with checksums, the bytes
 *
 * Those that were used longest ago make room. A file that is damaged, or of another block, counts
 * as none and is removed. What cannot be written is not kept: a full disk only means no caching.
 *
 * Any thread. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_DISK_CACHE_H
#define CADRE_WORKER_INPUT_OBJECTS_DISK_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/sha256.h"

/* One state of one object. text "": its blocks are not kept. */
struct disk_cache_key {
    char text[SHA256_HEX_BYTES];
};

/* Reads the environment and makes the folder, once. INVALID_ARGUMENT names a variable and its
 * value; or why the folder cannot be made, unless the disk is full. */
cadre_status disk_cache_prepare(struct cadre_error *error);

/* For tests: the environment is read again. */
void disk_cache_reset(void);

/* The key of an object; of one without a version (its ETag), or where there is no cache, "". */
void disk_cache_key_make(
    const char *path, const char *version, uint64_t bytes, struct disk_cache_key *ret_key);

/* Calls `each` for the numbers of the object's blocks that are there, in no order. */
void disk_cache_list(
    const struct disk_cache_key *key, void (*each)(void *user, uint64_t number), void *user);

/* What a block has at most. */
#define DISK_BLOCK_BYTES ((size_t)256 << 10)

/* What the caller has checked of one block, zeroed at first: which pieces, of which file. A piece
 * of the same file is not checked again but by one read of sixteen, so that a disk that goes bad is
 * found. */
typedef _Atomic uint32_t disk_checked;

/* Reads block `number`, of exactly `bytes` bytes. False: it is not there. `checked` NULL: all of it
 * is checked. */
bool disk_cache_read(const struct disk_cache_key *key, uint64_t number, void *to, size_t bytes,
    disk_checked *checked);

/* Reads bytes [offset, offset + count) of block `number`, which has `bytes`; of the
 * rest no more than the pieces of 16 KiB that they lie in. */
bool disk_cache_read_range(const struct disk_cache_key *key, uint64_t number, size_t bytes,
    size_t offset, void *to, size_t count, disk_checked *checked);

/* Keeps it, as a whole or not at all, and returns whether it is kept. */
bool disk_cache_write(
    const struct disk_cache_key *key, uint64_t number, const void *bytes, size_t size);

#endif
