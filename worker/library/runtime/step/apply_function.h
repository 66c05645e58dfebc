/* SPDX-License-Identifier: Apache-2.0
 * The last part of a step, which cannot be undone:
 *
 *   replica function ── OK on all local replicas ── task_apply ──▶ apply functions ──▶ task_applied
 *     may fail; what it writes is kept twice                        cannot fail; write in place */
#ifndef CADRE_RUNTIME_APPLY_FUNCTION_H
#define CADRE_RUNTIME_APPLY_FUNCTION_H

#include "worker/library/runtime/replica/step_admission.h"

/* In the replica's thread, while its function runs: `call` is made when the step counts, after
 * those that were added before. */
void apply_add(cadre_replica *replica, struct apply_call *call);

/* The step has been applied here: makes the calls of the local replicas, each in its thread. */
void apply_run(cadre_strategy *strategy);

#endif
