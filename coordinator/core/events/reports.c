/* SPDX-License-Identifier: Apache-2.0
 * Reports of frozen members: their position, and why they froze. A report that names another
 * generation than the job's is dropped (protocol, rules 6 and 13). task_lifecycle.c calls this. */
#include "coordinator/core/events/generation.h"

#include "coordinator/core/events/failure.h"
#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/divergence.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

static void report_finished(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    struct task *task = job_task(core, job, slot);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(task->rank != NONE && task->reported);
    if (task->finished) {
        return;
    }
    bool beyond = report->position > job->released &&
                  (job->unconfirmed == 0 || !barrier_may_rise(job, report->position));
    if (!report->clean || beyond) {
        task_name(core, job, slot, &text);
        text_add(&text, " called cadre_finish at position ");
        text_add_u64(&text, report->position);
        text_add(&text, report->clean ? ", of which only " : " with a step half applied; ");
        text_add_u64(&text, job->released);
        text_add(&text, " steps were released");
        job_fail(core, job, CADRE_INTERNAL, 1, sentence);
        return;
    }
    if (job->finished > 0 && job->finished_position != report->position) {
        task_name(core, job, job->finished_slot, &text);
        text_add(&text, " called cadre_finish at position ");
        text_add_u64(&text, job->finished_position);
        text_add(&text, ", ");
        task_name(core, job, slot, &text);
        text_add(&text, " at position ");
        text_add_u64(&text, report->position);
        text_add(&text, ": the programs took different paths");
        job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
        return;
    }
    if (report->position > job->released) {
        barrier_raise(core, job, report->position);
    }
    if (job->roster == 1 && job->wanted > report->position) {
        /* The step that it began has failed, and no other task waits for it. */
        job->wanted = report->position;
    }
    if (job->finished == 0) {
        job->finished_slot = slot;
        job->finished_position = report->position;
    }
    /* Rule 17: bye needs the report of every member at one position. */
    task->finished = true;
    job->finished++;
    CADRE_ASSERT(job->finished <= job->roster);
    if (!barrier_check_finished(core, job) && !divergence_compare(core, job)) {
        uint32_t finish = job->finished == job->roster ? DUE_FINISH : 0u;
        uint32_t part = job->has_part ? DUE_PART : 0u;
        job_due(core, job, finish | part);
    }
    CADRE_ASSERT(job->finished > 0 && job->finished <= job->roster);
}

/* Rule 31: a report that is not of the pending halt is not orderly. Either the member lost its
 * peers and no death is known, or an earlier coordinator sent abort. A member that came to a halt
 * before it received that it was lifted is not a failure of the job. */
static void report_unordered(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool lifted = report->reason == REPORT_HALT;
    CADRE_ASSERT(job->phase == PHASE_RUN);
    CADRE_ASSERT(report->reason != REPORT_FINISHED && report->reason != REPORT_FAILED);
    task_name(core, job, slot, &text);
    text_add(&text, lifted ? " stood before step " : " lost its peers in step ");
    text_add_u64(&text, report->position);
    if (lifted) {
        text_add(&text, " when that halt was lifted");
    } else if (report->text != NULL && report->text[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, report->text);
    }
    job->excused |= lifted;
    if (job->early_slot != NONE) {
        failure_early(core, job);
    } else {
        generation_abort(core, job, sentence, true);
    }
    CADRE_ASSERT(job->outcome != 0 || generation_is_broken(job));
}

/* The program's function failed, or the programs differ: a regroup would not help. */
static void report_failed(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    bool is_ps_task = task_is_ps_task(job_task(core, job, slot));
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool has_text = report->text != NULL && report->text[0] != '\0';
    CADRE_ASSERT(report->reason == REPORT_FAILED);
    task_name(core, job, slot, &text);
    text_add(&text, is_ps_task ? " failed" : " failed in step ");
    if (!is_ps_task) {
        text_add_u64(&text, report->position);
    }
    text_add(&text, has_text ? ": " : "");
    text_add(&text, has_text ? report->text : "");
    job_fail(core, job, report->code == CADRE_OK ? CADRE_INTERNAL : report->code, 1, sentence);
}

void report_handle(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    struct task *task = job_task(core, job, slot);
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_REGROUP;
    bool current = generation_equal(report->generation, job->generation);
    CADRE_ASSERT(task_is_usable(task));
    if (task_is_ps_task(task)) { /* it takes part in no step */
        if (report->reason == REPORT_FAILED && job->phase != PHASE_DONE && task->joined) {
            report_failed(core, job, slot, report);
        }
        return;
    }
    /* Rules 6 and 13. But a program that failed ends the job also when the next generation is
     * planned already, because it may have exited before it could fail in that one. */
    if ((!current && report->reason != REPORT_FAILED) || task->rank == NONE || !runs ||
        !task->joined || job->outcome != 0) {
        return;
    }
    if (report->reason == REPORT_FAILED && current && job->halt_kind == HALT_STOP &&
        report->position == job->halt_at) {
        preempt_unsaved(core, job, report->text); /* saving failed, nothing else */
        return;
    }
    if (report->reason == REPORT_FAILED) {
        report_failed(core, job, slot, report);
        return;
    }
    task_reports(job, task, report);
    if (report->reason == REPORT_DIVERGED) {
        divergence_reported(core, job, slot, report);
        job_due(core, job, DUE_REGROUP);
    } else if (job->phase == PHASE_REGROUP) { /* Rule 31: a plan follows, whatever the reason. */
        job_due(core, job, DUE_REGROUP);
    } else if (report->reason == REPORT_FINISHED) {
        report_finished(core, job, slot, report);
    } else if (!halt_met(job, report)) { /* Rule 31. */
        report_unordered(core, job, slot, report);
    } else if (job->halt_kind == HALT_STOP) { /* Rule 17: bye when all are there and it is saved. */
        (void)divergence_compare(core, job);
        job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    } else { /* Rule 20: a plan with the joiners when all are there. */
        barrier_wants(core, job, slot, report->position + 1);
        health_halted(core, job);
        (void)divergence_compare(core, job);
        job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    }
}
