/* SPDX-License-Identifier: Apache-2.0
 * Tasks that end before their job does: which task, how it ended, and whether the job goes on
 * without it. task_lifecycle.c calls this for exits and losses, timers.c for deadlines. */
#include "coordinator/core/events/failure.h"

#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/text_format.h"
#include "coordinator/core/state/states.h"

#define EXIT_CODE_SIGNAL 128 /* as a shell reports a signal */

/* The job's code when a task did not start. CANCELLED is that of jobs that someone ended. */
static cadre_status code_of_cause(cadre_status cause)
{
    return cause != CADRE_OK && cause != CADRE_CANCELLED ? cause : CADRE_FAILED_PRECONDITION;
}

/* "task 2 on worker b was killed by signal 9 (Killed)" */
static void death_make(const struct core *core, const struct job *job,
    const struct agent_task_gone *gone, struct death *ret_death)
{
    const uint32_t slot = gone->task.slot;
    const struct task_exit *exit = &gone->exit;
    const struct task *task = job_task(core, job, slot);
    bool never_started = task->pid == 0 && exit->signal == 0;
    struct text text = text_begin(ret_death->text, sizeof(ret_death->text));
    CADRE_ASSERT(task->state == TASK_EXITED);
    ret_death->code = never_started ? code_of_cause(gone->cause) : CADRE_ABORTED;
    ret_death->exit_code = exit->signal > 0  ? EXIT_CODE_SIGNAL + (exit->signal & 127)
                           : exit->code != 0 ? exit->code
                                             : 1;
    task_name(core, job, slot, &text);
    if (exit->signal != 0) {
        const char *name = signal_name(exit->signal);
        text_add(&text, " was killed by signal ");
        text_add_i64(&text, exit->signal);
        text_add(&text, " (");
        text_add(&text, name == NULL ? "unknown" : name);
        text_add(&text, ")");
    } else if (never_started) {
        text_add(&text, " did not start");
    } else {
        text_add(&text, " exited with status ");
        text_add_i64(&text, exit->code);
    }
    if (task_drains(core, job, task)) {
        text_add(&text, " while its worker was draining");
    } else if (exit->code == 0 && exit->signal == 0 && task_is_ps_task(task)) {
        text_add(&text, " before the chief was done");
    } else if (exit->code == 0 && exit->signal == 0) {
        text_add(&text, !task->joined    ? " before it joined"
                        : task->finished ? " in cadre_finish, where all wait for each other"
                                         : UNFINISHED);
    }
    if (exit->text[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, exit->text);
    }
    CADRE_ASSERT(ret_death->exit_code != 0);
    CADRE_ASSERT(ret_death->code != CADRE_OK && ret_death->text[0] != '\0');
}

void failure_silent(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->silent > 0);
    CADRE_ASSERT(job->joined > 0);
    task_name(core, job, job->silent_slot, &text);
    text_add(&text, " exited with status 0 before it joined; ");
    text_add_u64(&text, job->joined);
    text_add(&text, " of ");
    text_add_u64(&text, job->initial);
    text_add(&text, " tasks joined: all must join a strategy, or none");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
}

void failure_early(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->early_slot != NONE);
    uint32_t others = job->phase == PHASE_RUN ? job->present : job->alive;
    task_name(core, job, job->early_slot, &text);
    text_add(&text, " exited with status 0" UNFINISHED ", and ");
    text_count(&text, others, "other waits", "others wait");
    text_add(&text, ": all must call it at the end");
    if (job->phase != PHASE_RUN) {
        job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
    } else if (restarts_count(core, job, CADRE_FAILED_PRECONDITION, 1, sentence)) {
        job->counted = true;
        generation_abort(core, job, sentence, false);
    }
    CADRE_ASSERT(job->outcome != 0 || generation_is_broken(job));
}

/* The task is placed again. The deadline for hellos begins again with its replacement. */
static void replace_task(struct core *core, struct job *job, struct task *task, const char *why)
{
    struct text reason = text_begin(job->reason, sizeof(job->reason));
    CADRE_ASSERT(job->generation.number == 0);
    text_add(&reason, why);
    deadline_clear(core, job, DEADLINE_FORM);
    task_refill_now(job, task);
    CADRE_ASSERT(task->refill == REFILL_NOW);
}

/* A task exited before the first plan. An exit status is the program's own, and a restart would not
 * change it; a lost worker or a signal is not. */
static void exited_new(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(job->phase == PHASE_JOIN && job->generation.number == 0);
    CADRE_ASSERT(task->rank == NONE);
    if (task_drains(core, job, task)) {
        replace_task(core, job, task, death->text);
    } else if (exit->signal != 0) {
        if (restarts_count(core, job, death->code, death->exit_code, death->text)) {
            struct text note = text_begin(job->note, sizeof(job->note));
            text_add(&note, death->text);
            text_add(&note, "; it is started again");
            replace_task(core, job, task, death->text);
        }
    } else if (exit->code != 0) {
        job_fail(core, job, death->code, death->exit_code, death->text);
    } else if (!task->joined) {
        if (job->silent++ == 0) {
            job->silent_slot = slot;
        }
        if (job->joined > 0) {
            failure_silent(core, job);
        }
    } else if (job->early_slot == NONE) {
        job->early_slot = slot;
        deadline_set(core, job, DEADLINE_EARLY, core->now_us + core->options.grace_us);
    }
}

/* A joiner exited. */
static void exited_joiner(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->rank == NONE);
    CADRE_ASSERT(job->phase != PHASE_DONE);
    if (task_drains(core, job, task) || (task->adopted && !task->joined)) {
        return; /* an adopted one may have been dismissed by the last coordinator */
    }
    if (job->phase == PHASE_RUN && (job->plain || (exit->code == 0 && exit->signal == 0))) {
        /* Nothing is left to do for it; or it only waited, and the others begin again with it if
         * its slot is filled at once. */
        refill_move(job, task, REFILL_NEXT_PLAN);
        return;
    }
    if (restarts_count(core, job, death->code, death->exit_code, death->text) &&
        job->phase != PHASE_RUN) {
        memcpy(job->reason, death->text, sizeof(job->reason));
    }
}

/* A member's exit may be reported before the exit that caused it: a task that lost its peers,
 * reported that and exited with a status only followed another. So did one that exited while it
 * waited in cadre_finish, if another task ended. */
static void member_followed(struct job *job, const struct death *death)
{
    if (job->followed.code == CADRE_OK) {
        job->followed.code = death->code;
        job->followed.exit_code = death->exit_code;
        memcpy(job->followed.text, death->text, sizeof(job->followed.text));
    }
    CADRE_ASSERT(job->followed.code != CADRE_OK);
}

static void exited_member(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death)
{
    struct task *task = job_task(core, job, slot);
    bool clean = exit->code == 0 && exit->signal == 0;
    bool preempted = preempt_stops(job) && exit->signal != 0; /* its machine may be gone */
    /* The coordinator was started again behind a halt that reset all, which is not recorded. */
    bool left = exit->code == JOB_EXIT_PREEMPTED && job->halt_kind == HALT_REGROUP;
    bool drained = (task_drains(core, job, task) && !task->finished) || preempted || left;
    bool froze = job->phase == PHASE_REGROUP && task->reported;
    CADRE_ASSERT(task->rank != NONE);
    CADRE_ASSERT(job->phase == PHASE_RUN || job->phase == PHASE_REGROUP);
    if (clean && !drained && task->finished && job->phase == PHASE_RUN) { /* Rule 17. */
        member_followed(job, death); /* before bye: no failure if the others finish too */
        return;
    }
    if (clean && !drained && job->phase == PHASE_RUN) {
        if (job->early_slot == NONE) {
            job->early_slot = slot;
            deadline_set(core, job, DEADLINE_EARLY, core->now_us + core->options.grace_us);
        }
        return;
    }
    if (drained) {
        job->excused = true;
    } else if (froze && exit->signal == 0) {
        member_followed(job, death);
    } else if (!job->counted) {
        if (!restarts_count(core, job, death->code, death->exit_code, death->text)) {
            return;
        }
        job->counted = true;
    }
    task_remove_from_roster(core, job, slot);
    generation_abort(core, job, death->text, froze);
    CADRE_ASSERT(task->rank == NONE);
}

void failure_exited(struct core *core, struct job *job, const struct agent_task_gone *gone)
{
    const uint32_t slot = gone->task.slot;
    const struct task_exit *exit = &gone->exit;
    struct death death;
    char sentence[LIMIT_TEXT_BYTES];
    const struct task *task = job_task(core, job, slot);
    /* Rule 7: the exit of a dismissed task counts as nothing. */
    bool counts = job->outcome == 0 && task->dismissed == DISMISSED_NOT && !generation_is_void(job);
    bool again = job->outcome == 0 && task->dismissed == DISMISSED_RESET;
    CADRE_ASSERT(task->state == TASK_EXITED);
    if (again && job->generation.number == 0 && !task_is_ps_task(task)) {
        task_refill_now(job, job_task(core, job, slot));
    } else if (counts) {
        death_make(core, job, gone, &death);
        if (task_is_ps_task(task)) {
            ps_failure_exited(core, job, slot, exit, &death);
        } else if (job->phase == PHASE_JOIN && job->generation.number == 0) {
            exited_new(core, job, slot, exit, &death);
        } else if (job->phase == PHASE_DONE) {
            if (job->preempt == PREEMPT_NOT && (exit->code != 0 || exit->signal != 0)) {
                struct text text = text_begin(sentence, sizeof(sentence));
                text_add(&text, death.text);
                text_finished(job, &text);
                job_fail(core, job, death.code, death.exit_code, sentence);
            }
        } else if (task->rank == NONE) {
            exited_joiner(core, job, slot, exit, &death);
        } else {
            exited_member(core, job, slot, exit, &death);
        }
    }
    job_due(core, job, DUE_TASK_GONE);
}

void failure_lost(struct core *core, struct job *job, uint32_t slot, const char *how)
{
    struct task *task = job_task(core, job, slot);
    const struct task_group *task_group = job_task_group(core, job, task->task_group);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(task->state == TASK_LOST);
    CADRE_ASSERT(task_group->worker != NONE);
    CADRE_ASSERT(how[0] != '\0');
    task_title(job, slot, &text);
    text_add(&text, " was lost with worker ");
    text_add(&text, core->workers[task_group->worker].name);
    text_add(&text, ", ");
    text_add(&text, how);
    /* Rule 7. */
    bool counts = job->outcome == 0 && task->dismissed == DISMISSED_NOT && !generation_is_void(job);
    if (counts && task_is_ps_task(task)) {
        ps_failure_lost(core, job, slot, sentence);
    } else if (counts) {
        if (job->phase == PHASE_DONE && job->preempt == PREEMPT_NOT) {
            text_finished(job, &text);
            job_fail(core, job, CADRE_UNAVAILABLE, 1, sentence);
        } else if (job->phase == PHASE_JOIN) {
            memcpy(job->reason, sentence, sizeof(job->reason));
        } else if (task->rank != NONE) {
            job->excused = true;
            task_remove_from_roster(core, job, slot);
            generation_abort(core, job, sentence, false);
        }
    }
    bool silent = task->dismissed == DISMISSED_SILENT && generation_is_broken(job);
    if (silent && job->outcome == 0) {
        memcpy(job->reason, sentence, sizeof(job->reason)); /* now the cause is known */
    }
    if (job->generation.number == 0 && !task_is_ps_task(task)) {
        deadline_clear(core, job, DEADLINE_FORM);
        task_refill_now(job, task);
    }
    job_due(core, job, DUE_TASK_GONE);
}
