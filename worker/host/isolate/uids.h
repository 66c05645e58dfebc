/* SPDX-License-Identifier: Apache-2.0
 * A uid for each job that runs here. */
#ifndef CADRE_WORKER_ISOLATE_UIDS_H
#define CADRE_WORKER_ISOLATE_UIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "common/model/ids.h"

struct uids;

/* Opens the range. INVALID_ARGUMENT: an empty range, or one with a user of this host in it.
 * `claim_folder`, made when it does not exist, has a lock for each uid in use, for the other
 * daemons of this host; NULL: none. */
cadre_status uids_open(uid_t first, uid_t last, const char *claim_folder, struct uids **ret_uids,
    struct cadre_error *error);
/* Releases all locks; NULL is fine. */
void uids_close(struct uids *uids);

/* One more user of the job's uid. A new job gets the uid that has been free longest; no process
 * that is visible here runs under it, but what is left of its earlier jobs is to be removed: see
 * uids_is_clean. */
cadre_status uids_acquire(
    struct uids *uids, struct job_id job, uid_t *ret_uid, struct cadre_error *error);

/* The job has this one already: its tasks run. Does not count as taken; the uid is free when
 * nothing runs under it any more. */
void uids_adopt(struct uids *uids, struct job_id job, uid_t uid);

/* *ret_uid is the job's. True: that was the last one of its users. With *ret_ours no job has the
 * uid, and it is free after uids_emptied, when what the job left is removed; without it the job
 * ended while this daemon was away, and another daemon has given the uid to a job of its own: it
 * must not be touched. */
bool uids_release(struct uids *uids, struct job_id job, uid_t *ret_uid, bool *ret_ours);

/* Of a uid that a job has. Its last user may not have been cleaned up: one that was free is not
 * clean before uids_emptied. */
bool uids_is_clean(const struct uids *uids, uid_t uid);
/* True for the first caller, which then empties it. */
bool uids_begin_empty(struct uids *uids, uid_t uid);

/* For the job that has it now, in a thread: holds it against all daemons of this kernel and
 * removes what others left (uid_cleanup_claim). */
void uids_claim(struct uids *uids, uid_t uid);
/* Of the job that had it, in a thread: kills and removes what it left (uid_cleanup_remove). */
void uids_clear(struct uids *uids, uid_t uid);

/* The end of the two: it is clean for the job that has it, or free. When something else runs
 * under it, a daemon in a container for instance, its job gets *ret_uid instead, which is not
 * clean. False: no other is free; the job keeps the uid, and it is not clean. */
bool uids_emptied(struct uids *uids, uid_t uid, uid_t *ret_uid);

#endif
