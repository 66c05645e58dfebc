/* SPDX-License-Identifier: Apache-2.0
 * Logs that lie in an object store (log_segment.h), and the files in which this coordinator works
 * on them: log_files.c and log_read.c use these as they are. A log's segments are listed when it
 * is first used: then its file has the right size, which is enough to append, and the bytes come
 * when it is first read. Files that are not in use go when all take more than the limit, the ones
 * used longest ago first. In threads, but for open, close and forget. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_COPIES_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_COPIES_H

#include "common/model/ids.h"
#include "coordinator/daemon/base/leading.h"
#include "coordinator/daemon/base/log_hole.h"
#include "coordinator/daemon/logs/log_segment.h"
#include "coordinator/daemon/objects/objects.h"

struct log_copies;
struct log_copy;

/* Of a coordinator that leads with this term. No log has a file yet. The pointers stay the
 * caller's. */
cadre_status log_copies_open(struct objects *objects, const struct leading *leading, uint64_t term,
    uint64_t limit_bytes, struct log_copies **ret_copies, struct cadre_error *error);
/* NULL is allowed; none may be in use. */
void log_copies_close(struct log_copies *copies);

/* The log of a slot, whose file is at `path`: it stays until log_copies_done(). NULL: no memory. */
struct log_copy *log_copies_use(
    struct log_copies *copies, struct job_id job, uint32_t slot, const char *path);
void log_copies_done(struct log_copies *copies, struct log_copy *copy);

/* The job's files are being removed. NULL is allowed. */
void log_copies_forget(struct log_copies *copies, struct job_id job);

/* ---- of one that is in use ---- */

/* Its files have all bytes and marks. UNAVAILABLE: the store is away. */
cadre_status log_copy_fill(struct log_copy *copy, struct cadre_error *error);

/* Its file has the right size, and no other thread writes it until log_copy_end(). */
cadre_status log_copy_begin(struct log_copy *copy, struct cadre_error *error);
/* Joins small segments, after this turn. */
void log_copy_end(struct log_copy *copy);

/* Between the two: puts the bytes from segment->begin to segment->end, which are not in the file
 * yet; the term is set here. Marks are in order, the first one at segment->begin. UNAVAILABLE too
 * if this coordinator may not lead any more: then the sender is to keep them. */
cadre_status log_copy_put(struct log_copy *copy, const struct log_segment *segment,
    const uint8_t *bytes, const struct log_mark *marks, size_t mark_count,
    struct cadre_error *error);
/* Likewise: what is in the hole is not kept in the store either. */
void log_copy_drop(struct log_copy *copy, const struct log_hole *hole);

#endif
