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

/* INVALID_ARGUMENT: an empty range, or one with a user of this host in it. `claim_folder`, made
 * when it is not there, has a lock for each uid in use: other daemons of this host see it; NULL:
 * none. */
cadre_status uids_open(uid_t first, uid_t last, const char *claim_folder, struct uids **ret_uids,
    struct cadre_error *error);
void uids_close(struct uids *uids); /* NULL is fine */

/* The job's uid, one more time. A free one is the one that has been free longest; nothing that is
 * seen from here runs under it, but what is left of its earlier jobs is to be removed: see
 * uids_is_clean. */
cadre_status uids_acquire(
    struct uids *uids, struct job_id job, uid_t *ret_uid, struct cadre_error *error);

/* The job has this one already: its tasks run. Counts as nothing taken; it is free when nothing
 * runs under it any more. */
void uids_adopt(struct uids *uids, struct job_id job, uid_t uid);

/* *ret_uid is the job's. True: that was the last one of its takers. If *ret_ours the uid is
 * nobody's, and not free before uids_emptied, when what the job left is removed; else the job ended
 * while this daemon was away, and another one has given the uid to a job of its own: hands off. */
bool uids_release(struct uids *uids, struct job_id job, uid_t *ret_uid, bool *ret_ours);

/* Of a uid that a job has. Whoever had it may not have come to its end: one that was free is not
 * clean before uids_emptied. The first to begin is told true. */
bool uids_is_clean(const struct uids *uids, uid_t uid);
bool uids_begin_empty(struct uids *uids, uid_t uid);

/* What is between the two, in a thread: for the job that has it now, holds it against all daemons
 * of this kernel and removes what others left (uid_cleanup_claim); of the job that had it, kills
 * and removes what it left (uid_cleanup_remove). */
void uids_claim(struct uids *uids, uid_t uid);
void uids_clear(struct uids *uids, uid_t uid);

/* It is clean for the job that has it, or free. When something else runs under it, a daemon in a
 * container for instance, its job has *ret_uid instead, which is not clean. False: no other is
 * free; the job has it still, and it is not clean. */
bool uids_emptied(struct uids *uids, uid_t uid, uid_t *ret_uid);

#endif
