/* SPDX-License-Identifier: Apache-2.0
 * A preempted job that has reached its step, or whose tasks have exited. */
#include "coordinator/core/decide/regroup.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"

bool preempted_at_once(struct core *core, struct job *job, uint64_t position)
{
    bool saved = job->has_checkpoint && job->checkpoint.position == position;
    CADRE_ASSERT(preempt_stops(job));
    if (position > 0 && !saved) {
        return false;
    }
    preempt_unsaved(core, job, "");
    return true;
}

void preempted_gone(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->preempt == PREEMPT_SAVED || job->preempt == PREEMPT_UNSAVED);
    CADRE_ASSERT(job->alive == 0 && job->outcome == 0);
    deadline_clear(core, job, DEADLINE_PREEMPT);
    if (job->over_time_limit) {
        time_limit_fail(core, job);
        return;
    }
    if (!job->requeues) {
        text_add(&text, job->note);
        if (job->has_checkpoint && !core->options.forgets_jobs) {
            text_add(&text, ", where --restore ");
            text_add_u64(&text, job->id.n);
            text_add(&text, " goes on");
        }
        outcome_set(core, job, JOB_PREEMPTED, CADRE_CANCELLED, JOB_EXIT_PREEMPTED, sentence);
        return;
    }
    if (job->phase != PHASE_JOIN) {
        disband(core, job, DISMISSED_SUPERSEDED);
    }
    preempt_move(job, PREEMPT_REQUEUES);
    job->finished = 0;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        job_task(core, job, slot)->finished = false;
        task_vacate(core, job, slot);
    }
    job_due(core, job, DUE_REQUEUE);
    CADRE_ASSERT(job->preempt == PREEMPT_REQUEUES);
}

void preempted_requeue(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->waiting + job->alive + job->gone == job->tasks);
    if (job->preempt != PREEMPT_REQUEUES || job->waiting < job->tasks) {
        return;
    }
    CADRE_ASSERT(job->task_groups == 0 && job->roster == 0 && job->phase == PHASE_JOIN);
    job_move(core, job, JOB_QUEUED);
    preempt_move(job, PREEMPT_NOT);
    job->saves = false;
    job->reason[0] = '\0';
    job->early_slot = NONE;
    job->silent = 0;
    job->counted = false;
    job->excused = false;
    drain_note(core, job, false);
    job->followed.code = CADRE_OK;
    ps_job_restart(core, job);
    underfilled_reopen(core, job);
    underfilled_note(core, job);
    queue_add(core, job);
    core->placement_due = true;
    job_due(core, job, DUE_QUEUED | DUE_CHANGED);
    CADRE_ASSERT(job->state == JOB_QUEUED && !job->underfilled && !job->draining);
}

/* Rule 17: bye when all reported S and the checkpoint of S is published. */
void preempted_halted(struct core *core, struct job *job)
{
    if (job->phase != PHASE_RUN || job->halt_kind != HALT_STOP || job->reported < job->roster ||
        job->finished > 0 || job->outcome != 0) {
        return;
    }
    if (!job->has_checkpoint || job->checkpoint.position != job->halt_at) {
        uint64_t due_us = core->now_us + core->options.collect_us;
        if (job->deadlines[DEADLINE_PREEMPT] < due_us && !job->saves) {
            job->saves = true;
            /* Saving may take longer than the steps until the stop. */
            preempt_ends_by(core, job, due_us);
        }
        return;
    }
    job->finished_position = job->halt_at;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        task->finished = task->rank != NONE;
        job->finished += task->finished;
    }
    phase_move(job, PHASE_DONE);
    preempt_move(job, PREEMPT_SAVED);
    preempt_note(job);
    deadlines_clear(core, job);
    preempt_ends_by(core, job, core->now_us + core->options.grace_us);
    joiners_dismiss(core, job);
    underfilled_note(core, job);
    job_due(core, job, DUE_CONSUMED | DUE_DONE | DUE_PS_JOB | DUE_CHANGED);
    CADRE_ASSERT(job->finished == job->roster);
    CADRE_ASSERT(job->preempt == PREEMPT_SAVED);
}
