/* SPDX-License-Identifier: Apache-2.0
 * Deadlines that are over, in the order in which they were due. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_TIMERS_H
#define CADRE_COORDINATOR_CORE_EVENTS_TIMERS_H

#include "coordinator/core/state/state.h"

/* Handles all that are over now, as far as the action list has room. */
void deadlines_run(struct core *core);

#endif
