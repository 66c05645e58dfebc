/* SPDX-License-Identifier: Apache-2.0
 * The step barrier. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_BARRIER_H
#define CADRE_COORDINATOR_CORE_FACTS_BARRIER_H

#include "coordinator/core/state/state.h"

/* A party went up from `old`: when it was the last that stood at the least, the least rises. */
void barrier_mark_raise(const struct core *core, const struct job *job, struct low_mark *mark,
    bool applied, uint64_t old);
/* Everybody stands at `resume`. */
void barrier_open(struct core *core, struct job *job);
/* Whether so much can have been released, as a task or a daemon says. */
bool barrier_may_rise(const struct job *job, uint64_t released);
/* After a start of the coordinator: more was released than is recorded. Says it to all again. */
void barrier_raise(struct core *core, struct job *job, uint64_t released);
/* Whether a member wants a step that another has finished without: then the job fails. */
bool barrier_check_finished(struct core *core, struct job *job);
/* A member's program takes at least so many steps. */
void barrier_wants(struct core *core, struct job *job, uint32_t slot, uint64_t wanted);

#endif
