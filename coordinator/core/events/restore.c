/* SPDX-License-Identifier: Apache-2.0
 * A start of the coordinator: live jobs from the store. Tasks compute meanwhile (protocol, rule
 * 22). Each worker that has some is expected, by its name and for a lease; tasks that its hello
 * lists are adopted, the others are lost, and so are all tasks of a worker that does not come back.
 * turn/core.c calls this. */
#include "coordinator/core/events/events.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/barrier.h"
#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/divergence.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

/* Ends a job that does not fit the core. */
static void restore_end(struct core *core, struct job_id job, const char *sentence)
{
    struct core_record *record = &action_add(core, CORE_ACTION_RECORD)->record;
    struct text text = text_begin(record->ended.text, sizeof(record->ended.text));
    CADRE_ASSERT(job.n > core->job_last);
    record->type = CORE_RECORD_ENDED;
    record->sync = true;
    record->job = job;
    record->ended.state = JOB_FAILED;
    record->ended.code = CADRE_UNAVAILABLE;
    record->ended.exit_code = 1;
    text_add(&text, sentence);
    action_add(core, CORE_ACTION_JOB_ENDED)->job = job;
    core->job_last = job.n;
}

static uint32_t expected_worker(struct core *core, const char *name)
{
    uint32_t worker = worker_by_name(core, name);
    return worker != NONE ? worker : worker_expect(core, name);
}

/* Puts the task in its slot. It is not known whether an exited one is collected: its worker lists
 * it if it is not. One whose worker does not fit counts as lost. */
static void restore_task(
    struct core *core, struct job *job, const struct core_restore_task *restore)
{
    struct task *task = job_task(core, job, restore->slot);
    uint32_t worker = restore->lost ? NONE : expected_worker(core, restore->worker);
    CADRE_ASSERT(task->state == TASK_WAITING);
    if (worker == NONE) {
        task->incarnation = restore->incarnation;
        ps_job_restore_attempts(job, task, restore);
        return;
    }
    core->workers[worker].slots++;
    task_assign(core, job, restore->slot, worker, restore->incarnation);
    ps_job_restore_attempts(job, task, restore);
    task->adopted = true;
    if (restore->rank != NONE && !restore->gone) {
        task_move(job, task, TASK_RUNNING);
    }
    if (restore->gone) {
        task_move(job, task, TASK_EXITED);
        if (job->generation.number == 0 && !task_is_ps_task(task) && job->silent++ == 0) {
            job->silent_slot = restore->slot;
        }
    }
    CADRE_ASSERT(task->task_group != NONE);
}

/* Ranks whose member is gone get slots outside the generation, each its own, so that no task finds
 * itself at another rank of a plan that is sent again. */
static void restore_empty_slots(const struct core *core, struct job *job)
{
    uint32_t *members = core->members + job->first;
    uint32_t slot = 0;
    CADRE_ASSERT(job->roster <= job->tasks);
    for (uint32_t rank = 0; rank < job->roster; rank++) {
        if (members[rank] != NONE) {
            continue;
        }
        while (job_task(core, job, slot)->rank != NONE) {
            slot++;
        }
        members[rank] = slot++;
    }
}

/* The roster of the newest plan, as far as its members may still run. After bye exited members
 * count too. */
static void restore_roster(
    struct core *core, struct job *job, const struct core_restore_job *restore)
{
    uint32_t *members = core->members + job->first;
    uint32_t roster = restore->roster;
    for (size_t i = 0; i < restore->task_count; i++) {
        uint32_t rank = restore->tasks[i].rank;
        roster = rank != NONE && rank >= roster ? rank + 1 : roster;
    }
    CADRE_ASSERT(roster <= job->tasks);
    job->roster = roster;
    for (uint32_t rank = 0; rank < roster; rank++) {
        members[rank] = NONE;
    }
    for (size_t i = 0; i < restore->task_count; i++) {
        const struct core_restore_task *from = &restore->tasks[i];
        struct task *task = job_task(core, job, from->slot);
        bool member = task->state != TASK_WAITING && (task_is_usable(task) || restore->done);
        if (from->rank != NONE && member) {
            members[from->rank] = from->slot;
            task_add_to_roster(core, job, from->slot, from->rank);
        }
        if (from->rank != NONE && restore->done) { /* also tasks that were lost since */
            task->finished = true;
            job->finished++;
        }
    }
    restore_empty_slots(core, job);
    CADRE_ASSERT(job->present <= job->roster);
}

static void restore_ledger(
    struct core *core, struct job *job, const struct core_restore_job *restore)
{
    CADRE_ASSERT(job->present > 0);
    barrier_open(core, job);
    health_progress(core, job, 0);
    barrier_raise(core, job, restore->released);
    job->raised = false;
    job->due &= ~(uint32_t)DUE_RELEASE_RESEND;
    if (restore->has_control && !restore->ending) { /* else it reaches no halt */
        job->halt_at = restore->halt_at;
        job->halt_kind = restore->halt_kind;
        job->halt_stream = restore->halt_stream;
    }
    for (size_t i = 0; i < restore->stream_count; i++) {
        const struct stream_position *stream = &restore->streams[i];
        if (stream->stream > 0 && stream->stream <= LIMIT_STREAMS) {
            job->streams[stream->stream - 1] = *stream;
            job->streams_recorded |= UINT64_C(1) << (stream->stream - 1);
        }
    }
    CADRE_ASSERT(job->released >= job->resume);
}

/* It was being stopped, or failed after bye: it ends so. */
static void restore_ending(
    struct core *core, struct job *job, const struct core_restore_job *restore)
{
    struct text text = text_begin(job->text, sizeof(job->text));
    CADRE_ASSERT(job->outcome == 0);
    job->outcome = restore->ending_as.state;
    job->code = restore->ending_as.code;
    job->exit_code = restore->ending_as.exit_code;
    text_add(&text, restore->ending_as.text);
    job->stopped = !restore->done || job->outcome == JOB_CANCELLED;
    if (job->stopped) {
        job_move(core, job, JOB_ENDING);
        if (job->phase == PHASE_RUN) {
            phase_move(job, PHASE_REGROUP);
        }
    }
    job_due(core, job, DUE_TASK_GONE);
    CADRE_ASSERT(job_state_is_final(job->outcome));
}

/* Members ended while the coordinator was down, or before: the generation cannot go on. */
static void restore_regroup(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->present < job->roster);
    text_add_u64(&text, job->roster - job->present);
    text_add(&text, " of ");
    text_count(&text, job->roster, "task", "tasks");
    text_add(&text, " had ended when the coordinator was started again");
    job->excused = true;
    generation_abort(core, job, sentence, true);
    deadline_set(core, job, DEADLINE_REPORT,
        core->now_us + core->options.lease_us + core->options.report_us);
    CADRE_ASSERT(generation_is_broken(job));
}

/* No member is left, so joiners have no generation to join: all are started again. */
static void restore_restart(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    job->restart_all = job->generation.number > 0;
    job->roster = 0;
    ps_job_restart(core, job);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        if (task_is_usable(job_task(core, job, slot))) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
    CADRE_ASSERT(job->usable == 0);
}

static void restore_started(
    struct core *core, struct job *job, const struct core_restore_job *restore)
{
    CADRE_ASSERT(job->state == JOB_QUEUED);
    CADRE_ASSERT(restore->started);
    queue_remove(core, job);
    job_move(core, job, JOB_STARTING);
    if (restore->generation.number > 0) {
        job_move(core, job, JOB_RUNNING);
    }
    job->incarnation_max = restore->incarnation_max;
    job->restarts = restore->restarts;
    job->generation = restore->generation;
    job->resume = restore->resume;
    job->initial = restore->task_count > 0 && !ps_job_is_set(&job->ps_job)
                       ? (uint32_t)restore->task_count
                       : job->tasks;
    for (size_t i = 0; i < restore->task_count; i++) {
        CADRE_ASSERT(restore->tasks[i].slot < job->tasks);
        restore_task(core, job, &restore->tasks[i]);
    }
    preempt_restore(job, restore);
    restore_roster(core, job, restore);
    bool ended = job->preempt == PREEMPT_UNSAVED;
    bool left = (job->present > 0 || restore->done) && !ended;
    if (restore->generation.number > 0 && left) {
        phase_move(job, PHASE_RUN);
        if (restore->done) {
            phase_move(job, PHASE_DONE);
        }
        job->finished_position = restore->done_position;
        if (job->present > 0) {
            restore_ledger(core, job, restore);
        } else {
            job->released = restore->released; /* done, and all have exited */
        }
    }
    if (restore->done) {
        joiners_dismiss(core, job);
    }
    if (restore->ending) {
        if (!left) {
            job->roster = 0;
            job->restart_all = restore->generation.number > 0;
        }
        restore_ending(core, job, restore);
    } else if ((restore->generation.number > 0 && !left) || ended) {
        restore_restart(core, job);
    } else if (job->phase == PHASE_RUN) {
        divergence_restored(core, job);
        if (job->present < job->roster && job->outcome == 0 && !job->diverged) {
            restore_regroup(core, job);
        }
    }
    fallback_restored(core, job);
    if (job->outcome == 0) {
        time_limit_arm(core, job, restore->ran_us);
    }
    drain_restored(core, job);
    preempt_resume(core, job);
    ps_tasks_restored(core, job);
    if (job->phase == PHASE_DONE || job->phase == PHASE_JOIN) {
        job_due(core, job, DUE_TASK_GONE);
    }
    underfilled_note(core, job);
    job_due(core, job, DUE_REGROUP | DUE_CHANGED);
    CADRE_ASSERT(job->state != JOB_QUEUED);
}

void restore_job(struct core *core, const struct core_restore_job *restore)
{
    char sentence[LIMIT_TEXT_BYTES];
    const struct core_job_spec *spec = &restore->spec;
    bool sound = spec->tasks > 0 && spec->tasks_min > 0 && spec->tasks_min <= spec->tasks &&
                 restore->task_count <= spec->tasks && ps_job_fits(spec);
    CADRE_ASSERT(restore->job.n > core->job_last);
    if (!sound || !job_fits(core, spec->tasks, sentence)) {
        restore_end(core, restore->job,
            "the coordinator was restarted with limits that do not hold this job");
        return;
    }
    struct job *job = job_create(core, restore->job, spec);
    job->has_checkpoint = restore->has_checkpoint;
    job->checkpoint = restore->checkpoint;
    verified_restore(job, restore);
    published_restore(job, restore);
    job->diverged_last = restore->diverged;
    if (restore->started) {
        restore_started(core, job, restore);
    } else if (restore->incarnation_max > 0) { /* it was queued again */
        job->incarnation_max = restore->incarnation_max;
        job->restarts = restore->restarts;
        job->generation = restore->generation;
        job->restart_all = restore->generation.number > 0;
        time_limit_arm(core, job, restore->ran_us);
    }
}

void restore_done(struct core *core, const struct core_restore_done *done)
{
    if (done->job_max > core->job_last) {
        core->job_last = done->job_max;
    }
    CADRE_ASSERT(core->job_last >= done->job_max);
}
