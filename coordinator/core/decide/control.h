/* SPDX-License-Identifier: Apache-2.0
 * Halts before a step. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_CONTROL_H
#define CADRE_COORDINATOR_CORE_DECIDE_CONTROL_H

#include "coordinator/core/state/state.h"

/* Sets or lifts a halt, as the facts require. */
void control_decide(struct core *core, struct job *job);

#endif
