/* SPDX-License-Identifier: Apache-2.0
 * Where things are. */
#ifndef CADRE_COORDINATOR_CORE_STATE_FIND_H
#define CADRE_COORDINATOR_CORE_STATE_FIND_H

#include "coordinator/core/state/state.h"

/* By its place in memory. */
uint32_t job_index(const struct core *core, const struct job *job);
/* NULL: it is not live. */
struct job *job_find(const struct core *core, struct job_id id);
/* Of a slot, of a number of its parties. */
struct task *job_task(const struct core *core, const struct job *job, uint32_t slot);
struct task_ref job_task_ref(const struct core *core, const struct job *job, uint32_t slot);
struct task_group *job_task_group(
    const struct core *core, const struct job *job, uint32_t task_group);
/* For the map of parties. */
uint64_t task_group_key(const struct core *core, const struct job *job, uint32_t worker);
/* The job's party on the worker, NONE when it has none. */
uint32_t task_group_find(const struct core *core, const struct job *job, uint32_t worker);
/* For the map of names. */
uint64_t worker_key(const char *name);
/* NONE: it is not known. */
uint32_t worker_by_name(const struct core *core, const char *name);
uint32_t worker_by_link(const struct core *core, struct link_id link);
/* The task that `ref` names on this worker: NULL when there is none, or it is another incarnation,
 * or lost. */
struct task *task_find(
    struct core *core, uint32_t worker, struct task_ref ref, struct job **ret_job);
/* That a client asked for; NULL: none did. */
const struct core_drained *drain_of(const struct core *core, const char *worker);

#endif
