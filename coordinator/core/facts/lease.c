/* SPDX-License-Identifier: Apache-2.0
 * Which workers are alive, and which jobs no live worker can continue. */
#include "coordinator/core/facts/workers.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

#define ALIVE_LEASE_PART  2 /* of a lease: a worker that is silent for so long may be cut off */
#define UNREAD_LEASE_PART 4 /* of a lease: to read what came while this process was suspended */

/* If no event came for so long although a deadline was due, this process was suspended. A late
 * deadline alone does not show it: it may be handled right after the pause. */
void lease_clock(struct core *core, uint64_t now_us)
{
    struct heap_entry next;
    CADRE_ASSERT(now_us >= core->now_us);
    if (now_us - core->now_us > core->options.lease_us / ALIVE_LEASE_PART &&
        heap_top(&core->deadlines, &next) && next.due_us < now_us) {
        core->paused_us = now_us;
    }
    core->now_us = now_us;
}

uint64_t lease_unread_us(const struct core *core)
{
    uint64_t until_us = core->paused_us + core->options.lease_us / UNREAD_LEASE_PART;
    CADRE_ASSERT(core->paused_us <= core->now_us);
    return core->paused_us > 0 && until_us > core->now_us ? until_us : 0;
}

bool lease_is_alive(const struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    CADRE_ASSERT(w->last_seen_us <= core->now_us);
    return w->state == WORKER_CONNECTED &&
           core->now_us - w->last_seen_us <= core->options.lease_us / ALIVE_LEASE_PART;
}

/* Whether one of these tasks has the state of the whole job. Before a plan no task has a state of
 * its own; nor if all began from the same state and no step was released. */
static bool task_group_can_continue(
    const struct core *core, const struct job *job, const struct task_group *task_group)
{
    bool equal =
        job->phase == PHASE_JOIN || (job->source == SOURCE_NONE && job->released == job->resume);
    bool carries = false;
    CADRE_ASSERT(task_group->tasks > 0);
    CADRE_ASSERT(task_group->worker != NONE);
    for (uint32_t slot = task_group->first; slot != NONE && !carries;) {
        const struct task *task = job_task(core, job, slot);
        bool counts = task_is_usable(task) && !task_is_ps_task(task) &&
                      (job->phase == PHASE_JOIN || task->rank != NONE);
        bool holds = task->reported ? task_holds_state(job, task) : equal || task_group->arrived;
        carries = counts && holds;
        slot = task->next;
    }
    return carries;
}

static bool job_is_alive(const struct core *core, const struct job *job)
{
    bool alive = false;
    CADRE_ASSERT(job->task_groups <= job->tasks);
    bool wanted = !generation_is_void(job); /* else its tasks are about to be dismissed */
    for (uint32_t i = 0; i < job->task_groups && wanted && !alive; i++) {
        const struct task_group *task_group = job_task_group(core, job, i);
        alive = task_group->worker != NONE && lease_is_alive(core, task_group->worker) &&
                task_group_can_continue(core, job, task_group);
    }
    return alive;
}

/* Reads all workers of a cut-off job, so the result is kept for a part of the lease. */
static bool cut_off_lately(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->cut_us <= core->now_us);
    return job->cut_us > 0 && core->now_us - job->cut_us <= core->options.lease_us / 16;
}

/* Whether a live worker can continue the job, and the others had a lease to come back since none
 * could. */
bool job_can_continue(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->task_groups > 0);
    if (cut_off_lately(core, job) || !job_is_alive(core, job)) {
        job->cut_us = cut_off_lately(core, job) ? job->cut_us : core->now_us;
        return false;
    }
    return job->cut_us == 0 || core->now_us - job->cut_us >= core->options.lease_us;
}

bool lease_cut_off(const struct core *core, const struct job *job)
{
    bool silent = false;
    CADRE_ASSERT(job->id.n != 0);
    if (job->outcome != 0 || job->alive == 0) {
        return false;
    }
    for (uint32_t i = 0; i < job->task_groups && !silent; i++) {
        const struct task_group *task_group = job_task_group(core, job, i);
        silent = task_group->worker != NONE && !lease_is_alive(core, task_group->worker);
    }
    return silent && !job_is_alive(core, job);
}

void lease_returns(struct core *core, uint32_t worker)
{
    struct task_group_ref at = core->workers[worker].task_groups;
    CADRE_ASSERT(core->workers[worker].state != WORKER_FREE);
    while (at.job != NONE) {
        struct job *job = &core->jobs[at.job];
        if (!cut_off_lately(core, job) && !job_is_alive(core, job)) {
            job->cut_us = core->now_us;
        }
        at = job_task_group(core, job, at.task_group)->next;
    }
}
