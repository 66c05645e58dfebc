/* SPDX-License-Identifier: Apache-2.0
 * Turns what jobs have to say into actions, in a fixed order, as far as the step's list has room.
 */
#ifndef CADRE_COORDINATOR_CORE_EMIT_EMIT_H
#define CADRE_COORDINATOR_CORE_EMIT_EMIT_H

#include "coordinator/core/state/state.h"

/* What is due of the job, in a fixed order; there is room for all of it. */
void emit_due(struct core *core, struct job *job);
/* What is said behind all that its tasks are told. */
void emit_last(struct core *core, struct job *job);

#endif
