/* SPDX-License-Identifier: Apache-2.0
 * Which slots a job's tasks get. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_SPREAD_H
#define CADRE_COORDINATOR_CORE_DECIDE_SPREAD_H

#include "coordinator/core/state/state.h"

/* Places so many empty slots, for which slots are free; `placed` may be NULL. */
void placement_spread(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot));
/* Places at most `count` servers on their last workers, if these have a free slot; returns how
 * many. */
uint32_t placement_return_servers(struct core *core, struct job *job, uint32_t count,
    void (*placed)(struct core *core, struct job *job, uint32_t slot));

#endif
