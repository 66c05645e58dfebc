/* SPDX-License-Identifier: Apache-2.0
 * A worker: dials the chief, makes what it is told to make, runs closures one at a time.
 *
 *     receiver thread ── messages, in order ──▶ the calling thread: things, closures ── results ──▶
 *            └── CANCEL, BYE: at once
 *
 * A connection that breaks is dialled again; the chief takes that for a worker that was lost and
 * came back: what it had of the chief is made anew. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_WORKER_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_WORKER_H

#include "worker/library/runtime/ps_job/ps_job.h"

/* In the calling thread, until the directory has ended: CADRE_OK when that was in order. Several
 * in one process are of several crew_states. */
cadre_status closure_worker_run(struct ps_job_state *ps_job, struct cadre_error *error);

#endif
