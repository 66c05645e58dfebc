/* SPDX-License-Identifier: Apache-2.0
 * Empty slots of jobs that were placed before: of tasks that were lost, and of those for which
 * there was no room at first. What a job needs to go on comes before the queue; what only makes it
 * larger comes after it. */
#include "coordinator/core/parts.h"

/* Before the first plan only what was lost is placed again: hellos are awaited from all. */
static uint32_t vacancy_count(const struct job *job)
{
    bool first = job->phase == PHASE_JOIN && job->generation.number == 0;
    bool deserted = job->phase == PHASE_RUN && job->present == 0;
    bool leaves = job->preempt > PREEMPT_STOPS || (crew_is(&job->crew) && job->silent > 0);
    bool pauses = deadline_armed(job, DEADLINE_BACKOFF);
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

uint32_t vacancy_needed(const struct core *core, const struct job *job)
{
    bool first = job->phase == PHASE_JOIN && job->generation.number == 0;
    uint32_t held = crew_is(&job->crew) ? crew_held(core, job)
                                        : job->usable + (first ? job->gone - job->owed : 0);
    return job->tasks_min > held ? job->tasks_min - held : 0;
}

void vacancy_note(struct core *core, struct job *job)
{
    bool wants = vacancy_count(job) > 0;
    if (wants && !job->wanting) {
        job_line_up(core, &core->wanting, job);
    } else if (!wants && job->wanting) {
        list_remove(&core->wanting, job_index(core, job));
    }
    job->wanting = wants;
    core->place_due |= wants;
}

void vacancy_reopen(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks && job->declined > 0; slot++) {
        struct task *task = job_task(core, job, slot);
        job->declined -= task->state == TASK_WAITING && task->declined;
        task->declined = false;
    }
}

static void fresh_add(struct core *core, struct job *job, uint32_t slot)
{
    job_task(core, job, slot)->unplaced = true;
    job_task(core, job, slot)->next_fresh = NONE;
    if (job->fresh == NONE) {
        job->fresh = slot;
    } else {
        job_task(core, job, job->fresh_last)->next_fresh = slot;
    }
    job->fresh_last = slot;
    job_due(core, job, DUE_CHANGED);
}

void vacancy_run(struct core *core, bool grow)
{
    uint32_t index = core->wanting.first;
    while (index != LIST_NONE && core->slots_free[0] > 0) {
        struct job *job = &core->jobs[index];
        uint32_t next = core->wanting.nodes[index].next;
        uint32_t count = vacancy_count(job);
        uint32_t needed = vacancy_needed(core, job);
        count = grow || count < needed ? count : needed;
        uint32_t room = placement_free(core, job);
        count = count < room ? count : room;
        if (count > 0) {
            deadline_clear(core, job, DEADLINE_FORM); /* it is for those that run; not all do now */
            count -= crew_go_home(core, job, count, fresh_add);
            placement_spread(core, job, count, fresh_add);
            vacancy_note(core, job);
            job_due(core, job, DUE_REGROUP);
        }
        index = next;
    }
}
