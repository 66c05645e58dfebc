/* SPDX-License-Identifier: Apache-2.0
 * The end of a step: what is decided and appended. */
#ifndef CADRE_COORDINATOR_CORE_TURN_H
#define CADRE_COORDINATOR_CORE_TURN_H

#include "coordinator/core/state/state.h"

/* Decides and appends what is due, as far as the list has room. */
void turn_run(struct core *core);
/* Whether something is left for the next step. */
bool turn_waits(const struct core *core);

#endif
