/* SPDX-License-Identifier: Apache-2.0
 * The next generation. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PLAN_H
#define CADRE_COORDINATOR_CORE_DECIDE_PLAN_H

#include "coordinator/core/state/state.h"
/* The next generation: all members that are left but those that drain when `drains`, and the
 * joiners of the stream when `joins`. `source` is a slot or NONE. */
struct plan_choice {
    uint64_t resume;
    uint32_t source; /* slot, or NONE: no task has the state */
    bool joins;
    uint32_t stream;
    bool drains;
    bool first; /* of tasks that said hello and were in no generation yet */
};

/* Forms the next generation from the members and joiners of the choice. */
void plan_make(struct core *core, struct job *job, const struct plan_choice *choice);

#endif
