/* SPDX-License-Identifier: Apache-2.0
 * All deadlines in one heap. */
#ifndef CADRE_COORDINATOR_CORE_STATE_DEADLINES_H
#define CADRE_COORDINATOR_CORE_STATE_DEADLINES_H

#include "coordinator/core/state/state.h"

/* One of a job's. */
bool deadline_armed(const struct job *job, enum deadline deadline);
void deadline_set(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us);
void deadline_clear(struct core *core, struct job *job, enum deadline deadline);
/* All that are void when a generation ends, or the job does. */
void deadlines_clear(struct core *core, struct job *job);

#endif
