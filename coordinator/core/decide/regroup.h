/* SPDX-License-Identifier: Apache-2.0
 * A generation that cannot go on. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_REGROUP_H
#define CADRE_COORDINATOR_CORE_DECIDE_REGROUP_H

#include "coordinator/core/state/state.h"

/* A generation that ran lacks a member: the rest freeze and report. */
void regroup_break(struct core *core, struct job *job);
/* Nothing of the state is left, or nobody who could stay: all tasks are started again. */
void regroup_restart(struct core *core, struct job *job);
/* What follows from who is there. */
void regroup_decide(struct core *core, struct job *job);

#endif
