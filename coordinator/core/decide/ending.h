/* SPDX-License-Identifier: Apache-2.0
 * How jobs end. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_ENDING_H
#define CADRE_COORDINATOR_CORE_DECIDE_ENDING_H

#include "coordinator/core/state/state.h"

/* It has an outcome: its tasks are told to end, whatever they do. */
void ending_stop(struct core *core, struct job *job);
/* All have called cadre_finish at one position: bye. Who is no member leaves too. */
void ending_finish(struct core *core, struct job *job);
/* If all is over: it ends as it may. */
void ending_decide(struct core *core, struct job *job);
/* Nothing is left of it, or of its logs and outputs, that is waited for. */
bool ending_complete(const struct job *job);
/* Its last records; then it is forgotten. */
void ending_settle(struct core *core, struct job *job);
/* Its time is over while it waits to go on. */
void ending_time_limit(struct core *core, struct job *job);

#endif
