/* SPDX-License-Identifier: Apache-2.0
 * What a crew does once a turn: whom it waits for, and how it leaves when its chief is done. */
#include "coordinator/core/decide/attend.h"

#include "coordinator/core/facts/attendants.h"
#include "coordinator/core/facts/collect.h"
#include "coordinator/core/facts/crew.h"
#include "coordinator/core/state/deadlines.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

/* All that ran before the coordinator was started again have said who they are, or are gone. */
static bool recalled(const struct core *core, struct job *job)
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

/* Who said no hello yet has nothing to end in order. */
static void leave(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_DONE);
    if (job->leaving == LEAVING_NOT) {
        job->leaving = LEAVING_WORKERS;
        attendants_dismiss(core, job, false, true);
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.collect_us);
        job_due(core, job, DUE_BYE_CREW);
    }
    if (job->leaving == LEAVING_WORKERS && job->present == 0 && crew_others(job) == 0) {
        job->leaving = LEAVING_SERVERS;
        attendants_dismiss(core, job, true, true);
        deadline_clear(core, job, DEADLINE_CREW);
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.grace_us);
        job_due(core, job, DUE_BYE_SERVERS);
    }
    CADRE_ASSERT(job->leaving != LEAVING_NOT);
}

void attend_decide(struct core *core, struct job *job)
{
    if (!crew_is(&job->crew) || job->stopped) {
        return;
    }
    if (job->recalls && recalled(core, job)) {
        job->recalls = false;
        job_due(core, job, DUE_MEMBERS);
        if (job->phase != PHASE_DONE) {
            deadline_clear(core, job, DEADLINE_CREW);
        }
    }
    bool lacks =
        job->attending[ROLE_SERVER] < job->crew.servers || job->attending[ROLE_WORKER] == 0;
    if (job->phase == PHASE_DONE) {
        leave(core, job);
    } else if (job->phase == PHASE_RUN && job->outcome == 0 && lacks && job->present > 0) {
        collect_waits(core, job);
    } else if (job->phase == PHASE_RUN) {
        deadline_clear(core, job, DEADLINE_WAIT);
    }
    CADRE_ASSERT(job->attending[ROLE_SERVER] <= job->crew.servers);
}
