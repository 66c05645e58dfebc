/* SPDX-License-Identifier: Apache-2.0
 * Preemption: a job that has to leave its machines saves its state at one step, and its tasks exit.
 * The step is one after the watermark (protocol, rule 3), so all tasks can still reach it and no
 * begun step is wasted; it is a halt (STOP), recorded before it is sent.
 *
 *     notice, drain --> WANTED --halt at S--> STOPS --all are at S, and S is published--> SAVED
 *                          |                    | a member dies: the others stop at their position
 *                          |                    | no state is left, or no time: UNSAVED
 *                          '-- no step was begun: UNSAVED
 *     SAVED, UNSAVED --all tasks exited--> REQUEUES --all are collected--> QUEUED, to go on from
 *                                     '--> the job ends as PREEMPTED       its newest checkpoint
 *
 * And checkpoints on request: the same step, without a halt. events/ and decide/ call this. */
#include "coordinator/core/facts/preempt.h"

#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

/* Adds the checkpoint that the job will go on from. */
static void saved_text(const struct job *job, struct text *text)
{
    CADRE_ASSERT(job->preempt == PREEMPT_SAVED || job->preempt == PREEMPT_UNSAVED);
    CADRE_ASSERT(
        job->preempt != PREEMPT_SAVED || job->has_checkpoint || job->finished_position == 0);
    if (!job->has_checkpoint) {
        text_add(text, "nothing was saved");
        return;
    }
    text_add(text, job->preempt == PREEMPT_SAVED ? "saved at step " : "its checkpoint is of step ");
    text_add_u64(text, job->checkpoint.position);
}

/* "preempted (worker b drains): saved at step 40" */
void preempt_note(struct job *job)
{
    struct text text = text_begin(job->note, sizeof(job->note));
    CADRE_ASSERT(job->preempt_text[0] != '\0');
    text_add(&text, "preempted (");
    text_add(&text, job->preempt_text);
    text_add(&text, "): ");
    if (job->preempt == PREEMPT_UNSAVED && job->reason[0] != '\0') {
        text_add(&text, job->reason);
        text_add(&text, "; ");
    }
    saved_text(job, &text);
}

void preempt_ends_by(struct core *core, struct job *job, uint64_t due_us)
{
    CADRE_ASSERT(job->preempt != PREEMPT_NOT);
    CADRE_ASSERT(due_us >= core->now_us);
    deadline_clear(core, job, DEADLINE_PREEMPT);
    deadline_set(core, job, DEADLINE_PREEMPT, due_us);
}

void preempt_unsaved(struct core *core, struct job *job, const char *why)
{
    struct text text = text_begin(job->reason, sizeof(job->reason));
    CADRE_ASSERT(job->outcome == 0);
    text_add(&text, why);
    preempt_move(job, PREEMPT_UNSAVED);
    preempt_note(job);
    deadlines_clear(core, job);
    job_due(core, job, DUE_UNSAVED | DUE_DISBAND | DUE_TASK_GONE);
    CADRE_ASSERT(generation_is_void(job));
}

static void preempt_begin(struct core *core, struct job *job, uint64_t grace_us)
{
    CADRE_ASSERT(job->preempt_text[0] != '\0');
    if (job->phase == PHASE_JOIN) {
        preempt_unsaved(core, job, "no step was begun");
        return;
    }
    preempt_move(job, PREEMPT_WANTED);
    preempt_ends_by(core, job, core->now_us + (grace_us > 0 ? grace_us : core->options.grace_us));
    job_due(core, job, DUE_CONTROL | DUE_REGROUP | DUE_CHANGED);
    CADRE_ASSERT(deadline_armed(job, DEADLINE_PREEMPT));
}

static bool preempt_possible(const struct job *job)
{
    return job->outcome == 0 && job->state != JOB_QUEUED && job->phase != PHASE_DONE &&
           job->preempt == PREEMPT_NOT;
}

void preempt_notice(
    struct core *core, struct job *job, uint32_t slot, const struct task_preempt *notice)
{
    CADRE_ASSERT(task_is_usable(job_task(core, job, slot)));
    if (!notice->stops) {
        job->checkpoint_asked |= job->checkpoint_at == POSITION_NONE;
        job_due(core, job, DUE_CONTROL);
        return;
    }
    if (!preempt_possible(job)) {
        return; /* it is being preempted already */
    }
    struct text text = text_begin(job->preempt_text, sizeof(job->preempt_text));
    task_name(core, job, slot, &text);
    text_add(&text, " has to leave its machine");
    job->requeues = job->max_restarts > 0;
    preempt_begin(core, job, notice->grace_us);
}

void preempt_drained(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->draining);
    if (!preempt_possible(job)) {
        return;
    }
    struct text text = text_begin(job->preempt_text, sizeof(job->preempt_text));
    text_add(&text, ps_job_is_set(&job->ps_job)
                        ? "the worker of its chief or of a server drains"
                        : "its worker drains, and there is no room elsewhere");
    job->requeues = true; /* a drain is no failure of the job */
    preempt_begin(core, job, 0);
}

void preempt_time_limit(struct core *core, struct job *job, const char *why)
{
    CADRE_ASSERT(job->over_time_limit);
    CADRE_ASSERT(why[0] != '\0');
    job->requeues = false;
    if (!preempt_possible(job)) {
        return; /* it is being preempted for another reason, which is shown */
    }
    struct text text = text_begin(job->preempt_text, sizeof(job->preempt_text));
    text_add(&text, why);
    preempt_begin(core, job, 0);
}

static void preempt_stop_set(struct core *core, struct job *job, uint64_t position)
{
    preempt_move(job, PREEMPT_STOPS);
    job->saves = false;
    halt_stop(job, position);
    job->checkpoint_at = POSITION_NONE; /* the stop saves it */
    job->checkpoint_asked = false;
    job_due(core, job, DUE_HALT | DUE_RELEASE | DUE_RELEASE_RESEND | DUE_CHANGED);
    CADRE_ASSERT(preempt_stops(job) && job->halt_at == position);
}

/* Sets a stop or a checkpoint at the watermark and one more (rule 3), when all members have said
 * hello (rule 4). A pending halt for joins or a drain ends with a plan, which sets the stop. A
 * program that has finished begins no step. */
void preempt_control(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_RUN);
    if (job->halt_kind != HALT_NONE || job->present < job->roster || job->finished > 0) {
        return;
    }
    if (job->preempt == PREEMPT_WANTED) {
        /* A plain program saves at the end of each step, and begins the one behind it when that is
         * released: its next save is soon enough. */
        preempt_stop_set(core, job, job->plain ? halt_first(job) : job->released + 1);
    } else if (job->checkpoint_asked && job->preempt == PREEMPT_NOT) {
        job->checkpoint_asked = false;
        job->checkpoint_at = job->released + 1;
        job_due(core, job, DUE_RELEASE_RESEND);
    }
    CADRE_ASSERT(job->checkpoint_at == POSITION_NONE || job->checkpoint_at > job->resume);
}

/* Rule 15: a plan sets a pending stop again at its first position, and a checkpoint as soon as all
 * have said hello. */
void preempt_plan(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->halt_kind == HALT_NONE);
    if (preempt_stops(job)) {
        preempt_stop_set(core, job, job->resume);
    } else if (job->checkpoint_at != POSITION_NONE) {
        job->checkpoint_at = POSITION_NONE; /* a new one is set by preempt_control() */
        job->checkpoint_asked = true;
    }
    CADRE_ASSERT(job->checkpoint_at == POSITION_NONE);
}

void preempt_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_PREEMPT));
    CADRE_ASSERT(job->preempt != PREEMPT_NOT);
    if (preempt_stops(job)) {
        text_add(&text, job->saves ? "the state was not saved in time"
                                   : "not all tasks came to the step in time");
        preempt_unsaved(core, job, sentence);
        return;
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        if (task_is_usable(job_task(core, job, slot))) {
            task_dismiss(core, job, slot, DISMISSED_SILENT);
        }
    }
}

/* The reason is not recorded, nor whether it was a drain. A stop at 0 means that nothing is saved:
 * a real one is behind a step. */
void preempt_restore(struct job *job, const struct core_restore_job *restore)
{
    struct text text = text_begin(job->preempt_text, sizeof(job->preempt_text));
    CADRE_ASSERT(job->preempt == PREEMPT_NOT);
    if (!restore->has_control || restore->halt_kind != HALT_STOP || restore->ending) {
        return;
    }
    text_add(&text, "it was so before the coordinator was started again");
    job->requeues = job->max_restarts > 0;
    preempt_move(job, restore->done           ? PREEMPT_SAVED
                      : restore->halt_at == 0 ? PREEMPT_UNSAVED
                                              : PREEMPT_STOPS);
    if (!preempt_stops(job)) {
        preempt_note(job);
    }
}

/* No member is left, or the members get a lease more to say hello. */
void preempt_resume(struct core *core, struct job *job)
{
    uint64_t due_us = core->now_us + core->options.lease_us + core->options.grace_us;
    if (job->preempt == PREEMPT_STOPS && job->phase == PHASE_JOIN) {
        preempt_move(job, PREEMPT_UNSAVED);
        preempt_note(job);
        job_due(core, job, DUE_UNSAVED);
    } else if (job->preempt != PREEMPT_NOT) {
        preempt_ends_by(core, job, due_us);
    }
    CADRE_ASSERT(!preempt_stops(job) || deadline_armed(job, DEADLINE_PREEMPT));
}
