/* SPDX-License-Identifier: Apache-2.0
 * The end of a generation that no task goes on from. */
#include "coordinator/core/decide/regroup.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

void disband(struct core *core, struct job *job, enum dismissal why)
{
    CADRE_ASSERT(why != DISMISSED_NOT);
    CADRE_ASSERT(job->state != JOB_QUEUED);
    uint32_t had = job->usable;
    if (job->phase != PHASE_JOIN) {
        phase_move(job, PHASE_JOIN);
    }
    job->restart_all = job->generation.number > 0; /* Rule 29: all processes are started again. */
    ps_job_restart(core, job);
    deadlines_clear(core, job);
    halt_drop(job);
    tasks_stop_leaving(core, job); /* their deadline is cleared */
    job->diverged = false;
    job->due &= ~(uint32_t)(DUE_ABORT | DUE_HALT | DUE_RELEASE | DUE_RELEASE_RESEND);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        if (task_is_usable(job_task(core, job, slot))) {
            task_dismiss(core, job, slot, why);
        }
        task_remove_from_roster(core, job, slot);
        task_vacate(core, job, slot);
    }
    if (why == DISMISSED_LEAVES) {
        deadline_set(core, job, DEADLINE_DRAIN, core->now_us + core->options.grace_us);
    }
    job->roster = 0;
    job->regains = job->plain ? had : 0;
    underfilled_note(core, job);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    CADRE_ASSERT(job->usable == 0 && job->present == 0 && job->halt_kind == HALT_NONE);
}

void disband_void(struct core *core, struct job *job)
{
    bool leaves = job->preempt == PREEMPT_UNSAVED;
    CADRE_ASSERT(job->outcome == 0);
    disband(core, job, leaves ? DISMISSED_SUPERSEDED : DISMISSED_RESET);
    CADRE_ASSERT(job->phase == PHASE_JOIN);
}
