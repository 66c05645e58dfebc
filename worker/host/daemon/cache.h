/* SPDX-License-Identifier: Apache-2.0
 * The contents in blob_dir, kept for the next job. */
#ifndef CADRE_WORKER_DAEMON_CACHE_H
#define CADRE_WORKER_DAEMON_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/sha256.h"
#include "common/model/job.h"

/* The contents in this host's cache, which are used only after they were hashed from what the
 * disk gives. For threads of the pool: nothing here touches the daemon. */

enum content_state {
    CONTENT_INTACT,
    CONTENT_NOT_CACHED, /* it is not in the cache */
    CONTENT_DAMAGED,    /* its bytes do not have its hash */
    CONTENT_REMOVED     /* the same, and this call removed it from the cache */
};

/* Copies the content at `from` to `to`, which is made, and hashes the very bytes that are
 * written. Any error: `to` may be incomplete; *ret_state is CONTENT_INTACT unless `from` is the
 * cause (DATA_LOSS, NOT_FOUND), and what is damaged is removed from the cache. */
cadre_status content_copy(const char *from, const uint8_t sha256[SHA256_BYTES], const char *to,
    bool executable, enum content_state *ret_state, struct cadre_error *error);

/* A check of one content, piece by piece, so that no thread is held for long. */
struct content_check;

/* A check of the content at `path`, which is copied; nothing is opened yet. NULL: no memory. */
struct content_check *content_check_open(const char *path, const uint8_t sha256[SHA256_BYTES]);
/* Reads the next `bytes` of it, from the disk rather than from the system's memory where the
 * file system allows that. False: that was the last piece, or it cannot be read; then *ret_state
 * is the result, and what is damaged is removed from the cache. */
bool content_check_piece(
    struct content_check *check, uint64_t bytes, enum content_state *ret_state);
/* Ends the check at any piece; NULL is fine. */
void content_check_close(struct content_check *check);

struct daemon;
struct task_files;

/* At the start, and when a content came, removes the least recently used ones that no task here
 * needs, down to --cache-limit. */
cadre_status cache_open(struct daemon *daemon, struct cadre_error *error);
/* The path of a content; malloc'ed, NULL: no memory. In any thread. */
char *cache_path(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);
/* Records a use, for the eviction. In any thread. */
void cache_used(const char *path);
/* Counts a content that was fetched. `was_here`: two tasks fetched it at one time. */
void cache_added(struct daemon *daemon, uint64_t bytes, bool was_here);
/* Logs that the content was found damaged for the task and was removed from the cache. */
void cache_damaged(struct task_files *task, const struct job_file *file, enum content_state state);
/* Subtracts a content that was removed as damaged. */
void cache_removed(struct daemon *daemon, uint64_t bytes);

/* Hashes again, every --cache-check, what jobs that run here took from the cache. */

struct daemon;

/* Starts the checks; the first round begins after --cache-check. */
cadre_status cache_check_open(struct daemon *daemon, struct cadre_error *error);
/* Ends them; when no thread is at work any more. */
void cache_check_close(struct daemon *daemon);

#endif
