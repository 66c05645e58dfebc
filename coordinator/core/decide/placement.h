/* SPDX-License-Identifier: Apache-2.0
 * The queue and gang placement. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PLACEMENT_H
#define CADRE_COORDINATOR_CORE_DECIDE_PLACEMENT_H

#include "coordinator/core/state/state.h"

/* Fills empty slots, then places jobs from the queue, while both are possible. */
void placement_run(struct core *core);

#endif
