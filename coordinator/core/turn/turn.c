/* SPDX-License-Identifier: Apache-2.0
 * The end of a step, which core.c calls: what is decided, in a fixed order, and what is appended of
 * it, as far as the step's list has room. The next step appends the rest; core_wake_us() asks for
 * it at once. Jobs take turns, so that a job with many actions does not delay the releases of
 * others. */
#include "coordinator/core/turn/turn.h"

#include "coordinator/core/decide/decide.h"
#include "coordinator/core/decide/regroup.h"
#include "coordinator/core/decide/placement.h"
#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/emit/emit.h"
#include "coordinator/core/events/membership.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"

/* How the job goes on, by its facts. Each may note some that come after it in the table. */
static const struct {
    uint32_t due;
    void (*decide)(struct core *core, struct job *job);
} outcomes[] = {
    {DUE_BREAK, regroup_break},
    {DUE_FINISH, ending_finish},
    {DUE_PART, publish_decide},
    {DUE_HALTED, preempted_halted},
    {DUE_RESTART, regroup_restart},
    {DUE_DISBAND, disband_void},
    {DUE_FAILED, ending_stop},
    {DUE_TASK_GONE, ending_decide},
    {DUE_REQUEUE, preempted_requeue},
};

/* What the job does next; each is followed by its outcomes. */
static const struct {
    uint32_t due;
    void (*decide)(struct core *core, struct job *job);
} decisions[] = {
    {DUE_REGROUP, regroup_decide},
    {DUE_CONTROL, control_decide},
    {DUE_PS_JOB, ps_job_decide},
};

static void decide_outcomes(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->undecided == ((job->due & DUE_OUTCOMES) != 0));
    if (behind_is(job)) {
        job->due &= ~DUE_OUTCOMES;
        if (job->undecided) {
            job->undecided = false;
            list_remove(&core->undecided, job_index(core, job));
        }
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(outcomes) && job->undecided; i++) {
        if ((job->due & outcomes[i].due) != 0) {
            job->due &= ~outcomes[i].due;
            outcomes[i].decide(core, job);
        }
        if (job->undecided && (job->due & DUE_OUTCOMES) == 0) {
            job->undecided = false;
            list_remove(&core->undecided, job_index(core, job));
        }
    }
    CADRE_ASSERT(!job->undecided);
    CADRE_ASSERT(job->id.n == 0 || (job->due & DUE_OUTCOMES) == 0);
}

static void decide_all_outcomes(struct core *core)
{
    while (core->undecided.first != LIST_NONE) {
        decide_outcomes(core, &core->jobs[core->undecided.first]);
    }
    call_answer(core, core->cancel.call, CADRE_OK, core->cancel.job, 0, "");
    core->cancel = (struct core_cancel){0};
}

static void decide_next(struct core *core, struct job *job)
{
    CADRE_ASSERT((job->due & DUE_OUTCOMES) == 0);
    for (size_t i = 0; i < CADRE_COUNT_OF(decisions); i++) {
        if ((job->due & decisions[i].due) != 0) {
            job->due &= ~decisions[i].due;
            decisions[i].decide(core, job);
            decide_outcomes(core, job);
        }
    }
}

/* Whether all that is due of the job is appended. It may be removed afterwards. */
static bool emit_job(struct core *core, struct job *job)
{
    CADRE_ASSERT(actions_left(core) >= ACTIONS_PER_JOB_MAX);
    if ((job->due & DUE_REGROUP) != 0 && actions_left(core) < ACTIONS_PER_PLAN_MAX) {
        return false; /* in the next step it comes before the jobs of this one */
    }
    if (behind_is(job)) {
        decide_outcomes(core, job);
        return emit_behind(core, job);
    }
    decide_next(core, job);
    emit_due(core, job);
    bool emitted = emit_tasks(core, job);
    decide_outcomes(core, job); /* the last action of a task may empty its slot */
    emit_last(core, job);
    if (!emitted) {
        return false;
    }
    if (time_limit_in_queue(job) && job->due == 0 && actions_left(core) >= 3) {
        ending_time_limit(core, job);
        return true;
    }
    if (!ending_complete(job)) {
        return job->due == 0 && !time_limit_in_queue(job);
    }
    CADRE_ASSERT(actions_left(core) >= 3);
    ending_settle(core, job);
    return true;
}

static void emit_jobs(struct core *core)
{
    CADRE_ASSERT(core->undecided.count == 0);
    for (uint32_t turns = core->touched.count;
         turns > 0 && actions_left(core) >= ACTIONS_PER_JOB_MAX; turns--) {
        uint32_t index = list_take(&core->touched);
        struct job *job = &core->jobs[index];
        CADRE_ASSERT(job->touched);
        job->touched = false;
        if (!emit_job(core, job)) {
            job_due(core, job, 0);
        }
    }
}

/* Those of a job that waits for a newer ledger by now stay. */
static void stop_strays(struct core *core)
{
    while (core->stray_count > 0 && actions_left(core) > 0) {
        const struct stray *stray = &core->strays[core->stray_first];
        const struct job *job = job_find(core, stray->task.job);
        if (job == NULL || !behind_is(job)) {
            struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
            action->stop_task.link = stray->link;
            action->stop_task.task = stray->task;
        }
        core->stray_first = (core->stray_first + 1) % STRAYS_MAX;
        core->stray_count--;
    }
}

void turn_run(struct core *core)
{
    CADRE_ASSERT(core->out != NULL);
    decide_all_outcomes(core);
    do {
        placement_run(core);
        emit_jobs(core);
        /* With so much room each job that is due gets a turn. */
    } while (core->placement_due && actions_left(core) >= ACTIONS_PER_PLAN_MAX);
    stop_strays(core);
    if (core->relists) {
        member_relist(core);
    }
    CADRE_ASSERT(core->undecided.count == 0);
}

bool turn_waits(const struct core *core)
{
    CADRE_ASSERT(core->undecided.count == 0);
    return core->touched.count > 0 || core->stray_count > 0 || core->placement_due || core->relists;
}
