/* SPDX-License-Identifier: Apache-2.0
 * A generation at its end: the reason, until when its members are asked to report, and until when
 * the job waits for others. events/ and decide/ call this. */
#include "coordinator/core/facts/abort.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

void abort_set_reason(struct job *job, const char *sentence, bool guess)
{
    struct text text = text_begin(job->reason, sizeof(job->reason));
    CADRE_ASSERT(sentence[0] != '\0');
    text_add(&text, sentence);
    job->guess = guess;
    job->grows = false;
}

/* After a start of the coordinator a member without a hello may take a lease to come back. */
static uint64_t wait_timeout_us(const struct core *core, const struct job *job)
{
    const struct core_options *options = &core->options;
    bool awaited = job->unconfirmed > 0 && options->lease_us > options->report_us;
    CADRE_ASSERT(job->unconfirmed <= job->present);
    return awaited ? options->lease_us : options->report_us;
}

/* Members are to report until then. */
static void abort_ask(struct core *core, struct job *job, uint64_t until_us)
{
    CADRE_ASSERT(until_us > core->now_us);
    job->aborted_us = core->now_us;
    deadline_set(core, job, DEADLINE_REPORT, until_us);
}

/* A member that had reported has to report again. A deadline that is set stays, though it may be
 * earlier. If none is set, as while the job waits for others, this member gets one: for as long as
 * its worker may be away, and as it may take to report when that is back. */
void abort_ask_again(struct core *core, struct job *job)
{
    CADRE_ASSERT(generation_is_broken(job));
    if (job->outcome == 0 && !deadline_armed(job, DEADLINE_REPORT)) {
        abort_ask(core, job, core->now_us + core->options.lease_us + core->options.report_us);
    }
}

void generation_abort(struct core *core, struct job *job, const char *sentence, bool guess)
{
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_REGROUP;
    if (job->outcome != 0 || !runs || generation_is_void(job)) {
        return;
    }
    if (!generation_is_broken(job)) {
        deadlines_clear(core, job);
        abort_set_reason(job, sentence, guess);
        abort_ask(core, job, core->now_us + wait_timeout_us(core, job));
        job_due(core, job, DUE_BREAK);
    } else if (job->guess && !guess) {
        abort_set_reason(job, sentence, false);
    }
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    CADRE_ASSERT(generation_is_broken(job) && (job->due & DUE_REGROUP) != 0);
}

/* Too few tasks: the job waits for others, up to job.wait_us. */
void abort_arm_wait(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(job->phase != PHASE_DONE);
    if (!deadline_armed(job, DEADLINE_WAIT)) {
        job->waits_us = core->now_us;
        deadline_set(core, job, DEADLINE_WAIT, core->now_us + job->wait_us);
        job_due(core, job, DUE_CHANGED);
    }
    CADRE_ASSERT(deadline_armed(job, DEADLINE_WAIT));
}

/* Rule 21: members that have not reported are lost. If that leaves no state, it waits out the lease
 * first, because all work since the checkpoint would be done again. Then it waits for members that
 * are silent with their worker, as long as silence.c does (rewind patience). A plain job goes on
 * from no member, so it waits for none. */
void abort_report_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint64_t until_us = job->aborted_us + core->options.lease_us;
    bool named = false;
    bool stateless = !job->plain && resume_point_find(core, job).source == NONE;
    bool waits = false;
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_REPORT));
    if (job->phase != PHASE_REGROUP || job->reported == job->present) {
        return;
    }
    if (until_us > core->now_us && stateless) {
        deadline_set(core, job, DEADLINE_REPORT, until_us);
        return;
    }
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (!task_is_usable(task) || task->rank == NONE || task->reported) {
            continue;
        }
        if (stateless &&
            !lease_is_alive(core, job_task_group(core, job, task->task_group)->worker)) {
            waits = true;
            continue;
        }
        if (!named) {
            task_name(core, job, slot, &text);
            text_add(&text, " did not answer for ");
            text_time(&text, core->now_us - job->aborted_us);
            named = true;
        }
        task_dismiss(core, job, slot, DISMISSED_SILENT);
    }
    CADRE_ASSERT(named || waits);
    if (waits) {
        deadline_set(core, job, DEADLINE_REPORT, core->now_us + core->options.lease_us);
    }
    if (named) {
        generation_abort(core, job, sentence, false);
    }
}

void abort_wait_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool placed = job->usable >= job->tasks_min;
    uint32_t left = job->phase == PHASE_JOIN ? job->ready : job->present;
    CADRE_ASSERT(job->outcome == 0);
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_WAIT));
    if (ps_job_is_set(&job->ps_job)) {
        ps_tasks_wait_timeout(core, job);
        return;
    }
    if (left == 0) {
        text_add(&text, "none");
    } else {
        text_add_u64(&text, left);
    }
    text_add(&text, " of ");
    text_count(&text, job->tasks_min, "task", "tasks");
    text_add(&text, left > 1 ? " are left, and no " : " is left, and no ");
    text_add(&text, placed ? "other joined within " : "place for another was found within ");
    text_time(&text, job->wait_us);
    if (job->reason[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, job->reason);
    }
    job_fail(core, job, CADRE_UNAVAILABLE, 1, sentence);
}
