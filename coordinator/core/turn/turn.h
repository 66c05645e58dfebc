/* SPDX-License-Identifier: Apache-2.0
 * What follows from an event, once a step. */
#ifndef CADRE_COORDINATOR_CORE_TURN_H
#define CADRE_COORDINATOR_CORE_TURN_H

#include "coordinator/core/state/state.h"

/* Says what is due, as far as there is room. */
void turn_run(struct core *core);
/* Something waits for room. */
bool turn_waits(const struct core *core);

#endif
