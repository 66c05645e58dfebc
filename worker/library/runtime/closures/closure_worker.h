/* SPDX-License-Identifier: Apache-2.0
 * A worker: connects to the chief, makes datasets and resources, runs closures one at a time.
 *
 *     receiver thread ── messages, in order ──▶ the calling thread: objects, closures ── results
 * ──▶ └── CANCEL, GOODBYE: at once
 *
 * When a connection breaks the worker connects again; the chief treats it as a worker that was lost
 * and came back: it makes all datasets and resources again. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_WORKER_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_WORKER_H

#include "worker/library/runtime/ps_job/ps_job.h"

/* Runs in the calling thread until the directory has ended: CADRE_OK when that was in order.
 * Several in one process need a ps_job_state each. */
cadre_status closure_worker_run(struct ps_job_state *ps_job, struct cadre_error *error);

#endif
