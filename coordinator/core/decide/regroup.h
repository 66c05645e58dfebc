/* SPDX-License-Identifier: Apache-2.0
 * A generation that cannot go on. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_REGROUP_H
#define CADRE_COORDINATOR_CORE_DECIDE_REGROUP_H

#include "coordinator/core/state/state.h"

/* A running generation lacks a member: the others freeze and report. */
void regroup_break(struct core *core, struct job *job);
/* No state is left: dismisses all tasks, which are started again (protocol, rules 9 and 29). */
void regroup_restart(struct core *core, struct job *job);
/* Forms the next generation, or waits, depending on the tasks that are there. */
void regroup_decide(struct core *core, struct job *job);

#endif
