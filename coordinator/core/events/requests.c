/* SPDX-License-Identifier: Apache-2.0
 * Requests of clients: submit, cancel, checkpoint, drain. turn/core.c calls one for each such
 * event, and each is answered in the same step. */
#include "coordinator/core/events/events.h"

#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/text_format.h"

#define EXIT_CODE_CANCELLED 130 /* as after an interrupt */

/* "a job has 1 to 16384 tasks, not 0"; false: the spec is valid. */
static bool spec_is_wrong(const struct core_job_spec *spec, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    CADRE_ASSERT(spec->gpus <= LIMIT_GPUS_PER_WORKER);
    if (!ps_job_fits(spec)) {
        text_add(&text, "a job with parameter servers has one task for each role, which are ");
        text_add_u64(&text, ps_job_task_count(&spec->ps_job));
        text_add(&text, ", and at least one worker");
        return true;
    }
    if (spec->tasks == 0 || spec->tasks > LIMIT_TASKS_PER_JOB) {
        text_add(&text, "a job has 1 to ");
        text_add_u64(&text, LIMIT_TASKS_PER_JOB);
        text_add(&text, " tasks, not ");
        text_add_u64(&text, spec->tasks);
        return true;
    }
    if (spec->tasks_min == 0 || spec->tasks_min > spec->tasks) {
        text_add(&text, "a job of at most ");
        text_count(&text, spec->tasks, "task", "tasks");
        text_add(&text, " needs between 1 and that many, not ");
        text_add_u64(&text, spec->tasks_min);
        return true;
    }
    return false;
}

void job_submit(struct core *core, const struct core_submit *submit)
{
    const struct job_id none = {0};
    char sentence[LIMIT_TEXT_BYTES];
    if (spec_is_wrong(&submit->spec, sentence)) {
        call_answer(core, submit->call, CADRE_INVALID_ARGUMENT, none, 0, sentence);
        return;
    }
    if (core->job_seen > core->job_last) {
        struct text text = text_begin(sentence, sizeof(sentence));
        behind_text(core, (struct job_id){core->job_seen}, &text);
        text_add(&text, ", or drop that state, and then start it again");
        call_answer(core, submit->call, CADRE_FAILED_PRECONDITION, none, 0, sentence);
        return;
    }
    if (!job_fits(core, submit->spec.tasks, sentence)) {
        call_answer(core, submit->call, CADRE_RESOURCE_EXHAUSTED, none, 0, sentence);
        return;
    }
    struct job_id id = {.n = core->job_last + 1};
    struct job *job = job_create(core, id, &submit->spec);
    struct core_record *record = record_add(core, job, CORE_RECORD_JOB, true);
    record->submitted.spec = submit->spec;
    record->submitted.restores = submit->restores;
    if (submit->restores) {
        job->has_checkpoint = true;
        job->checkpoint = submit->checkpoint;
        record->submitted.checkpoint = submit->checkpoint;
    }
    struct text note = text_begin(job->note, sizeof(job->note));
    text_add(&note, submit->note != NULL ? submit->note : "");
    call_answer(core, submit->call, CADRE_OK, id, queue_before(core, job), job->note);
    job_due(core, job, DUE_CHANGED);
    CADRE_ASSERT(core->job_last == id.n);
    CADRE_ASSERT(core->queue.count > 0);
}

void job_cancel(struct core *core, const struct core_cancel *cancel)
{
    struct job *job = job_find(core, cancel->job);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_add(&text, "job ");
    text_add_u64(&text, cancel->job.n);
    if (job == NULL) {
        bool was = cancel->job.n > 0 && cancel->job.n <= core->job_last;
        text_add(&text, was ? " has ended already" : " does not exist: `cadre jobs` lists them");
        call_answer(core, cancel->call, was ? CADRE_FAILED_PRECONDITION : CADRE_NOT_FOUND,
            cancel->job, 0, sentence);
        return;
    }
    if (job->state == JOB_ENDING && job->outcome == JOB_CANCELLED) {
        call_answer(core, cancel->call, CADRE_OK, cancel->job, 0, ""); /* the request, repeated */
        return;
    }
    if (job->state == JOB_ENDING) {
        text_add(&text, " is ending already");
        call_answer(core, cancel->call, CADRE_FAILED_PRECONDITION, cancel->job, 0, sentence);
        return;
    }
    core->relists |= behind_is(job);
    if (job->outcome == 0) {
        outcome_set(core, job, JOB_CANCELLED, CADRE_CANCELLED, EXIT_CODE_CANCELLED, "cancelled");
    }
    if (job->state == JOB_QUEUED) {
        job_due(core, job, DUE_TASK_GONE);
    } else {
        job_stops(core, job);
    }
    CADRE_ASSERT(core->cancel.call.n == 0);
    core->cancel = *cancel; /* answered after the record of the end */
}

void checkpoint_now(struct core *core, const struct core_checkpoint_now *asked)
{
    struct job *job = job_find(core, asked->job);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_add(&text, "job ");
    text_add_u64(&text, asked->job.n);
    if (job == NULL) {
        bool was = asked->job.n > 0 && asked->job.n <= core->job_last;
        text_add(&text, was ? " has ended already" : " does not exist: `cadre jobs` lists them");
        call_answer(core, asked->call, was ? CADRE_FAILED_PRECONDITION : CADRE_NOT_FOUND,
            asked->job, 0, sentence);
        return;
    }
    if (behind_is(job)) {
        call_answer(core, asked->call, CADRE_FAILED_PRECONDITION, asked->job, 0, job->note);
        return;
    }
    if (job->phase == PHASE_RUN && job->unconfirmed == 0) { /* Rule 4. */
        job->checkpoint_asked |= job->checkpoint_at == POSITION_NONE;
        preempt_control(core, job);
    }
    bool stops = job->phase == PHASE_RUN && job->halt_kind == HALT_STOP; /* the stop saves it */
    if (!stops && job->checkpoint_at == POSITION_NONE) {
        text_add(&text, " is between two generations, or at its end: try again in a moment");
        job->checkpoint_asked = false;
        call_answer(core, asked->call, CADRE_FAILED_PRECONDITION, asked->job, 0, sentence);
        return;
    }
    call_answer(core, asked->call, CADRE_OK, asked->job, 0, "");
}

static void worker_undrain(struct core *core, const struct core_drain *drain)
{
    const struct job_id none = {0};
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    const char *name = drain->drained.worker;
    const struct core_drained *known = drain_of(core, name);
    uint32_t worker = worker_by_name(core, name);
    CADRE_ASSERT(drain->ends);
    if (known == NULL) {
        bool leaves = worker != NONE && core->workers[worker].leaves;
        text_add(&text, "no client drained a worker named ");
        text_add(&text, name);
        text_add(&text, leaves ? ": its daemon is ending, and takes tasks when it is started again"
                               : ": `cadre workers` lists those that are drained");
        call_answer(core, drain->call, CADRE_NOT_FOUND, none, 0, sentence);
        return;
    }
    drain_record(core, known, CORE_RECORD_UNDRAINED);
    core->drains[known - core->drains] = core->drains[--core->drain_count];
    if (worker != NONE) {
        core->workers[worker].drained = false;
        drain_ends(core, worker);
    }
    call_answer(core, drain->call, CADRE_OK, none, 0, "");
    CADRE_ASSERT(drain_of(core, drain->drained.worker) == NULL);
}

void worker_drain(struct core *core, const struct core_drain *drain)
{
    const struct job_id none = {0};
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    const struct core_drained *drained = &drain->drained;
    uint32_t worker = worker_by_name(core, drained->worker);
    bool again = drain_of(core, drained->worker) != NULL;
    if (drain->ends) {
        worker_undrain(core, drain);
        return;
    }
    if (worker == NONE && !again) {
        text_add(&text, "no worker is named ");
        text_add(&text, drained->worker);
        text_add(&text, ": `cadre workers` lists them");
        call_answer(core, drain->call, CADRE_NOT_FOUND, none, 0, sentence);
        return;
    }
    if (!drain_has_room(core, drained->worker)) {
        text_add(&text, "as many workers are drained as may join: end a drain with `cadre undrain`,"
                        " or raise --workers-max");
        call_answer(core, drain->call, CADRE_RESOURCE_EXHAUSTED, none, 0, sentence);
        return;
    }
    drain_asked(core, drained);
    call_answer(core, drain->call, CADRE_OK, none, 0, "");
}
