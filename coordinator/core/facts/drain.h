/* SPDX-License-Identifier: Apache-2.0
 * Workers that drain. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_DRAIN_H
#define CADRE_COORDINATOR_CORE_FACTS_DRAIN_H

#include "coordinator/core/state/state.h"

/* Whether some of its tasks may be on workers that drain. */
void drain_note(struct core *core, struct job *job, bool draining);
/* Whether the chief or a server is on a worker that drains. */
bool ps_job_drains(const struct core *core, const struct job *job);
/* Its daemon says that it is about to end. */
void worker_draining(struct core *core, uint32_t worker);
/* Nobody says any more that it is to be empty: it takes tasks again. */
void drain_ends(struct core *core, uint32_t worker);
/* Whether one more can be kept, or this name's is. */
bool drain_has_room(const struct core *core, const char *worker);
/* It is kept and recorded, and begins if the worker is known; there is room. */
void drain_asked(struct core *core, const struct core_drained *drained);
void drain_record(
    struct core *core, const struct core_drained *drained, enum core_record_type type);
/* After a start of the coordinator: a drain; and a job, which may have tasks on such workers. */
void drain_restore(struct core *core, const struct core_drained *drained);
void drain_restored(struct core *core, struct job *job);
/* Whether the members on draining workers can go now: enough others are left, or there is room for
 * them elsewhere while some stay. *ret_stuck: they cannot, and the job has to leave with them. */
bool drain_possible(struct core *core, struct job *job, bool *ret_stuck);
/* Members did not come to the edge of a step in time: those that drain are lost. */
void drain_timeout(struct core *core, struct job *job);

#endif
