/* SPDX-License-Identifier: Apache-2.0
 * Workers that drain. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_DRAIN_H
#define CADRE_COORDINATOR_CORE_FACTS_DRAIN_H

#include "coordinator/core/state/state.h"

/* Notes whether tasks of the job may be on workers that drain. */
void drain_note(struct core *core, struct job *job, bool draining);
/* Whether the chief or a server is on a worker that drains. */
bool ps_job_drains(const struct core *core, const struct job *job);
/* The daemon of this worker drains itself. */
void worker_draining(struct core *core, uint32_t worker);
/* If neither a client nor its daemon drains it any more, it takes tasks again. */
void drain_ends(struct core *core, uint32_t worker);
/* Whether one more drain fits, or this name has one. */
bool drain_has_room(const struct core *core, const char *worker);
/* Begins and records a client's drain; drain_has_room() was true. */
void drain_asked(struct core *core, const struct core_drained *drained);
/* Appends a DRAINED or UNDRAINED record. */
void drain_record(
    struct core *core, const struct core_drained *drained, enum core_record_type type);
/* After a start of the coordinator: a drain of the store. */
void drain_restore(struct core *core, const struct core_drained *drained);
/* After a start of the coordinator: the job may have tasks on draining workers. */
void drain_restored(struct core *core, struct job *job);
/* Whether the members on draining workers can leave now: enough others stay, or slots are free
 * elsewhere and some stay. *ret_stuck: they cannot, so the job is to be preempted. */
bool drain_possible(struct core *core, struct job *job, bool *ret_stuck);
/* DEADLINE_DRAIN: members on draining workers did not reach the halt, and are lost; or those that
 * a halt reset did not exit, and are stopped. */
void drain_timeout(struct core *core, struct job *job);

#endif
