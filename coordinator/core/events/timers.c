/* SPDX-License-Identifier: Apache-2.0
 * Deadlines that are over, in the order in which they were due. */
#include "coordinator/core/events/events.h"

#include "coordinator/core/events/failure.h"
#include "coordinator/core/events/generation.h"
#include "coordinator/core/events/membership.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"

/* What these deadlines wait for may be missing only because all workers of the job are silent. */
static bool waits_for_messages(enum deadline deadline)
{
    CADRE_ASSERT(deadline < DEADLINES);
    return deadline == DEADLINE_FORM || deadline == DEADLINE_EARLY || deadline == DEADLINE_REPORT ||
           deadline == DEADLINE_DRAIN || deadline == DEADLINE_PREEMPT ||
           deadline == DEADLINE_STALL || deadline == DEADLINE_PS_JOB;
}

static void job_over(struct core *core, struct job *job, enum deadline deadline)
{
    CADRE_ASSERT(job->id.n != 0);
    CADRE_ASSERT(job->deadlines[deadline] <= core->now_us);
    deadline_clear(core, job, deadline);
    if (waits_for_messages(deadline) && lease_cut_off(core, job)) {
        deadline_set(core, job, deadline, core->now_us + core->options.lease_us);
        return;
    }
    if (waits_for_messages(deadline) && lease_unread_us(core) > 0) {
        deadline_set(core, job, deadline, lease_unread_us(core));
        return;
    }
    switch (deadline) {
    case DEADLINE_FORM:
        generation_form_timeout(core, job);
        break;
    case DEADLINE_EARLY:
        failure_early(core, job);
        break;
    case DEADLINE_REPORT:
        abort_report_timeout(core, job);
        break;
    case DEADLINE_WAIT:
        abort_wait_timeout(core, job);
        break;
    case DEADLINE_DRAIN:
        drain_timeout(core, job);
        break;
    case DEADLINE_PREEMPT:
        preempt_timeout(core, job);
        break;
    case DEADLINE_SLOW:
        health_slow_timeout(core, job);
        break;
    case DEADLINE_STALL:
        health_stall_timeout(core, job);
        break;
    case DEADLINE_PS_JOB:
        ps_tasks_timeout(core, job);
        break;
    case DEADLINE_MEMBERS:
        ps_job_members_timeout(core, job);
        break;
    case DEADLINE_LIMIT:
        time_limit_timeout(core, job);
        break;
    case DEADLINE_BACKOFF:
        restarts_waited(core, job);
        break;
    case DEADLINE_COLLECT:
        job->uncollected = true;
        job_due(core, job, 0);
        break;
    case DEADLINES:
        break;
    }
}

static void jobs_over(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->id.n != 0);
    for (uint32_t i = 0; i < DEADLINES; i++) {
        if (job->deadlines[i] <= core->now_us) {
            job_over(core, job, (enum deadline)i);
        }
    }
    CADRE_ASSERT(job->deadlines[DEADLINE_FORM] > core->now_us);
}

/* Each may append one action at once (a lost worker's stream is ended); the room for turn_run() is
 * left. */
void deadlines_run(struct core *core)
{
    struct heap_entry next;
    while (heap_top(&core->deadlines, &next) && next.due_us <= core->now_us &&
           actions_left(core) > 2 * ACTIONS_PER_JOB_MAX) {
        uint32_t workers_max = core->options.limits.workers_max;
        if (next.item >= workers_max) {
            jobs_over(core, &core->jobs[next.item - workers_max]);
        } else {
            lease_expired(core, next.item, next.due_us);
        }
    }
}
