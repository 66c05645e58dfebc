/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/watch.h"

static struct watched_job *job_of(struct watch *watch, struct job_id id)
{
    assert_true(id.n > 0 && id.n < WATCH_JOBS);
    return &watch->jobs[id.n];
}

static bool worker_drains(const struct core *core, struct worker_id id)
{
    struct core_worker_view worker;
    uint32_t cursor = 0;
    while (core_worker_next(core, &cursor, &worker)) {
        if (worker.worker.n == id.n) {
            return worker.draining;
        }
    }
    return false;
}

/* A member that the core counts as alive, and that was not stopped, failed, and the job may not go
 * on without it. */
static void on_task_gone(
    struct watch *watch, const struct core *core, const struct agent_task_gone *gone)
{
    struct core_job_view job;
    struct core_task_view task;
    if (!core_job(core, gone->task.job, &job) || gone->task.slot >= job.tasks ||
        (gone->exit.code | gone->exit.signal) == 0) {
        return;
    }
    core_job_task(core, gone->task.job, gone->task.slot, &task);
    struct watched_job *watched = job_of(watch, gone->task.job);
    bool ours = task.incarnation == gone->task.incarnation && !task.has_exit && task.link.n != 0;
    bool member = job.generation.number == 0 || task.rank != UINT32_MAX;
    bool notified = watched->stopped[gone->task.slot] == gone->task.incarnation;
    if (ours && member && !notified && watched->max_restarts == 0 &&
        !worker_drains(core, task.worker)) {
        watched->failing = true;
    }
}

void watch_event(struct watch *watch, const struct core *core, const struct core_event *event)
{
    if (event->type == CORE_EVENT_AGENT_UP && event->agent.up->type == AGENT_UP_TASK_GONE) {
        on_task_gone(watch, core, &event->agent.up->gone);
    } else if (event->type == CORE_EVENT_SUBMIT && event->submit.call.n != 0) {
        watch->asked[event->submit.call.n]++;
    } else if (event->type == CORE_EVENT_DRAIN && event->drain.call.n != 0) {
        watch->asked[event->drain.call.n]++;
    } else if (event->type == CORE_EVENT_CANCEL && event->cancel.call.n != 0) {
        watch->asked[event->cancel.call.n]++;
    }
}

static void on_control(struct watched_job *job, const struct core_record *record)
{
    assert_true(record->sync && !job->done);
    assert_true(generation_equal(record->control.generation, job->generation));
    if (record->control.halt_kind == HALT_STOP && record->control.halt_at == 0) {
        return; /* preempted, and nothing is saved */
    }
    assert_true(job->planned && record->control.halt_at >= job->watermark);
    job->halt_at = record->control.halt_at;
}

static void on_ended(struct watch *watch, struct watched_job *job, const struct core_record *record)
{
    assert_true(record->sync && job->submitted);
    assert_true(record->ended.text[0] != '\0');
    assert_true(job->ending == job->started);
    assert_true((record->ended.state == JOB_SUCCEEDED) == (record->ended.exit_code == 0));
    assert_true((record->ended.state == JOB_SUCCEEDED) == (record->ended.code == CADRE_OK));
    if (record->ended.state == JOB_SUCCEEDED) {
        assert_false(job->failing);
        watch->succeeded++;
    }
    job->ended = true;
}

static bool is_of_no_job(const struct core_record *record)
{
    return record->type == CORE_RECORD_DRAINED || record->type == CORE_RECORD_UNDRAINED ||
           record->type == CORE_RECORD_CULPRIT;
}

static void on_record(struct watch *watch, const struct core_record *record)
{
    if (is_of_no_job(record)) {
        assert_true(record->sync);
        return;
    }
    struct watched_job *job = job_of(watch, record->job);
    assert_false(job->ended);
    switch (record->type) {
    case CORE_RECORD_JOB:
        assert_true(record->sync && !job->submitted);
        job->submitted = true;
        job->max_restarts = record->submitted.spec.max_restarts;
        watch->live++;
        break;
    case CORE_RECORD_STARTED:
        assert_true(record->sync && job->submitted && !job->started);
        job->started = true;
        break;
    default:
        assert_true(false); /* the engine's */
    case CORE_RECORD_QUEUED:
        assert_true(job->started);
        job->started = false;
        job->done = false;
        break;
    case CORE_RECORD_TASK:
    case CORE_RECORD_BACKED:
        assert_true(record->sync && job->started);
        break;
    case CORE_RECORD_CONTROL:
        on_control(job, record);
        break;
    case CORE_RECORD_CONSUMED:
        assert_true(job->planned && record->consumption.consumption.steps > 0);
        break;
    case CORE_RECORD_STREAM:
    case CORE_RECORD_TASK_EXIT:
        assert_true(job->started);
        break;
    case CORE_RECORD_ENDING:
        assert_true(record->sync && job->started && !job->ending);
        job->ending = true;
        break;
    case CORE_RECORD_PLAN:
        assert_true(record->sync && job->started && !job->done);
        assert_true(record->plan.generation.number > job->generation.number);
        assert_true(record->plan.generation.nonce != 0);
        job->planned = true;
        job->generation = record->plan.generation;
        job->watermark = record->plan.resume;
        job->halt_at = POSITION_NONE;
        break;
    case CORE_RECORD_WATERMARK:
        assert_true(job->planned && !job->done);
        assert_true(generation_equal(record->watermark.generation, job->generation));
        assert_true(record->watermark.up_to > job->watermark);
        assert_true(record->watermark.up_to <= job->halt_at);
        job->watermark = record->watermark.up_to;
        break;
    case CORE_RECORD_END_OF_DATA:
        assert_true(job->planned && record->end_of_data.steps > 0);
        break;
    case CORE_RECORD_CHECKPOINT:
        assert_true(record->sync && job->planned);
        assert_true(record->checkpoint.position <= job->watermark);
        break;
    case CORE_RECORD_VERIFIED:
        assert_true(job->planned && record->verified.position <= job->watermark);
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
    case CORE_RECORD_ORIGIN:
    case CORE_RECORD_PUBLISHED:
    case CORE_RECORD_DIVERGED:
        assert_true(record->sync);
        break;
    case CORE_RECORD_DONE:
        assert_true(record->sync && job->planned && !job->done);
        assert_true(record->done.position <= job->watermark);
        job->done = true;
        break;
    case CORE_RECORD_ENDED:
        on_ended(watch, job, record);
        break;
    }
}

static void on_relay_down(
    struct watch *watch, const struct core *core, const struct core_action *action)
{
    struct watched_job *job = job_of(watch, action->notify_job.job);
    struct core_job_view view;
    assert_true(job->planned && !job->gone);
    assert_true(generation_equal(action->notify_job.generation, job->generation));
    assert_true(action->notify_job.one == (action->notify_job.link.n != 0));
    if (action->notify_job.message == CORE_MESSAGE_RELEASE &&
        core_job(core, action->notify_job.job, &view)) {
        /* Recorded in the same turn, before any message of it is sent. */
        job->relay_up = view.released;
    }
    if (action->notify_job.message == CORE_MESSAGE_GOODBYE) {
        assert_true(job->done);
    }
    assert_true(
        (action->notify_job.message == CORE_MESSAGE_ABORT) == (action->notify_job.reason[0] != 0));
}

/* The task is stopped; else it answers an agent that names another one. */
static void on_task_stop(
    struct watch *watch, const struct core *core, struct link_id link, const struct task_ref *ref)
{
    struct core_job_view job;
    struct core_task_view task;
    assert_true(link.n != 0);
    if (!core_job(core, ref->job, &job) || ref->slot >= job.tasks) {
        return;
    }
    assert_true(ref->slot < WATCH_SLOTS);
    core_job_task(core, ref->job, ref->slot, &task);
    if (task.incarnation == ref->incarnation && task.link.n == link.n) {
        job_of(watch, ref->job)->stopped[ref->slot] = ref->incarnation;
    }
}

static void receive(struct watch *watch, const struct core *core, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_RECORD:
        on_record(watch, &action->record);
        break;
    case CORE_ACTION_ANSWER:
        assert_int_equal(watch->asked[action->answer.call.n], 1);
        watch->asked[action->answer.call.n] = 2;
        assert_true((action->answer.code == CADRE_OK) == (action->answer.text[0] == '\0'));
        break;
    case CORE_ACTION_WELCOME:
        assert_true(action->welcome.link.n != 0 && action->welcome.worker.n != 0);
        assert_int_equal(action->welcome.protocol, AGENT_PROTOCOL_VERSION);
        break;
    case CORE_ACTION_REFUSE:
        assert_true(action->refuse.code != CADRE_OK && action->refuse.text[0] != '\0');
        break;
    case CORE_ACTION_START_JOB:
        assert_true(job_of(watch, action->job)->started && !job_of(watch, action->job)->gone);
        break;
    case CORE_ACTION_STOP_JOB:
        assert_true(job_of(watch, action->job)->started && !job_of(watch, action->job)->gone);
        break;
    case CORE_ACTION_START_TASKS:
        assert_true(job_of(watch, action->start_tasks.job)->started);
        assert_true(action->start_tasks.link.n != 0);
        break;
    case CORE_ACTION_STOP_TASK:
        on_task_stop(watch, core, action->stop_task.link, &action->stop_task.task);
        break;
    case CORE_ACTION_NOTIFY_JOB:
        on_relay_down(watch, core, action);
        break;
    case CORE_ACTION_NOTIFY_TASK:
        assert_true(action->notify_task.link.n != 0);
        assert_true(
            (action->notify_task.code == CADRE_OK) == (action->notify_task.type == TASK_DOWN_WARM));
        break;
    case CORE_ACTION_FORGET_JOB:
        assert_false(job_of(watch, action->forget_job.job)->gone);
        break;
    case CORE_ACTION_JOB_CHANGED:
        assert_false(job_of(watch, action->job)->gone);
        break;
    case CORE_ACTION_JOB_ENDED:
        assert_true(job_of(watch, action->job)->ended && !job_of(watch, action->job)->gone);
        job_of(watch, action->job)->gone = true;
        watch->live--;
        watch->ended++;
        break;
    }
}

void watch_actions(struct watch *watch, const struct core *core, const struct core_event *event,
    const struct core_actions *actions)
{
    assert_true(actions->count <= CORE_ACTIONS_PER_STEP_MAX);
    for (size_t i = 0; i < actions->count; i++) {
        receive(watch, core, &actions->items[i]);
    }
    for (size_t i = 0; i < actions->count; i++) {
        const struct core_action *action = &actions->items[i];
        if (action->type == CORE_ACTION_NOTIFY_JOB &&
            action->notify_job.message == CORE_MESSAGE_RELEASE) {
            const struct watched_job *job = job_of(watch, action->notify_job.job);
            assert_true(job->relay_up <= job->watermark);
        }
    }
    watch->actions += actions->count;
    /* Every call is answered within its step. */
    if (event->type == CORE_EVENT_SUBMIT && event->submit.call.n != 0) {
        assert_int_equal(watch->asked[event->submit.call.n], 2);
    } else if (event->type == CORE_EVENT_CANCEL && event->cancel.call.n != 0) {
        assert_int_equal(watch->asked[event->cancel.call.n], 2);
    }
}
