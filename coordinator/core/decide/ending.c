/* SPDX-License-Identifier: Apache-2.0
 * How jobs end: which tasks are stopped, what the job waits for, and its last record. turn/ calls
 * this once a turn for each job with an outcome. */
#include "coordinator/core/decide/decide.h"

#include "coordinator/core/decide/regroup.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

void ending_stop(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->state == JOB_STARTING || job->state == JOB_RUNNING);
    CADRE_ASSERT(job->outcome != 0);
    CADRE_ASSERT(job->stopped);
    if (job->phase == PHASE_RUN) {
        phase_move(job, PHASE_REGROUP);
    }
    if (job->alive > 0) {
        bool members = job->phase == PHASE_REGROUP;
        job_due(core, job, DUE_STOP | (members ? DUE_ABORT : 0u));
    }
    job_move(core, job, JOB_ENDING);
    job_due(core, job, DUE_TASK_GONE);
    CADRE_ASSERT(job->state == JOB_ENDING && job->phase != PHASE_RUN);
}

void ending_finish(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->finished == job->roster);
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(!job->diverged);
    /* Rule 17: all members reported the same position with equal states, so bye is sent. */
    if (job->halt_kind == HALT_STOP) { /* the programs finished before the stop */
        halt_drop(job);
        job_due(core, job, DUE_HALT);
    }
    preempt_move(job, PREEMPT_NOT);
    phase_move(job, PHASE_DONE);
    deadlines_clear(core, job);
    joiners_dismiss(core, job);
    underfilled_note(core, job);
    verified_last(core, job);
    job_due(core, job, DUE_CONSUMED | DUE_DONE | DUE_PS_JOB | DUE_CHANGED);
    CADRE_ASSERT(job->phase == PHASE_DONE && job->preempt == PREEMPT_NOT);
}

static void ending_succeed(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->alive == 0);
    if (job->phase == PHASE_DONE) {
        text_add(&text, "finished after ");
        text_count(&text, job->finished_position, "step", "steps");
        if (job->note[0] != '\0') {
            text_add(&text, job->grows ? "; " : "; last interruption: ");
            text_add(&text, job->note);
        }
    } else {
        text_add(&text, ps_job_is_set(&job->ps_job) ? "the chief"
                        : job->tasks == 1           ? "the task"
                                                    : "all tasks");
        text_add(&text, " exited with status 0");
        text_add(&text, job->joined == 0 ? " without joining a strategy" : UNFINISHED);
    }
    outcome_set(core, job, JOB_SUCCEEDED, CADRE_OK, 0, sentence);
}

bool ending_complete(const struct job *job)
{
    CADRE_ASSERT(job->collected <= job->gone);
    return job->state == JOB_ENDING && job->alive == 0 && job->lost == NONE && job->fresh == NONE &&
           (job->collected == job->gone || job->uncollected);
}

void ending_settle(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->alive == 0);
    CADRE_ASSERT(job->state == JOB_QUEUED || ending_complete(job));
    CADRE_ASSERT(job->outcome != 0);
    job_move(core, job, job->outcome);
    struct core_record *record = record_add(core, job, CORE_RECORD_ENDED, true);
    record->ended.state = job->outcome;
    record->ended.code = job->code;
    record->ended.exit_code = job->exit_code;
    struct text text = text_begin(record->ended.text, sizeof(record->ended.text));
    text_add(&text, job->text);
    if (job->left[0] != '\0') {
        text_add(&text, "; ");
        text_add(&text, job->left);
    } else if (job->collected < job->gone) {
        text_add(&text, "; logs and outputs of some tasks did not come in time");
    }
    if (ps_job_is_set(&job->ps_job)) {
        action_add(core, CORE_ACTION_FORGET_JOB)->forget_job.job = job->id;
    }
    action_add(core, CORE_ACTION_JOB_ENDED)->job = job->id;
    job_forget(core, job);
}

/* It holds no slot. */
static void ending_of_queued(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome != 0);
    CADRE_ASSERT(job->state == JOB_QUEUED);
    queue_remove(core, job);
    core->placement_due = true;
    ending_settle(core, job);
}

void ending_decide(struct core *core, struct job *job)
{
    if (job->state == JOB_QUEUED) {
        ending_of_queued(core, job);
        return;
    }
    bool preempted = job->preempt == PREEMPT_SAVED || job->preempt == PREEMPT_UNSAVED;
    if (job->outcome == 0 && outcome_all_exited(job) && job->alive > 0) {
        deadline_clear(core, job, DEADLINE_EARLY);
        joiners_dismiss(core, job);
    }
    if (job->outcome == 0 && ps_job_is_set(&job->ps_job) &&
        (outcome_all_exited(job) || outcome_never_joined(job))) {
        ps_tasks_dismiss_all(core, job);
    }
    if (job->alive > 0) {
        return;
    }
    if (job->outcome == 0 && preempted) {
        preempted_gone(core, job);
    } else if (outcome_is_success(job)) {
        ending_succeed(core, job);
    }
    if (job->outcome == 0) {
        return;
    }
    if (job->state != JOB_ENDING) {
        job_move(core, job, JOB_ENDING);
    }
    deadlines_clear(core, job);
    deadline_set(core, job, DEADLINE_COLLECT, core->now_us + core->options.collect_us);
}

void ending_time_limit(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(time_limit_in_queue(job));
    time_limit_fail(core, job);
    ending_of_queued(core, job);
}
