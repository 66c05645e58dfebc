/* SPDX-License-Identifier: Apache-2.0
 * Arrivals. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_ARRIVALS_H
#define CADRE_COORDINATOR_CORE_EVENTS_ARRIVALS_H

#include "coordinator/core/state/state.h"

/* An arrival of a job's tasks on the worker (protocol, rule 2). */
void arrival_handle(struct core *core, uint32_t worker, const struct agent_arrived *arrived);

#endif
