/* SPDX-License-Identifier: Apache-2.0
 * Jobs, their tasks and task groups, workers and drains: each is found in O(1) but drains. */
#include "coordinator/core/state/find.h"

uint32_t job_index(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job >= core->jobs && job < core->jobs + core->options.limits.jobs_max);
    return (uint32_t)(job - core->jobs);
}

struct job *job_find(const struct core *core, struct job_id id)
{
    uint32_t index = map_get(&core->jobs_by_id, id.n);
    CADRE_ASSERT(id.n == 0 || index == MAP_NONE || core->jobs[index].id.n == id.n);
    return index == MAP_NONE ? NULL : &core->jobs[index];
}

struct task *job_task(const struct core *core, const struct job *job, uint32_t slot)
{
    CADRE_ASSERT(job->first + slot < core->tasks_used);
    CADRE_ASSERT(slot < job->tasks);
    return &core->tasks[job->first + slot];
}

struct task_ref job_task_ref(const struct core *core, const struct job *job, uint32_t slot)
{
    CADRE_ASSERT(job->id.n != 0);
    return (struct task_ref){
        .job = job->id, .slot = slot, .incarnation = job_task(core, job, slot)->incarnation};
}

struct task_group *job_task_group(
    const struct core *core, const struct job *job, uint32_t task_group)
{
    CADRE_ASSERT(job->task_groups <= job->tasks);
    CADRE_ASSERT(task_group < job->task_groups);
    return &core->task_groups[job->first + task_group];
}

uint64_t task_group_key(const struct core *core, const struct job *job, uint32_t worker)
{
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    return (uint64_t)job_index(core, job) << 32 | worker;
}

uint32_t task_group_find(const struct core *core, const struct job *job, uint32_t worker)
{
    uint32_t task_group = map_get(&core->task_groups_by_worker, task_group_key(core, job, worker));
    CADRE_ASSERT(task_group == MAP_NONE || task_group < job->task_groups);
    return task_group;
}

uint64_t worker_key(const char *name)
{
    uint64_t key = 0;
    for (size_t i = 0; name[i] != '\0'; i++) {
        key = prng_mix(key ^ (unsigned char)name[i]);
    }
    return key;
}

uint32_t worker_by_name(const struct core *core, const char *name)
{
    uint64_t key = worker_key(name);
    const struct map *map = &core->workers_by_name;
    for (uint32_t at = map_first(map, key); at != MAP_NONE; at = map_next(map, key, at)) {
        uint32_t worker = map->entries[at].value;
        if (strcmp(core->workers[worker].name, name) == 0) {
            return worker;
        }
    }
    return NONE;
}

uint32_t worker_by_link(const struct core *core, struct link_id link)
{
    uint32_t worker = map_get(&core->workers_by_link, link.n);
    CADRE_ASSERT(worker == MAP_NONE || core->workers[worker].link.n == link.n);
    return worker;
}

struct task *task_find(
    struct core *core, uint32_t worker, struct task_ref ref, struct job **ret_job)
{
    struct job *job = job_find(core, ref.job);
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    if (job == NULL || ref.slot >= job->tasks) {
        return NULL;
    }
    struct task *task = job_task(core, job, ref.slot);
    /* Rules 7 and 12: a message counts only for the incarnation in the slot, from its worker, and
     * not for a lost task. */
    if (task->task_group == NONE || task->incarnation != ref.incarnation ||
        task->state == TASK_LOST || job_task_group(core, job, task->task_group)->worker != worker) {
        return NULL;
    }
    *ret_job = job;
    CADRE_ASSERT(task->state != TASK_WAITING);
    return task;
}

const struct core_drained *drain_of(const struct core *core, const char *worker)
{
    const struct core_drained *found = NULL;
    CADRE_ASSERT(core->drain_count <= core->options.limits.workers_max);
    for (uint32_t i = 0; i < core->drain_count && found == NULL; i++) {
        found = strcmp(core->drains[i].worker, worker) == 0 ? &core->drains[i] : NULL;
    }
    return found;
}
