/* SPDX-License-Identifier: Apache-2.0
 * A published checkpoint turns out to be damaged. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_FALLBACK_H
#define CADRE_COORDINATOR_CORE_EVENTS_FALLBACK_H

#include "coordinator/core/state/state.h"

/* A published checkpoint cannot be read any more. */
void checkpoint_damaged(struct core *core, const struct core_checkpoint_damaged *damaged);
/* After a start of the coordinator nobody knows with which checkpoint of another job the tasks were
 * started that have not formed a generation yet: they are started again. */
void fallback_restored(struct core *core, struct job *job);

#endif
