/* SPDX-License-Identifier: Apache-2.0
 * A task of a crew that has no part in the ledger: a worker, a ps, the evaluator. It says hello,
 * hears who the others are and when it is over, and tells why it failed. (A chief is a task.h.)
 *
 *     session ── members ──▶ directory_update
 *             ── bye ──────▶ directory_end: CANCELLED, in order
 *             ── reset, superseded, refused, lost ──▶ directory_end, with that error */
#ifndef CADRE_RUNTIME_ATTENDANT_H
#define CADRE_RUNTIME_ATTENDANT_H

#include "common/base/error.h"
#include "worker/library/ps/directory.h"
#include "worker/library/runtime/task/session.h"

struct attendant;

struct attendant_options {
    struct session *session;     /* taken over, also on error */
    struct directory *directory; /* borrowed until the attendant is closed */
    const char *address;         /* where it listens; "": nowhere; copied */
};

/* Says hello, now and on each new connection. */
cadre_status attendant_open(const struct attendant_options *options,
    struct attendant **ret_attendant, struct cadre_error *error);

/* Its own program failed, for good: the job ends with it. */
void attendant_failed(struct attendant *attendant, const struct cadre_error *error);

/* Shown to people; dropped when there is no connection. */
void attendant_progress(struct attendant *attendant, const struct progress *progress);

/* Of a server: whose copy of its variables it counts on; dropped when there is no connection. */
void attendant_backed(struct attendant *attendant, const struct task_backed *backed);

/* Ends the session; NULL is allowed. */
void attendant_close(struct attendant *attendant);

#endif
