/* SPDX-License-Identifier: Apache-2.0
 * The contents in blob_dir, kept for the next job. */
#ifndef CADRE_WORKER_DAEMON_CACHE_H
#define CADRE_WORKER_DAEMON_CACHE_H

#include "common/base/error.h"
#include "common/model/job.h"
#include "worker/host/daemon/content.h"

struct daemon;
struct task_files;

/* At the start, and when a content came, removes the least recently used ones that no task here
 * needs, down to --cache-limit. */
cadre_status cache_open(struct daemon *daemon, struct cadre_error *error);
/* The path of a content; malloc'ed, NULL: no memory. In any thread. */
char *cache_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);
/* In any thread. */
void cache_used(const char *path);
/* Counts a content that was fetched. `was_here`: two tasks fetched it at one time. */
void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here);
/* Logs that the content was found damaged for the task and was removed from the cache. */
void cache_damaged(struct task_files *task, const struct job_file *file, enum content_state state);
/* Subtracts a content that was removed as damaged. */
void cache_removed(struct daemon *daemon, uint64_t bytes);

#endif
