/* SPDX-License-Identifier: Apache-2.0
 * Placed jobs with slots to fill: slots of lost tasks, and those for which no slot was free at
 * first. They are in a list, in the order of the queue. */
#include "coordinator/core/facts/jobs.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"

/* Before the first plan only lost tasks are placed again, since all others are to say hello. */
uint32_t underfilled_count(const struct job *job)
{
    bool first = job->phase == PHASE_JOIN && job->generation.number == 0;
    bool all_left = job->phase == PHASE_RUN && job->present == 0;
    bool leaves = job->preempt > PREEMPT_STOPS || (ps_job_is_set(&job->ps_job) && job->silent > 0);
    bool pauses = deadline_armed(job, DEADLINE_BACKOFF);
    CADRE_ASSERT(job->declined <= job->waiting);
    CADRE_ASSERT(job->waiting + job->alive + job->gone == job->tasks);
    if (job->state == JOB_QUEUED || job->outcome != 0 || job->behind || job->phase == PHASE_DONE ||
        all_left || leaves || pauses) {
        return 0;
    }
    if (first) {
        uint32_t held = job->alive + job->gone;
        return job->initial > held ? job->initial - held : 0;
    }
    return job->waiting - job->declined;
}

uint32_t underfilled_lack(const struct core *core, const struct job *job)
{
    bool first = job->phase == PHASE_JOIN && job->generation.number == 0;
    uint32_t held = ps_job_is_set(&job->ps_job)
                        ? ps_job_held_slots(core, job)
                        : job->usable + (first ? job->gone - job->refilled : 0);
    CADRE_ASSERT(job->refilled <= job->gone);
    CADRE_ASSERT(held <= job->tasks);
    return job->tasks_min > held ? job->tasks_min - held : 0;
}

void underfilled_note(struct core *core, struct job *job)
{
    bool wants = underfilled_count(job) > 0;
    if (wants && !job->underfilled) {
        queue_insert(core, &core->underfilled, job);
    } else if (!wants && job->underfilled) {
        list_remove(&core->underfilled, job_index(core, job));
    }
    job->underfilled = wants;
    core->placement_due |= wants;
    CADRE_ASSERT(!job->underfilled || (job->outcome == 0 && job->state != JOB_QUEUED));
}

void underfilled_reopen(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks && job->declined > 0; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->refill == REFILL_NEXT_PLAN) {
            refill_move(job, task, REFILL_AFTER_PLAN);
        }
    }
    CADRE_ASSERT(job->declined == 0);
}
