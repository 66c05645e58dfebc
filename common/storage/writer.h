/* SPDX-License-Identifier: Apache-2.0
 * An object written from its start to its end, of a size that is not known before: nothing is seen
 * of it until it is finished. A small one is one request. Of a larger one parts are written at the
 * same time, by threads of the writer, while the caller goes on; so it holds five buffers of
 * STORAGE_PART_BYTES at most, 40 MiB, and larger ones from the 1,001st part (8 GB) on, because an
 * object has STORAGE_PARTS_MAX parts. One thread at a time. */
#ifndef CADRE_COMMON_STORAGE_WRITER_H
#define CADRE_COMMON_STORAGE_WRITER_H

#include "common/base/sha256.h"
#include "common/storage/storage.h"

struct storage_writer;

/* No network. On success the writer is the caller's to finish or abort. `client` NULL: that of the
 * process. */
cadre_status storage_writer_open(struct storage_client *client, const char *path,
    struct storage_writer **ret_writer, struct cadre_error *error);

/* Called for each part before it is sent: bytes [offset, offset + size) of the object, which are
 * valid during the call, and their hash. From any thread, for several parts at a time; of an object
 * that one request writes by storage_writer_finish(). What it returns but OK is a failure of the
 * part. All parts but the last are a power of two times STORAGE_PART_BYTES long, and begin at a
 * multiple of that. */
typedef cadre_status storage_part_seen(void *user, uint64_t offset, const void *bytes, size_t size,
    const struct sha256 *hash, struct cadre_error *error);

/* For tests: parts are twice as large from each so many on; 0: 1,000, as is the default. */
void storage_writer_grow_after(uint32_t part_count);

/* Before the first bytes are added. */
void storage_writer_watch(struct storage_writer *writer, storage_part_seen *seen, void *user);

/* Appends bytes; waits while all buffers are on their way. The first failure of a part is returned
 * by the next call, and by all after it. */
cadre_status storage_writer_add(
    struct storage_writer *writer, const void *bytes, size_t size, struct cadre_error *error);

/* Waits for all parts, and makes them an object, over one that is there. Frees the writer, also on
 * failure, after which nothing is left of it. */
cadre_status storage_writer_finish(struct storage_writer *writer, struct cadre_error *error);

/* Nothing is left of it, as far as possible. Frees it; NULL is allowed. */
void storage_writer_abort(struct storage_writer *writer);

#endif
