/* SPDX-License-Identifier: Apache-2.0
 * What follows when a collective, a wait or a step has failed: with others, the next generation;
 * for the program's own failure, the end. */
#ifndef CADRE_RUNTIME_REGROUP_H
#define CADRE_RUNTIME_REGROUP_H

#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/strategy/strategy.h"

struct between_steps_log;

/* What a strategy keeps from one generation to the next, and of the one that it is in. */
struct regroup_part {
    struct between_steps_log *between_steps;
    uint64_t between_steps_count;         /* outside collectives since the last step */
    struct device_summary device_summary; /* of all tasks of the generation */
    uint64_t warned_devices;              /* 1 + the generation of the last warning of them */
};

/* Makes what a strategy keeps for its generations. */
cadre_status regroup_open(cadre_strategy *strategy, struct cadre_error *error);
/* Frees it, when the mesh is closed; also one that was not opened. */
void regroup_close(cadre_strategy *strategy);

/* Makes the program's own failure final and reports it to the coordinator, which ends the job with
 * it; by hand it is repaired instead: the mesh is formed again. Returns the code. */
cadre_status strategy_fail(cadre_strategy *strategy, struct cadre_error *error);

/* A collective or a wait failed for `cause`: writes of the current step are undone already. Waits
 * for the next generation and enters it with the state at its first position, roster, mesh, replica
 * ids and inputs of the new layout. The position is one higher afterwards when the current step was
 * taken over from a task that had applied it. An error is final. In the program's thread, with no
 * replica running. */
cadre_status strategy_regroup(
    cadre_strategy *strategy, const struct cadre_error *cause, struct cadre_error *error);

#endif
