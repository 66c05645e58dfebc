/* SPDX-License-Identifier: Apache-2.0
 * The contents in blob_dir, kept for the next job. */
#ifndef CADRE_WORKER_DAEMON_CACHE_H
#define CADRE_WORKER_DAEMON_CACHE_H

#include "common/base/error.h"
#include "common/model/job.h"
#include "worker/host/daemon/content.h"

struct daemon;
struct task_files;

/* At the start, and when one came, the least recently used that
 * no task here needs are removed down to --cache-limit. */
cadre_status cache_open(struct daemon *daemon, struct cadre_error *error);
/* Where a content lies; malloc'ed, NULL: no memory. In any thread. */
char *cache_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);
/* In any thread. */
void cache_used(const char *path);
/* `was_here`: two tasks fetched it at one time. */
void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here);
/* The content was found damaged for the task, and is not in the cache any more: says so. */
void cache_damaged(struct task_files *task, const struct job_file *file, enum content_state state);
/* One that was removed for that counts no more. */
void cache_removed(struct daemon *daemon, uint64_t bytes);

#endif
