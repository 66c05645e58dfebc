/* SPDX-License-Identifier: Apache-2.0
 * How jobs end: the first reason stands; who is told, what is waited for, and the last record. */
#include "coordinator/core/parts.h"

#define EXIT_CODE_CANCELLED 130 /* as after an interrupt */

void outcome_set(struct core *core, struct job *job, enum job_state outcome, cadre_status code,
    int32_t exit_code, const char *sentence)
{
    struct text text = text_begin(job->text, sizeof(job->text));
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(job_state_is_final(outcome));
    job->outcome = outcome;
    job->code = code;
    job->exit_code = exit_code;
    text_add(&text, sentence);
    vacancy_note(core, job);
    job_due(core, job, DUE_CHANGED | (job->state == JOB_QUEUED ? 0u : DUE_ENDING));
}

void job_stop(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome != 0);
    CADRE_ASSERT(job->state == JOB_STARTING || job->state == JOB_RUNNING);
    job->stopped = true;
    deadlines_clear(core, job);
    if (job->phase == PHASE_RUN) {
        phase_move(job, PHASE_COLLECT);
    }
    if (job->alive > 0) {
        bool members = job->phase == PHASE_COLLECT;
        job_due(core, job, DUE_STOP | (members ? DUE_ABORT : 0u));
    }
    job_move(core, job, JOB_ENDING);
    ending_consider(core, job);
}

void job_fail(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *text)
{
    if (job->outcome != 0) {
        return;
    }
    outcome_set(core, job, JOB_FAILED, code, exit_code, text);
    if (job->phase != PHASE_DONE) {
        job_stop(core, job);
    } /* else the others have finished too and are about to exit by themselves */
}

static void succeed(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    if (job->phase == PHASE_DONE) {
        text_add(&text, "finished after ");
        text_count(&text, job->finished_position, "step", "steps");
        if (job->note[0] != '\0') {
            text_add(&text, "; last loss: ");
            text_add(&text, job->note);
        }
    } else {
        text_add(&text, crew_is(&job->crew) ? "the chief"
                        : job->tasks == 1   ? "the task"
                                            : "all tasks");
        text_add(&text, " exited with status 0");
        text_add(&text, job->joined == 0 ? " without joining a strategy" : UNFINISHED);
    }
    outcome_set(core, job, JOB_SUCCEEDED, CADRE_OK, 0, sentence);
}

void ending_dismiss_joiners(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks && job->usable > job->present; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task->usable && task->rank == NONE) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
}

void ending_consider(struct core *core, struct job *job)
{
    bool deserted = job->phase == PHASE_RUN && job->present == 0;
    bool preempted = job->preempt == PREEMPT_SAVED || job->preempt == PREEMPT_UNSAVED;
    bool crew = crew_is(&job->crew);
    bool plain = job->phase == PHASE_JOIN && job->generation.number == 0 &&
                 (crew ? job->silent > 0 : job->gone - job->owed == job->initial);
    if (job->outcome == 0 && deserted && job->alive > 0) {
        deadline_clear(core, job, DEADLINE_EARLY);
        ending_dismiss_joiners(core, job);
    }
    if (job->outcome == 0 && crew && (deserted || plain)) {
        crew_dismiss(core, job);
    }
    if (job->alive > 0) {
        return;
    }
    if (job->outcome == 0 && preempted) {
        preempt_gone(core, job);
    } else if (job->outcome == 0 && job->preempt == PREEMPT_NOT &&
               (deserted || plain || job->phase == PHASE_DONE)) {
        succeed(core, job);
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

void ending_cancel(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->state != JOB_ENDING);
    if (job->outcome == 0) {
        outcome_set(core, job, JOB_CANCELLED, CADRE_CANCELLED, EXIT_CODE_CANCELLED, "cancelled");
    }
    if (job->state == JOB_QUEUED) {
        queue_remove(core, job);
        core->place_due = true;
        ending_settle(core, job);
    } else {
        job_stop(core, job);
    }
}

bool ending_complete(const struct job *job)
{
    return job->state == JOB_ENDING && job->alive == 0 && job->lost == NONE && job->fresh == NONE &&
           (job->collected == job->gone || job->uncollected);
}

void ending_settle(struct core *core, struct job *job)
{
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
    if (crew_is(&job->crew)) {
        action_add(core, CORE_ACTION_FORGET_JOB)->forget_job.job = job->id;
    }
    action_add(core, CORE_ACTION_JOB_ENDED)->job = job->id;
    job_forget(core, job);
}
