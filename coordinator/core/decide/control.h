/* SPDX-License-Identifier: Apache-2.0
 * Halts before a step. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_CONTROL_H
#define CADRE_COORDINATOR_CORE_DECIDE_CONTROL_H

#include "coordinator/core/state/state.h"

/* Whether a halt is to be set or lifted. */
void control_decide(struct core *core, struct job *job);

#endif
