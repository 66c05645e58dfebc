/* SPDX-License-Identifier: Apache-2.0
 * Turns what is due of jobs into actions, as far as the step's list has room. */
#ifndef CADRE_COORDINATOR_CORE_EMIT_EMIT_H
#define CADRE_COORDINATOR_CORE_EMIT_EMIT_H

#include "coordinator/core/state/state.h"

/* ---- emit.c ---- */

/* Appends what is due of the job, in a fixed order; there is room for all of it. */
void emit_due(struct core *core, struct job *job);
/* Appends what follows the messages to its tasks: stop, and that the job changed. */
void emit_last(struct core *core, struct job *job);

/* ---- emit_tasks.c ---- */

/* Appends them; false: the list is full, and some are left. */
bool emit_tasks(struct core *core, struct job *job);
/* The same of a job that waits for a newer ledger: only how its tasks ended, and that it changed.
 */
bool emit_behind(struct core *core, struct job *job);

#endif
