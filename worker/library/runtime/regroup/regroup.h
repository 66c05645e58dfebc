/* SPDX-License-Identifier: Apache-2.0
 * What follows when a collective, a wait or a step has failed: with others, the next generation;
 * for the program's own failure, the end. */
#ifndef CADRE_RUNTIME_REGROUP_H
#define CADRE_RUNTIME_REGROUP_H

#include "worker/library/runtime/strategy/strategy.h"

/* What a strategy keeps for its generations. Closed when its mesh is; also one not opened. */
cadre_status regroup_open(cadre_strategy *strategy, struct cadre_error *error);
void regroup_close(cadre_strategy *strategy);

/* Makes the program's own failure final and tells the coordinator, which ends the job with it; by
 * hand it is repaired instead: the mesh is formed anew. Returns the code. */
cadre_status strategy_fail(cadre_strategy *strategy, struct cadre_error *error);

/* A collective or a wait failed for `cause`: writes of the step at hand are undone already. Waits
 * for the next generation and comes into it with the state at its first position, roster, mesh,
 * replica ids and inputs of the new layout. The position is one higher afterwards when the step at
 * hand was taken over from a task that had applied it. An error is final. In the program's thread,
 * with no replica running. */
cadre_status strategy_regroup(
    cadre_strategy *strategy, const struct cadre_error *cause, struct cadre_error *error);

#endif
