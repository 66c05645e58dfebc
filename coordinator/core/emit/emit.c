/* SPDX-License-Identifier: Apache-2.0
 * Turns what is due of a job into records and messages, in a fixed order. turn/ calls it once a
 * turn for each job. Records with `sync` are durable before any message is sent (section 4 of the
 * protocol). */
#include "coordinator/core/emit/emit.h"

#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static void emit_start(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->state == JOB_STARTING || job->outcome != 0);
    CADRE_ASSERT(job->initial > 0);
    /* Section 4: incarnations are durable before start is sent. */
    record_add(core, job, CORE_RECORD_STARTED, true)->incarnation_max = job->incarnation_max;
    action_add(core, CORE_ACTION_START_JOB)->job = job->id;
}

static void emit_queued(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_JOIN && job->roster == 0); /* placed again already, maybe */
    CADRE_ASSERT(job->gone == 0);
    record_add(core, job, CORE_RECORD_QUEUED, false);
    if (ps_job_is_set(&job->ps_job)) {
        action_add(core, CORE_ACTION_FORGET_JOB)->forget_job.job = job->id;
    }
}

/* A stop at position 0: its tasks are ended without being saved, and their exits are no failures.
 */
static void emit_unsaved(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_CONTROL, true);
    CADRE_ASSERT(job->phase == PHASE_JOIN || job->outcome != 0);
    record->control.generation = job->generation;
    record->control.halt_kind = HALT_STOP;
}

static void emit_consumed(struct core *core, struct job *job)
{
    bool done = job->phase == PHASE_DONE;
    CADRE_ASSERT(job->generation.number > 0);
    sample_audit_record(core, job, done, done ? job->finished_position : job->applied.least);
}

/* A job that begins again from it reports no epoch that ended before it. */
static void emit_published(struct core *core, struct job *job)
{
    uint64_t applied = job->applied.least;
    CADRE_ASSERT(job->has_checkpoint);
    applied = job->checkpoint.position > applied ? job->checkpoint.position : applied;
    sample_audit_record(core, job, true, applied);
    record_add(core, job, CORE_RECORD_CHECKPOINT, true)->checkpoint = job->checkpoint;
}

static void send_plan(struct core *core, struct job *job)
{
    /* Section 4: the plan is durable before it is sent, with the truncation. */
    struct core_record *record = record_add(core, job, CORE_RECORD_PLAN, true);
    CADRE_ASSERT(job->generation.number > 0);
    CADRE_ASSERT(job->roster > 0 || job->phase == PHASE_JOIN);
    record->plan.generation = job->generation;
    record->plan.parent = job->parent;
    record->plan.resume = job->resume;
    record->plan.restarts = job->restarts;
    record->plan.restarted = job->restarted;
    notify_job(core, job, CORE_MESSAGE_PLAN);
}

static void emit_halt(struct core *core, struct job *job)
{
    /* Section 4: a control is durable before the first release that carries it. */
    struct core_record *record = record_add(core, job, CORE_RECORD_CONTROL, true);
    CADRE_ASSERT((job->halt_kind == HALT_NONE) == (job->halt_at == POSITION_NONE));
    record->control.generation = job->generation;
    record->control.halt_at = job->halt_at;
    record->control.halt_kind = job->halt_kind;
    record->control.halt_stream = job->halt_stream;
}

/* A halt for joiners is set where the run is known, so while they wait nothing behind is released.
 */
static uint64_t releasable(const struct job *job)
{
    uint64_t up_to = job->arrived.least < job->halt_at ? job->arrived.least : job->halt_at;
    uint64_t known = timeline_known(job);
    return job->joiners > 0 && !job->plain && known < up_to ? known : up_to;
}

/* Rule 2: the release is the lowest arrival of the whole roster. Rule 3: it is the full state, sent
 * whenever a part of it changed, and not beyond a halt. Its record is written before it is sent;
 * the fsync may lag, because reports outrank it. */
static void send_release(struct core *core, struct job *job)
{
    uint64_t up_to = releasable(job);
    bool again = (job->due & DUE_RELEASE_RESEND) != 0;
    bool rises = up_to > job->released;
    if (job->phase != PHASE_RUN || (!rises && !again)) {
        return;
    }
    if (rises) {
        job->released = up_to;
        health_step_begun(core, job);
    }
    if (rises || job->raised) {
        struct core_record *record = record_add(core, job, CORE_RECORD_WATERMARK, false);
        record->watermark.generation = job->generation;
        record->watermark.up_to = job->released;
        (void)timeline_at(job, job->released - 1, &record->watermark.cursor);
        job->raised = false;
    }
    notify_job(core, job, CORE_MESSAGE_RELEASE);
    CADRE_ASSERT(job->released <= job->halt_at);
    CADRE_ASSERT(job->released >= job->resume);
}

/* After the release that covers it. */
static void emit_verified(struct core *core, struct job *job)
{
    if (job->verified.digest != 0) { /* else a plan has cut it off */
        record_add(core, job, CORE_RECORD_VERIFIED, false)->verified = job->verified;
    }
}

static void emit_done(struct core *core, struct job *job)
{
    /* Section 4: done is durable before bye. Rules 16 and 17: bye goes to members only. */
    struct core_record *record = record_add(core, job, CORE_RECORD_DONE, true);
    CADRE_ASSERT(job->phase == PHASE_DONE || job->outcome != 0);
    CADRE_ASSERT(job->finished > 0 || job->outcome != 0);
    record->done.generation = job->generation;
    record->done.position = job->finished_position;
    notify_job(core, job, CORE_MESSAGE_GOODBYE);
}

static void emit_members(struct core *core, struct job *job)
{
    const struct task *chief = job_task(core, job, 0);
    if (!ps_job_members_known(job) || ps_job_delays_members(core, job)) {
        return;
    }
    if ((job->due & DUE_MEMBERS) != 0) {
        notify_job(core, job, CORE_MESSAGE_MEMBERS);
        return;
    }
    uint32_t worker = task_is_usable(chief) && chief->joined
                          ? job_task_group(core, job, chief->task_group)->worker
                          : NONE;
    if (worker != NONE && core->workers[worker].link.n != 0) { /* else after its next hello */
        ps_job_send_members(core, job, 0);
    }
}

static void emit_goodbye_workers(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->ps_shutdown != PS_SHUTDOWN_NONE);
    notify_job(core, job, CORE_MESSAGE_GOODBYE_WORKERS);
}

static void emit_goodbye_servers(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->ps_shutdown == PS_SHUTDOWN_SERVERS);
    notify_job(core, job, CORE_MESSAGE_GOODBYE_SERVERS);
}

static void send_abort(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outcome != 0 || job->reason[0] != '\0');
    notify_job(core, job, CORE_MESSAGE_ABORT);
}

static void emit_ending(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_ENDING, true);
    CADRE_ASSERT(job_state_is_final(job->outcome));
    CADRE_ASSERT(job->text[0] != '\0');
    record->ended.state = job->outcome;
    record->ended.code = job->code;
    record->ended.exit_code = job->exit_code;
    memcpy(record->ended.text, job->text, sizeof(record->ended.text));
}

static void emit_stop(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->stopped);
    CADRE_ASSERT(job->fresh == NONE && job->agains == 0);
    action_add(core, CORE_ACTION_STOP_JOB)->job = job->id;
}

static void emit_changed(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->id.n != 0);
    action_add(core, CORE_ACTION_JOB_CHANGED)->job = job->id;
}

static const struct {
    uint32_t due;
    void (*emit)(struct core *core, struct job *job);
} emissions[] = {
    {DUE_UNSAVED, emit_unsaved},
    {DUE_QUEUED, emit_queued},
    {DUE_START, emit_start},
    {DUE_PUBLISH, emit_published},
    {DUE_PLAN, send_plan},
    {DUE_HALT, emit_halt},
    {DUE_RELEASE | DUE_RELEASE_RESEND, send_release},
    {DUE_VERIFIED, emit_verified},
    {DUE_CONSUMED, emit_consumed},
    {DUE_MEMBERS | DUE_MEMBERS_CHIEF, emit_members},
    {DUE_DONE, emit_done},
    {DUE_GOODBYE_WORKERS, emit_goodbye_workers},
    {DUE_GOODBYE_SERVERS, emit_goodbye_servers},
    {DUE_ENDING, emit_ending},
    {DUE_ABORT, send_abort},
};
_Static_assert(
    SAMPLE_AUDITS_MAX + 2 * 6 + 9 <= ACTIONS_PER_JOB_MAX, "all of it and the end fit one round");

void emit_due(struct core *core, struct job *job)
{
    CADRE_ASSERT(actions_left(core) >= ACTIONS_PER_JOB_MAX);
    for (size_t i = 0; i < CADRE_COUNT_OF(emissions); i++) {
        if ((job->due & emissions[i].due) != 0) {
            emissions[i].emit(core, job);
            job->due &= ~emissions[i].due;
        }
    }
}

void emit_last(struct core *core, struct job *job)
{
    CADRE_ASSERT((job->due & DUE_OUTCOMES) == 0);
    /* The start of a task is sent before its stop. */
    if ((job->due & DUE_STOP) != 0 && job->fresh == NONE && job->agains == 0) {
        emit_stop(core, job);
        job->due &= ~(uint32_t)DUE_STOP;
    }
    if ((job->due & DUE_CHANGED) != 0) {
        emit_changed(core, job);
        job->due &= ~(uint32_t)DUE_CHANGED;
    }
    CADRE_ASSERT((job->due & DUE_CHANGED) == 0);
}
