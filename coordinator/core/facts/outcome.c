/* SPDX-License-Identifier: Apache-2.0
 * How a job ends: the first reason counts. */
#include "coordinator/core/facts/outcome.h"

#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/states.h"

bool outcome_all_exited(const struct job *job)
{
    return job->phase == PHASE_RUN && job->present == 0 && !generation_is_broken(job);
}

bool outcome_never_joined(const struct job *job)
{
    CADRE_ASSERT(job->refilled <= job->gone);
    return job->phase == PHASE_JOIN && job->generation.number == 0 &&
           (ps_job_is_set(&job->ps_job) ? job->silent > 0
                                        : job->gone - job->refilled == job->initial);
}

bool outcome_is_success(const struct job *job)
{
    return job->outcome == 0 && job->alive == 0 && job->preempt == PREEMPT_NOT &&
           (outcome_all_exited(job) || outcome_never_joined(job) || job->phase == PHASE_DONE);
}

void outcome_set(struct core *core, struct job *job, enum job_state outcome, cadre_status code,
    int32_t exit_code, const char *sentence)
{
    struct text text = text_begin(job->text, sizeof(job->text));
    CADRE_ASSERT((outcome == JOB_SUCCEEDED) == (code == CADRE_OK));
    CADRE_ASSERT((outcome == JOB_SUCCEEDED) == (exit_code == 0));
    CADRE_ASSERT(sentence[0] != '\0');
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(job_state_is_final(outcome));
    job->outcome = outcome;
    job->code = code;
    job->exit_code = exit_code;
    text_add(&text, sentence);
    underfilled_note(core, job);
    job_due(core, job, DUE_CHANGED | (job->state == JOB_QUEUED ? 0u : DUE_ENDING));
    CADRE_ASSERT(!job->underfilled);
}

void job_stops(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome != 0);
    CADRE_ASSERT(job->state == JOB_STARTING || job->state == JOB_RUNNING);
    job->stopped = true;
    deadlines_clear(core, job);
    job_due(core, job, DUE_FAILED);
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_STALL) && !deadline_armed(job, DEADLINE_REPORT));
}

void job_fail(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *text)
{
    CADRE_ASSERT(code != CADRE_OK);
    CADRE_ASSERT(text[0] != '\0');
    if (job->outcome != 0) {
        return;
    }
    outcome_set(core, job, JOB_FAILED, code, exit_code, text);
    if (job->phase != PHASE_DONE) {
        job_stops(core, job);
    } /* else the others have finished too and are about to exit by themselves */
}
