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

/* The job's uid, one more time. A free one is the one that has been free longest; nothing runs
 * under it, and what is left of its earlier jobs is removed first. */
cadre_status uids_take(
    struct uids *uids, struct job_id job, uid_t *ret_uid, struct cadre_error *error);

/* The job has this one already: its tasks run. Counts as nothing taken; it is free when nothing
 * runs under it any more. */
void uids_note(struct uids *uids, struct job_id job, uid_t uid);

/* *ret_uid is the job's. True: that was the last one of its takers. If *ret_ours the uid is
 * nobody's, and not free before uids_emptied, when what the job left is removed; else the job ended
 * while this daemon was away, and another one has given the uid to a job of its own: hands off. */
bool uids_give(struct uids *uids, struct job_id job, uid_t *ret_uid, bool *ret_ours);
void uids_emptied(struct uids *uids, uid_t uid);

#endif
