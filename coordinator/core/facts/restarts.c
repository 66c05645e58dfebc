/* SPDX-License-Identifier: Apache-2.0
 * Failures that a job survives: they are counted, and restarts without a step are delayed. */
#include "coordinator/core/facts/outcome.h"

#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/text_format.h"

/* The pause before a restart without a step between: doubled each time. */
#define BACKOFF_MIN_US        UINT64_C(100000)
#define BACKOFF_MAX_US        UINT64_C(10000000)
#define BACKOFF_DOUBLINGS_MAX 8

/* A program that fails before it takes a step fails again: each pause is longer. The first restart
 * is at once, and so is each after a step, or after running as long as the longest pause. */
static void back_off(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->restarts > 0 && job->restarts <= job->max_restarts);
    if (job->formed && core->now_us - job->progress_us >= BACKOFF_MAX_US) {
        job->restarts_without_step = 0; /* its steps are long, or it is a ps job that takes none */
    }
    job->formed = false;
    if (job->restarts_without_step++ == 0) {
        return;
    }
    uint32_t doublings = job->restarts_without_step - 2;
    uint64_t pause_us = BACKOFF_MAX_US;
    if (doublings < BACKOFF_DOUBLINGS_MAX && BACKOFF_MIN_US << doublings < BACKOFF_MAX_US) {
        pause_us = BACKOFF_MIN_US << doublings;
    }
    deadline_set(core, job, DEADLINE_BACKOFF, core->now_us + pause_us);
    underfilled_note(core, job);
    CADRE_ASSERT(pause_us >= BACKOFF_MIN_US && pause_us <= BACKOFF_MAX_US);
}

void restarts_step_applied(struct core *core, struct job *job)
{
    if (job->formed && job->restarts_without_step > 0) {
        job->restarts_without_step = 0;
        deadline_clear(core, job, DEADLINE_BACKOFF);
    }
}

void restarts_waited(struct core *core, struct job *job)
{
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_BACKOFF));
    underfilled_note(core, job);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
}

bool restarts_count(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *sentence)
{
    char whole[LIMIT_TEXT_BYTES];
    struct text text = text_begin(whole, sizeof(whole));
    CADRE_ASSERT(code != CADRE_OK);
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(sentence[0] != '\0');
    if (job->restarts < job->max_restarts) {
        job->restarts++;
        back_off(core, job);
        return true;
    }
    text_add(&text, sentence);
    if (job->restarts > 0) {
        text_add(&text, "; it was restarted ");
        text_count(&text, job->restarts, "time before", "times before");
        text_add(&text, ", as often as it may be (--max-restarts)");
    }
    job_fail(core, job, code, exit_code, whole);
    return false;
}
