/* SPDX-License-Identifier: Apache-2.0
 * Which placed jobs want places: slots of tasks that were lost, and those for which there was no
 * room at first. They stand in a list, in the order of the queue. */
#include "coordinator/core/facts/wanting.h"

#include "coordinator/core/facts/crew.h"
#include "coordinator/core/state/deadlines.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"

/* Before the first plan only what was lost is placed again: hellos are awaited from all. */
uint32_t wanting_count(const struct job *job)
{
    bool first = job->phase == PHASE_JOIN && job->generation.number == 0;
    bool deserted = job->phase == PHASE_RUN && job->present == 0;
    bool leaves = job->preempt > PREEMPT_STOPS || (crew_is(&job->crew) && job->silent > 0);
    bool pauses = deadline_armed(job, DEADLINE_BACKOFF);
    CADRE_ASSERT(job->declined <= job->waiting);
    CADRE_ASSERT(job->waiting + job->alive + job->gone == job->tasks);
    if (job->state == JOB_QUEUED || job->outcome != 0 || job->phase == PHASE_DONE || deserted ||
        leaves || pauses) {
        return 0;
    }
    if (first) {
        uint32_t held = job->alive + job->gone;
        return job->initial > held ? job->initial - held : 0;
    }
    return job->waiting - job->declined;
}

uint32_t wanting_needed(const struct core *core, const struct job *job)
{
    bool first = job->phase == PHASE_JOIN && job->generation.number == 0;
    uint32_t held = crew_is(&job->crew) ? crew_held(core, job)
                                        : job->usable + (first ? job->gone - job->owed : 0);
    CADRE_ASSERT(job->owed <= job->gone);
    CADRE_ASSERT(held <= job->tasks);
    return job->tasks_min > held ? job->tasks_min - held : 0;
}

void wanting_note(struct core *core, struct job *job)
{
    bool wants = wanting_count(job) > 0;
    if (wants && !job->wanting) {
        job_line_up(core, &core->wanting, job);
    } else if (!wants && job->wanting) {
        list_remove(&core->wanting, job_index(core, job));
    }
    job->wanting = wants;
    core->place_due |= wants;
    CADRE_ASSERT(!job->wanting || (job->outcome == 0 && job->state != JOB_QUEUED));
}

void wanting_reopen(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks && job->declined > 0; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->refill == REFILL_LATER) {
            refill_move(job, task, REFILL_USUAL);
        }
    }
    CADRE_ASSERT(job->declined == 0);
}
