/* SPDX-License-Identifier: Apache-2.0
 * Workers that are silent for a lease. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_SILENCE_H
#define CADRE_COORDINATOR_CORE_EVENTS_SILENCE_H

#include "coordinator/core/state/state.h"

/* That deadline, which was due then: what follows from its silence, if it still is silent. */
void lease_expired(struct core *core, uint32_t worker, uint64_t due_us);

#endif
