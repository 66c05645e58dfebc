/* SPDX-License-Identifier: Apache-2.0
 * Workers that send nothing for a lease. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_SILENCE_H
#define CADRE_COORDINATOR_CORE_EVENTS_SILENCE_H

#include "coordinator/core/state/state.h"

/* The worker's deadline, which was due at `due_us`: loses it or its tasks if it is still silent. */
void lease_expired(struct core *core, uint32_t worker, uint64_t due_us);

#endif
