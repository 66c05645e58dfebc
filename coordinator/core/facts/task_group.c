/* SPDX-License-Identifier: Apache-2.0
 * Task groups: the tasks of one job on one worker, which arrive as one. They fill the start of the
 * job's array; when one is removed the last takes its index. tasks.c calls this for each placement,
 * membership.c and silence.c walk a worker's tasks with it. */
#include "coordinator/core/facts/tasks.h"

#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"

static uint32_t task_group_open(struct core *core, struct job *job, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    struct task_group_ref ref = {.job = job_index(core, job), .task_group = job->task_groups++};
    struct task_group *task_group = job_task_group(core, job, ref.task_group);
    CADRE_ASSERT(w->state != WORKER_FREE);
    CADRE_ASSERT(job->task_groups <= job->tasks);
    CADRE_ASSERT(task_group_find(core, job, worker) == NONE);
    *task_group = (struct task_group){.worker = worker,
        .worker_id = w->id,
        .first = NONE,
        .last = NONE,
        .prev = {.job = NONE, .task_group = NONE},
        .next = w->task_groups};
    if (w->task_groups.job != NONE) {
        job_task_group(core, &core->jobs[w->task_groups.job], w->task_groups.task_group)->prev =
            ref;
    }
    w->task_groups = ref;
    map_add(&core->task_groups_by_worker, task_group_key(core, job, worker), ref.task_group);
    CADRE_ASSERT(task_group_find(core, job, worker) == ref.task_group);
    return ref.task_group;
}

/* Removes it from its worker's list. */
static void task_group_unlink(struct core *core, struct job *job, uint32_t number)
{
    struct task_group *task_group = job_task_group(core, job, number);
    CADRE_ASSERT(
        task_group->worker == NONE || task_group_find(core, job, task_group->worker) == number);
    if (task_group->worker == NONE) {
        return;
    }
    if (task_group->prev.job == NONE) {
        core->workers[task_group->worker].task_groups = task_group->next;
    } else {
        job_task_group(core, &core->jobs[task_group->prev.job], task_group->prev.task_group)->next =
            task_group->next;
    }
    if (task_group->next.job != NONE) {
        job_task_group(core, &core->jobs[task_group->next.job], task_group->next.task_group)->prev =
            task_group->prev;
    }
    map_remove(&core->task_groups_by_worker, task_group_key(core, job, task_group->worker), number);
}

/* Moves the job's last task group to `number`. */
static void task_group_move(struct core *core, struct job *job, uint32_t from, uint32_t number)
{
    struct task_group *task_group = &core->task_groups[job->first + number];
    struct task_group_ref ref = {.job = job_index(core, job), .task_group = number};
    CADRE_ASSERT(number < from);
    CADRE_ASSERT(from == job->task_groups);
    *task_group = core->task_groups[job->first + from];
    for (uint32_t slot = task_group->first; slot != NONE; slot = job_task(core, job, slot)->next) {
        job_task(core, job, slot)->task_group = number;
    }
    timeline_group_moved(job, from, number);
    if (task_group->worker == NONE) {
        return;
    }
    if (task_group->prev.job == NONE) {
        core->workers[task_group->worker].task_groups = ref;
    } else {
        core->task_groups[core->jobs[task_group->prev.job].first + task_group->prev.task_group]
            .next = ref;
    }
    if (task_group->next.job != NONE) {
        core->task_groups[core->jobs[task_group->next.job].first + task_group->next.task_group]
            .prev = ref;
    }
    map_remove(&core->task_groups_by_worker, task_group_key(core, job, task_group->worker), from);
    map_add(&core->task_groups_by_worker, task_group_key(core, job, task_group->worker), number);
    CADRE_ASSERT(job_task_group(core, job, number)->tasks > 0);
}

static void task_group_close(struct core *core, struct job *job, uint32_t number)
{
    struct task_group *task_group = job_task_group(core, job, number);
    uint32_t worker = task_group->worker;
    CADRE_ASSERT(task_group->first == NONE && task_group->last == NONE);
    CADRE_ASSERT(!task_group->again || job->agains > 0);
    CADRE_ASSERT(task_group->tasks == 0);
    if (task_group->again) {
        job->agains--;
    }
    task_group_unlink(core, job, number);
    timeline_group_moved(job, number, NONE);
    uint32_t last = --job->task_groups;
    if (number != last) {
        task_group_move(core, job, last, number);
    }
    if (worker != NONE) {
        const struct worker *w = &core->workers[worker];
        if (w->leaves && w->state == WORKER_AWAY && w->task_groups.job == NONE) {
            worker_forget(core, worker); /* it was drained */
        }
    }
}

void task_group_add(struct core *core, struct job *job, uint32_t slot, uint32_t worker)
{
    struct task *task = job_task(core, job, slot);
    uint32_t number = task_group_find(core, job, worker);
    CADRE_ASSERT(core->workers[worker].state != WORKER_FREE);
    CADRE_ASSERT(task->task_group == NONE);
    if (number == NONE) {
        number = task_group_open(core, job, worker);
    }
    struct task_group *task_group = job_task_group(core, job, number);
    task->task_group = number;
    task->prev = task_group->last;
    task->next = NONE;
    if (task_group->last == NONE) {
        task_group->first = slot;
    } else {
        job_task(core, job, task_group->last)->next = slot;
    }
    task_group->last = slot;
    task_group->tasks++;
    CADRE_ASSERT(task_group->tasks <= job->tasks);
}

void task_group_remove(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    uint32_t number = task->task_group;
    struct task_group *task_group = job_task_group(core, job, number);
    CADRE_ASSERT(task->task_group != NONE);
    CADRE_ASSERT(task_group->tasks > 0);
    if (task->prev == NONE) {
        task_group->first = task->next;
    } else {
        job_task(core, job, task->prev)->next = task->next;
    }
    if (task->next == NONE) {
        task_group->last = task->prev;
    } else {
        job_task(core, job, task->next)->prev = task->prev;
    }
    task->task_group = NONE;
    if (--task_group->tasks == 0) {
        task_group_close(core, job, number);
    }
}

uint32_t task_group_first(const struct core *core, const struct job *job, uint32_t worker)
{
    uint32_t number = task_group_find(core, job, worker);
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    return number == NONE ? NONE : job_task_group(core, job, number)->first;
}

uint32_t task_group_next(
    const struct core *core, const struct job *job, uint32_t worker, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    if (task->task_group != NONE && task->task_group == task_group_find(core, job, worker)) {
        return task->next;
    }
    return task_group_first(core, job, worker);
}

void task_group_orphan(struct core *core, struct job *job, uint32_t number)
{
    struct task_group *task_group = job_task_group(core, job, number);
    CADRE_ASSERT(task_group->worker != NONE);
    task_group_unlink(core, job, number);
    if (task_group->again) {
        task_group->again = false;
        job->agains--;
    }
    task_group->worker = NONE;
}

void task_group_restart(struct core *core, struct job *job, uint32_t number)
{
    struct task_group *task_group = job_task_group(core, job, number);
    CADRE_ASSERT(task_group->worker != NONE);
    if (!task_group->again) {
        task_group->again = true;
        job->agains++;
        job_due(core, job, 0);
    }
    CADRE_ASSERT(job->agains <= job->task_groups);
}
