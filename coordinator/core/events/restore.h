/* SPDX-License-Identifier: Apache-2.0
 * After a start of the coordinator. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_RESTORE_H
#define CADRE_COORDINATOR_CORE_EVENTS_RESTORE_H

#include "coordinator/core/state/state.h"

/* A live job of the store; and there are no more. */
void restore_job(struct core *core, const struct core_restore_job *restore);
void restore_done(struct core *core, const struct core_restore_done *done);

#endif
