/* SPDX-License-Identifier: Apache-2.0
 * A start of the coordinator: jobs of the store. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_RESTORE_H
#define CADRE_COORDINATOR_CORE_EVENTS_RESTORE_H

#include "coordinator/core/state/state.h"

/* A live job of the store. */
void restore_job(struct core *core, const struct core_restore_job *restore);
/* There are no more. */
void restore_done(struct core *core, const struct core_restore_done *done);

#endif
