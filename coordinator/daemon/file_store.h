/* SPDX-License-Identifier: Apache-2.0
 * The files that travel: contents by hash, and what jobs left behind. */
#ifndef CADRE_COORDINATOR_DAEMON_FILE_STORE_H
#define CADRE_COORDINATOR_DAEMON_FILE_STORE_H

#include "common/base/sha256.h"
#include "coordinator/daemon/daemon.h"

/* OK when the content of `file` is here with the right size; else FAILED_PRECONDITION that names
 * the file. */
cadre_status file_store_check(
    struct daemon *daemon, const struct job_file *file, struct cadre_error *error);

/* The content is here with this size. */
bool file_store_has(const struct daemon *daemon, const struct sha256 *hash, uint64_t size_bytes);

/* The content is here, and came before that time of the wall clock. */
bool file_store_is_older(const struct daemon *daemon, const struct sha256 *hash, uint64_t wall_us);

/* The answer to a worker about a content that is not here, or that it may not have: NOT_FOUND, by
 * its hash. */
cadre_status file_store_none(const struct sha256 *hash, struct cadre_error *error);

/* What came in until now is found again after a loss of power: before anything durable counts on
 * it.
 */
cadre_status file_store_sync(const struct daemon *daemon, struct cadre_error *error);

/* Removes one that nobody needs any more; with `unless_asked` not if somebody asked for it lately:
 * it may be part of something that is being uploaded. */
void file_store_remove(const struct daemon *daemon, const struct sha256 *hash, bool unless_asked);

/* At start, when nobody uploads: what uploads that were cut short left behind. */
cadre_status file_store_remove_halves(const struct daemon *daemon, struct cadre_error *error);

/* Removes contents that nobody needs and nobody asked for in a while; seldom, for it looks at every
 * content. */
void file_store_clean_some_time(struct daemon *daemon);

#endif
