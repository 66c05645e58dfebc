/* SPDX-License-Identifier: Apache-2.0
 * The line of a generation. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TIMELINE_H
#define CADRE_COORDINATOR_CORE_FACTS_TIMELINE_H

#include "coordinator/core/state/state.h"

/* Whether a party's claim agrees with what others said; if so it is kept. Else the job fails. */
bool timeline_claim(
    struct core *core, struct job *job, uint32_t task_group, const struct agent_arrived *arrived);
/* The cursor of a position. False and zeroed: nobody is known to have begun its run. */
bool timeline_at(const struct job *job, uint64_t position, struct cursor *ret_cursor);
/* Party `from` is called `to` from now on; NONE: it is gone. */
void timeline_group_moved(struct job *job, uint32_t from, uint32_t to);

#endif
