/* SPDX-License-Identifier: Apache-2.0
 * What a ps job does once a turn: which tasks it waits for, and how they end when its chief is
 * done. */
#include "coordinator/core/decide/decide.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/abort.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

/* Whether all ps tasks from before a start of the coordinator said hello, or exited. */
static bool ps_job_decide_recalled(const struct core *core, struct job *job)
{
    CADRE_ASSERT(job->recalls);
    for (; job->recalled < job->tasks; job->recalled++) {
        const struct task *task = job_task(core, job, job->recalled);
        if (task_is_usable(task) && task->adopted && !task->joined) {
            return false;
        }
    }
    CADRE_ASSERT(job->recalled == job->tasks);
    return true;
}

/* Tasks that have not said hello are dismissed, because bye cannot reach them. */
static void ps_job_decide_leave(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_DONE);
    if (job->ps_shutdown == PS_SHUTDOWN_NONE) {
        job->ps_shutdown = PS_SHUTDOWN_WORKERS;
        ps_tasks_dismiss(core, job, false, true);
        deadline_set(core, job, DEADLINE_PS_JOB, core->now_us + core->options.collect_us);
        job_due(core, job, DUE_GOODBYE_WORKERS);
    }
    if (job->ps_shutdown == PS_SHUTDOWN_WORKERS && job->present == 0 &&
        ps_job_nonserver_count(job) == 0) {
        job->ps_shutdown = PS_SHUTDOWN_SERVERS;
        ps_tasks_dismiss(core, job, true, true);
        deadline_clear(core, job, DEADLINE_PS_JOB);
        deadline_set(core, job, DEADLINE_PS_JOB, core->now_us + core->options.grace_us);
        job_due(core, job, DUE_GOODBYE_SERVERS);
    }
    CADRE_ASSERT(job->ps_shutdown != PS_SHUTDOWN_NONE);
}

void ps_job_decide(struct core *core, struct job *job)
{
    if (!ps_job_is_set(&job->ps_job) || job->stopped) {
        return;
    }
    if (job->recalls && ps_job_decide_recalled(core, job)) {
        job->recalls = false;
        job_due(core, job, DUE_MEMBERS);
        if (job->phase != PHASE_DONE) {
            deadline_clear(core, job, DEADLINE_PS_JOB);
        }
    }
    bool lacks = job->ps_task_counts[ROLE_SERVER] < job->ps_job.servers ||
                 job->ps_task_counts[ROLE_WORKER] == 0;
    if (job->phase == PHASE_DONE) {
        ps_job_decide_leave(core, job);
    } else if (job->phase == PHASE_RUN && job->outcome == 0 && lacks && job->present > 0) {
        abort_arm_wait(core, job);
    } else if (job->phase == PHASE_RUN) {
        deadline_clear(core, job, DEADLINE_WAIT);
    }
    CADRE_ASSERT(job->ps_task_counts[ROLE_SERVER] <= job->ps_job.servers);
}
