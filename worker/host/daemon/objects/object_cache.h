/* SPDX-License-Identifier: Apache-2.0
 * The room on this host's disk where tasks keep blocks of objects (worker/library/input/objects
 * reads and writes them): <state>/objects, up to a bound.
 *
 *     objects/<identity>[.<n>]/<object>/<block>
 *
 * A task gets the folder of its identity: jobs whose environment has the same keys of the same
 * store share one, as each of them may read what the others may; a job without keys has one of its
 * own. While a job uses it the folder belongs to the job's uid and is closed to all others; when
 * its last task here has ended the daemon takes it back. Jobs of one identity that run at the same
 * time under different uids have folders of their own.
 *
 * Who uses which folder is said by its owner alone, so that it outlives the daemon. */
#ifndef CADRE_WORKER_DAEMON_OBJECTS_OBJECT_CACHE_H
#define CADRE_WORKER_DAEMON_OBJECTS_OBJECT_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "worker/host/isolate/isolation.h"

/* Zeroed: there is none. Only `bytes` changes after the start; of the loop's thread. */
struct object_cache {
    char *folder;
    uint64_t limit_bytes; /* 0: there is none */
    uint64_t bytes;       /* at the last look */
};

/* The bound is the smaller one of `limit_bytes` and an eighth of the disk; below 64 MiB there is no
 * cache, and what is there is removed. `takes_over`: tasks run that an earlier incarnation of the
 * daemon has started, and keep their folders. */
cadre_status object_cache_open(struct object_cache *cache, const char *state_folder,
    uint64_t limit_bytes, bool takes_over, struct cadre_error *error);
/* Frees memory; folders stay. */
void object_cache_close(struct object_cache *cache);

/* In a thread, before a task's process: makes the folder of its identity (hexadecimal digits) its
 * user's. *ret_path is the caller's to free; NULL: there is no cache. */
cadre_status object_cache_give(const struct object_cache *cache, const char *identity,
    const struct isolation_user *user, char **ret_path, struct cadre_error *error);
/* In a thread, when all processes under the uid have ended: what it had is closed to it. */
void object_cache_take_back(const struct object_cache *cache, uid_t uid);

/* ---- object_cache_files.c ---- */

/* Gives a folder with all that is in it to another user, below `objects_fd`. What is neither a
 * folder nor a regular file with one name is removed. Returns 0 or an errno. */
int object_cache_chown(int objects_fd, const char *name, uid_t uid, gid_t gid);
/* Counts the blocks of all folders; when they have more than `limit_bytes`, those that were used
 * longest ago are removed, down to seven eighths of it. Returns the bytes that are left. In any
 * thread. */
uint64_t object_cache_trim(const char *objects, uint64_t limit_bytes);

#endif
