/* SPDX-License-Identifier: Apache-2.0
 * A task of a crew that has no part in the ledger: a worker, a ps, the evaluator. It says hello,
 * hears who the others are and when it is over, and tells why it failed. (A chief is a task.h.)
 *
 *     session ── members ──▶ directory_update
 *             ── bye ──────▶ directory_end: CANCELLED, in order
 *             ── reset, superseded, refused, lost ──▶ directory_end, with that error */
#ifndef CADRE_RUNTIME_PS_JOB_PS_TASK_H
#define CADRE_RUNTIME_PS_JOB_PS_TASK_H

#include "common/base/error.h"
#include "worker/library/ps/directory.h"
#include "worker/library/runtime/task/session.h"

struct ps_task;

struct ps_task_options {
    struct session *session;     /* taken over, also on error */
    struct directory *directory; /* borrowed until the attendant is closed */
    const char *address;         /* where it listens; "": nowhere; copied */
};

/* Says hello, now and on each new connection. */
cadre_status ps_task_open(
    const struct ps_task_options *options, struct ps_task **ret_ps_task, struct cadre_error *error);

/* Its own program failed, for good: the job ends with it. */
void ps_task_failed(struct ps_task *ps_task, const struct cadre_error *error);

/* Shown to people; dropped when there is no connection. */
void ps_task_progress(struct ps_task *ps_task, const struct progress *progress);

/* Of a server: whose copy of its variables it counts on; dropped when there is no connection. */
void ps_task_backed(struct ps_task *ps_task, const struct task_backed *backed);

/* Ends the session; NULL is allowed. */
void ps_task_close(struct ps_task *ps_task);

#endif
