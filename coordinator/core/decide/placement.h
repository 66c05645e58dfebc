/* SPDX-License-Identifier: Apache-2.0
 * The queue and gang placement. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PLACEMENT_H
#define CADRE_COORDINATOR_CORE_DECIDE_PLACEMENT_H

#include "coordinator/core/state/state.h"

/* Places empty slots and the queue's head as long as there is room to say so. */
void placement_run(struct core *core);

#endif
