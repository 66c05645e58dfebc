/* SPDX-License-Identifier: Apache-2.0
 * A published checkpoint was found damaged. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_FALLBACK_H
#define CADRE_COORDINATOR_CORE_EVENTS_FALLBACK_H

#include "coordinator/core/state/state.h"

/* A published checkpoint cannot be read any more: the previous one counts. */
void checkpoint_damaged(struct core *core, const struct core_checkpoint_damaged *damaged);
/* After a start of the coordinator it is not known from which checkpoint of another job the tasks
 * of a job without a generation were started: dismisses them, so that they are started again. */
void fallback_restored(struct core *core, struct job *job);

#endif
