/* SPDX-License-Identifier: Apache-2.0
 * How jobs end: who died first and how, who is told, what is waited for, and the last record. The
 * first reason stands. */
#include "coordinator/core/state.h"

#define EXIT_CODE_SIGNAL    128 /* as a shell reports a signal */
#define EXIT_CODE_CANCELLED 130 /* as after an interrupt */

static void outcome_set(struct core *core, struct job *job, enum job_state outcome,
    cadre_status code, int32_t exit_code, const char *sentence)
{
    struct text text = text_begin(job->text, sizeof(job->text));
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(job_state_is_final(outcome));
    job->outcome = outcome;
    job->code = code;
    job->exit_code = exit_code;
    text_add(&text, sentence);
    job_due(core, job, DUE_CHANGED);
}

void job_stop(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome != 0);
    CADRE_ASSERT(job->state == JOB_STARTING || job->state == JOB_RUNNING);
    job->stopped = true;
    deadline_job(core, job, DEADLINE_NONE, 0);
    if (job->phase == PHASE_RUN) {
        phase_move(job, PHASE_COLLECT);
    }
    if (job->gone < job->tasks) {
        job_due(core, job, DUE_STOP | (job->phase == PHASE_COLLECT ? DUE_ABORT : 0));
    }
    job_move(core, job, JOB_ENDING);
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

/* "task 2 on worker b was killed by signal 9 (Killed)" */
static void fail_death(
    struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit)
{
    const struct task *task = job_task(core, job, slot);
    const struct worker *worker = &core->workers[job_party(core, job, task->party)->worker];
    bool unborn = task->pid == 0 && exit->signal == 0;
    int32_t exit_code = exit->signal > 0  ? EXIT_CODE_SIGNAL + (exit->signal & 127)
                        : exit->code != 0 ? exit->code
                                          : 1;
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    task_name(core, job, slot, &text);
    if (exit->signal != 0) {
        const char *name = signal_name(exit->signal);
        text_add(&text, " was killed by signal ");
        text_add_i64(&text, exit->signal);
        text_add(&text, " (");
        text_add(&text, name == NULL ? "unknown" : name);
        text_add(&text, ")");
    } else if (unborn) {
        text_add(&text, " did not start");
    } else {
        text_add(&text, " exited with status ");
        text_add_i64(&text, exit->code);
    }
    if (worker->draining) {
        text_add(&text, " while its worker was draining");
    }
    if (exit->text[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, exit->text);
    }
    job_fail(core, job, unborn ? CADRE_FAILED_PRECONDITION : CADRE_ABORTED, exit_code, sentence);
}

static void fail_lost(struct core *core, struct job *job, uint32_t slot, const char *how)
{
    const struct party *party = job_party(core, job, job_task(core, job, slot)->party);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_add(&text, "task ");
    text_add_u64(&text, slot);
    text_add(&text, " was lost with worker ");
    text_add(&text, core->workers[party->worker].name);
    text_add(&text, ", ");
    text_add(&text, how);
    job_fail(core, job, CADRE_UNAVAILABLE, 1, sentence);
}

void ending_silent(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->silent > 0);
    CADRE_ASSERT(job->joined > 0);
    task_name(core, job, job->silent_slot, &text);
    text_add(&text, " exited with status 0 before it joined; ");
    text_add_u64(&text, job->joined);
    text_add(&text, " of ");
    text_add_u64(&text, job->tasks);
    text_add(&text, " tasks joined: all must join a strategy, or none");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
}

void ending_early_over(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->early_slot != NONE);
    task_name(core, job, job->early_slot, &text);
    text_add(&text, " exited with status 0 before cadre_finish, and ");
    text_add_u64(&text, job->tasks - job->gone);
    text_add(&text, job->tasks - job->gone == 1 ? " other waits" : " others wait");
    text_add(&text, ": all must call cadre_finish at the end");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
}

void ending_culprit_over(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    CADRE_ASSERT(job->phase == PHASE_COLLECT);
    memcpy(sentence, job->text, sizeof(sentence));
    job_fail(core, job, CADRE_ABORTED, 1, sentence);
}

/* A task exited with status 0. After bye that is the end; before it, the others may be about to do
 * the same. */
static void exited_clean(struct core *core, struct job *job, uint32_t slot)
{
    if (job->phase == PHASE_DONE) {
        return;
    }
    if (!job_task(core, job, slot)->joined) {
        if (job->silent++ == 0) {
            job->silent_slot = slot;
        }
        if (job->joined > 0) {
            ending_silent(core, job);
        }
        return;
    }
    bool first = job->early_slot == NONE;
    if (first) {
        job->early_slot = slot;
    }
    if (job->phase == PHASE_COLLECT) {
        ending_early_over(core, job);
    } else if (first) {
        deadline_job(core, job, DEADLINE_EARLY, core->now_us + core->options.grace_us);
    }
}

/* A draining worker tells its tasks to stop, so a status of 0 is not the end that the job was
 * meant to have, unless it had finished before. */
static void exited(struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit)
{
    const struct task *task = job_task(core, job, slot);
    bool told_to = core->workers[job_party(core, job, task->party)->worker].draining;
    if (exit->code != 0 || exit->signal != 0 ||
        (told_to && !task->finished && job->phase != PHASE_DONE)) {
        fail_death(core, job, slot, exit);
    } else {
        exited_clean(core, job, slot);
    }
}

static void succeed(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    if (job->phase == PHASE_DONE) {
        text_add(&text, "finished after ");
        text_add_u64(&text, job->finished_position);
        text_add(&text, job->finished_position == 1 ? " step" : " steps");
    } else {
        text_add(&text, job->tasks == 1 ? "the task" : "all tasks");
        text_add(&text, " exited with status 0");
        text_add(&text, job->joined == 0 ? " without joining a strategy" : " before cadre_finish");
    }
    outcome_set(core, job, JOB_SUCCEEDED, CADRE_OK, 0, sentence);
}

/* Whether the task only followed others: it lost its peers, reported that, and then gave up in
 * order. Its end may overtake that of the one who died first, which is still awaited. */
static bool is_consequence(
    struct core *core, struct job *job, uint32_t slot, const struct task_exit *exit)
{
    return job->phase == PHASE_COLLECT && exit->signal == 0 && job_task(core, job, slot)->froze;
}

void ending_task_gone(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const char *how)
{
    CADRE_ASSERT((exit == NULL) != (how == NULL));
    CADRE_ASSERT(job->gone <= job->tasks);
    if (job->outcome == 0) {
        if (exit == NULL) {
            fail_lost(core, job, slot, how);
        } else if (!is_consequence(core, job, slot, exit)) {
            exited(core, job, slot, exit);
        }
    }
    if (job->gone < job->tasks) {
        return;
    }
    if (job->outcome == 0 && job->phase == PHASE_COLLECT) {
        ending_culprit_over(core, job); /* they all say that it was another */
    } else if (job->outcome == 0) {
        succeed(core, job);
    }
    if (job->state != JOB_ENDING) {
        job_move(core, job, JOB_ENDING);
    }
    deadline_job(core, job, DEADLINE_COLLECT, core->now_us + core->options.collect_us);
}

void ending_cancel(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->state != JOB_ENDING);
    if (job->outcome == 0) {
        outcome_set(core, job, JOB_CANCELLED, CADRE_CANCELLED, EXIT_CODE_CANCELLED, "cancelled");
    }
    if (job->state == JOB_QUEUED) {
        list_remove(&core->queue, job_index(core, job));
        core->place_due = true;
        ending_settle(core, job);
    } else {
        job_stop(core, job);
    }
}

bool ending_complete(const struct job *job)
{
    return job->state == JOB_ENDING && job->gone == job->tasks && job->lost == NONE &&
           (job->collected == job->tasks || job->uncollected);
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
    action_add(core, CORE_ACTION_JOB_ENDED)->job = job->id;
    job_forget(core, job);
}
