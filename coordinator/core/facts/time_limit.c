/* SPDX-License-Identifier: Apache-2.0
 * A job's time limit. It counts from the job's first placement, over restarts of tasks and of the
 * coordinator and over preemptions, with the wait for other machines. When it is over the job is
 * preempted, with its state saved, and ends as FAILED. A job that has finished, or has nothing to
 * save, is stopped as it is, and a queued one is removed from the queue. */
#include "coordinator/core/facts/preempt.h"

#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/text_format.h"

void time_limit_arm(struct core *core, struct job *job, uint64_t ran_us)
{
    CADRE_ASSERT(job->outcome == 0);
    if (job->time_limit_us > 0) {
        uint64_t left_us = ran_us < job->time_limit_us ? job->time_limit_us - ran_us : 0;
        deadline_set(core, job, DEADLINE_LIMIT, core->now_us + left_us);
    }
    CADRE_ASSERT(job->time_limit_us == 0 || deadline_armed(job, DEADLINE_LIMIT));
}

static void time_limit_text(const struct job *job, struct text *text)
{
    CADRE_ASSERT(job->time_limit_us > 0);
    text_add(text, "ran longer than its --time-limit of ");
    text_span(text, job->time_limit_us);
}

void time_limit_fail(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->over_time_limit);
    time_limit_text(job, &text);
    if (job->has_checkpoint && !core->options.forgets_jobs) {
        text_add(&text, "; saved at step ");
        text_add_u64(&text, job->checkpoint.position);
        text_add(&text, ", where --restore ");
        text_add_u64(&text, job->id.n);
        text_add(&text, " goes on");
    }
    outcome_set(core, job, JOB_FAILED, CADRE_DEADLINE_EXCEEDED, 1, sentence);
}

void time_limit_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->time_limit_us > 0);
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_LIMIT));
    CADRE_ASSERT(!job->over_time_limit);
    if (job->outcome != 0 || job->state == JOB_ENDING) {
        return;
    }
    time_limit_text(job, &text);
    job->over_time_limit = true;
    if (job->state == JOB_QUEUED) {
        core->queue_head_known = false;
        job_due(core, job, DUE_CHANGED); /* turn/turn.c ends it, and it is not placed until then */
        return;
    }
    if (job->phase == PHASE_DONE && job->preempt == PREEMPT_NOT) {
        time_limit_fail(core, job);
        job_stops(core, job); /* its programs had finished, and did not exit */
        return;
    }
    preempt_time_limit(core, job, sentence);
}

bool time_limit_in_queue(const struct job *job)
{
    CADRE_ASSERT(!job->over_time_limit || job->time_limit_us > 0);
    return job->over_time_limit && job->state == JOB_QUEUED;
}
