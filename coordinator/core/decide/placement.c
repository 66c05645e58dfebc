/* SPDX-License-Identifier: Apache-2.0
 * The queue and gang placement: the fewest tasks of a job are placed or none, and as many more as
 * there are free slots for, in strict order (priority, then first come). The job at the head keeps
 * all behind it waiting, so no job starves. Only a job that asks for more than all slots of the
 * cluster is passed over until enough workers have joined, because the wait for it has no bound.
 * Slots count that have the GPUs which the job asks for; a job that asks for none takes any. */
#include "coordinator/core/decide/placement.h"

#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"

static void placement_start_job(struct core *core, struct job *job)
{
    uint32_t room = offers_free(core, job);
    uint32_t tasks = job->tasks < room ? job->tasks : room;
    CADRE_ASSERT(job->state == JOB_QUEUED);
    CADRE_ASSERT(room >= job->tasks_min);
    placement_spread(core, job, tasks, NULL);
    queue_remove(core, job);
    job->initial = tasks;
    job_move(core, job, JOB_STARTING);
    job_due(core, job, DUE_START);
    if (!deadline_armed(job, DEADLINE_LIMIT)) { /* it was not preempted */
        time_limit_arm(core, job, 0);
    }
    underfilled_note(core, job);
    CADRE_ASSERT(job->alive == job->initial && job->initial >= job->tasks_min);
}

/* Jobs with tasks on draining workers may find free slots now. */
static void ask_draining(struct core *core)
{
    const struct list *drained = &core->drained;
    CADRE_ASSERT(drained->count <= core->jobs_live.count);
    for (uint32_t i = drained->first; i != LIST_NONE; i = drained->nodes[i].next) {
        job_due(core, &core->jobs[i], DUE_CONTROL);
    }
}

void placement_run(struct core *core)
{
    bool ran = core->placement_due;
    uint32_t head = LIST_NONE;
    if (ran) {
        ask_draining(core);
    }
    while (core->placement_due) {
        core->placement_due = false;
        vacancy_run(core, false);
        queue_settle_head(core);
        head = queue_head(core);
        if (core->end_unrecorded > 0) {
            core->placement_due = true; /* slots of running jobs are filled before the queue */
            break;
        }
        if (head != LIST_NONE &&
            core->jobs[head].tasks_min <= offers_free(core, &core->jobs[head])) {
            placement_start_job(core, &core->jobs[head]);
        } else if (head == LIST_NONE) {
            vacancy_run(core, true);
        }
    }
    if (!ran) {
        return;
    }
    if (core->end_unrecorded == 0) {
        vacancy_concentrate(core);
    }
    queue_settle(core);
    if (core->queue.first != LIST_NONE) {
        /* Its text has changed. */
        job_due(core, &core->jobs[head != LIST_NONE ? head : core->queue.first], DUE_CHANGED);
    }
    CADRE_ASSERT(core->queue_numbered && core->queue_head_known);
}
