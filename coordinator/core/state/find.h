/* SPDX-License-Identifier: Apache-2.0
 * Jobs, tasks, task groups and workers by their index, name, stream or slot. */
#ifndef CADRE_COORDINATOR_CORE_STATE_FIND_H
#define CADRE_COORDINATOR_CORE_STATE_FIND_H

#include "coordinator/core/state/state.h"

/* The job's index in core.jobs. */
uint32_t job_index(const struct core *core, const struct job *job);
/* NULL: it is not live. */
struct job *job_find(const struct core *core, struct job_id id);
/* The task in a slot of the job. */
struct task *job_task(const struct core *core, const struct job *job, uint32_t slot);
/* What names that task in messages: job, slot, incarnation. */
struct task_ref job_task_ref(const struct core *core, const struct job *job, uint32_t slot);
/* A task group of the job, by its index. */
struct task_group *job_task_group(
    const struct core *core, const struct job *job, uint32_t task_group);
/* Its key in core.task_groups_by_worker. */
uint64_t task_group_key(const struct core *core, const struct job *job, uint32_t worker);
/* The job's task group on the worker, NONE when it has none. */
uint32_t task_group_find(const struct core *core, const struct job *job, uint32_t worker);
/* The key of a name in core.workers_by_name. */
uint64_t worker_key(const char *name);
/* NONE: no worker of this name is known. */
uint32_t worker_by_name(const struct core *core, const char *name);
/* NONE: the link belongs to no worker (any more). */
uint32_t worker_by_link(const struct core *core, struct link_id link);
/* The task that `ref` names on this worker: NULL when there is none, or it is another incarnation,
 * or lost. */
struct task *task_find(
    struct core *core, uint32_t worker, struct task_ref ref, struct job **ret_job);
/* A client's drain of the worker; NULL: there is none. */
const struct core_drained *drain_of(const struct core *core, const char *worker);

#endif
