/* SPDX-License-Identifier: Apache-2.0
 * A task of a ps job that has no rank: a worker, a ps, the evaluator. It sends hello, receives the
 * list of tasks and the end of the job, and reports why it failed. (A chief is a task.h.)
 *
 *     session ── members ──▶ directory_update
 *             ── bye ──────▶ directory_end: CANCELLED, in order
 *             ── reset, superseded, refused, lost ──▶ directory_end, with that error
 *             ── values kept ──▶ the evaluator's values: sent until they are stored */
#ifndef CADRE_RUNTIME_PS_JOB_PS_TASK_H
#define CADRE_RUNTIME_PS_JOB_PS_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/ps/directory.h"
#include "worker/library/runtime/task/session.h"

struct ps_task;

struct ps_task_options {
    struct session *session;     /* owned, also on error */
    struct directory *directory; /* borrowed until ps_task_close */
    const char *address;         /* where it listens; "": nowhere; copied */
};

/* Sends hello, now and on each new connection. */
cadre_status ps_task_open(
    const struct ps_task_options *options, struct ps_task **ret_ps_task, struct cadre_error *error);

/* Reports that its own program failed: the job ends with it. */
void ps_task_failed(struct ps_task *ps_task, const struct cadre_error *error);

/* Sends progress, for display; dropped when there is no connection. */
void ps_task_progress(struct ps_task *ps_task, const struct progress *progress);

/* Of the evaluator: a value of its curve `name`, at most LIMIT_NAME_BYTES - 1 characters, of the
 * state after `step` steps. It is sent at once, or with those that wait for the coordinator's
 * answer to the ones before, and again until it is stored. False: no memory, or a name beyond
 * LIMIT_METRICS. */
bool ps_task_value(struct ps_task *ps_task, const char *name, uint64_t step, double value);

/* Waits until all values are stored, at most `timeout_us`, while there is a connection and the task
 * is not dismissed. */
void ps_task_flush_values(struct ps_task *ps_task, uint64_t timeout_us);

/* The number of the job's generation; 0: no list of members came. */
uint64_t ps_task_generation(struct ps_task *ps_task);

/* Of a server: reports whose copy of its variables may be taken; dropped when there is no
 * connection. */
void ps_task_backed(struct ps_task *ps_task, const struct task_backed *backed);

/* Of a worker: it runs closures of that step of the ledger from now on. For traces. NULL is
 * allowed. */
void ps_task_step(struct ps_task *ps_task, uint64_t step);

/* Ends the session. NULL is allowed. */
void ps_task_close(struct ps_task *ps_task);

#endif
