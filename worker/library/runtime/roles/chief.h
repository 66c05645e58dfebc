/* SPDX-License-Identifier: Apache-2.0
 * What a chief's strategy owns: its variables on servers, the scheduler of its closures, and by
 * hand the threads that are the other tasks. */
#ifndef CADRE_RUNTIME_ROLES_CHIEF_H
#define CADRE_RUNTIME_ROLES_CHIEF_H

#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

/* The process is this chief from now on; waits until the servers are connected. Ended by chief_end,
 * also after an error. */
cadre_status chief_begin(
    struct ps_job_state *ps_job, cadre_strategy *strategy, bool by_hand, struct cadre_error *error);

/* The ps job as a part of the chief's strategy. */
extern const struct strategy_hooks ps_job_hooks;

#endif
