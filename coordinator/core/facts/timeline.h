/* SPDX-License-Identifier: Apache-2.0
 * The timeline of a generation: which positions belong to which epoch. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_TIMELINE_H
#define CADRE_COORDINATOR_CORE_FACTS_TIMELINE_H

#include "coordinator/core/state/state.h"

/* Keeps the claim of an arrival; false: it contradicts an older one, and the job has failed. */
bool timeline_claim(
    struct core *core, struct job *job, uint32_t task_group, const struct agent_arrived *arrived);
/* The cursor of a position. False and zeroed: no task is known to have begun its range. */
bool timeline_at(const struct job *job, uint64_t position, struct cursor *ret_cursor);
/* Task group `from` has the index `to` from now on; NONE: it was removed. */
void timeline_group_moved(struct job *job, uint32_t from, uint32_t to);

#endif
