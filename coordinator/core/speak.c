/* SPDX-License-Identifier: Apache-2.0
 * Turns what jobs have to say into actions, in a fixed order, as far as the step's list has room.
 * What does not fit is said by the next step; core_wake_us() asks for it at once. Jobs take turns,
 * so that one with much to say does not keep the others from their releases. */
#include "coordinator/core/state.h"

static struct core_action *tell(struct core *core, const struct job *job, enum core_tell what)
{
    struct core_action *action = action_add(core, CORE_ACTION_TELL_JOB);
    action->tell_job.job = job->id;
    action->tell_job.tell = what;
    action->tell_job.generation = job->generation;
    if (what == CORE_TELL_ABORT) {
        memcpy(action->tell_job.reason, job->text, sizeof(action->tell_job.reason));
    }
    return action;
}

static void say_start(struct core *core, struct job *job)
{
    record_add(core, job, CORE_RECORD_STARTED, true)->incarnation_max = job->incarnation_max;
    action_add(core, CORE_ACTION_START_JOB)->job = job->id;
}

static void say_plan(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_PLAN, true);
    record->plan.generation = job->generation;
    record->plan.parent = job->parent;
    record->plan.resume = job->resume;
    tell(core, job, CORE_TELL_PLAN);
}

/* The release is recorded and said in the same breath; its fsync may lag, because reports outrank
 * it. */
static void say_release(struct core *core, struct job *job)
{
    if (job->phase != PHASE_RUN || job->arrived.least <= job->released) {
        return;
    }
    job->released = job->arrived.least;
    struct core_record *record = record_add(core, job, CORE_RECORD_WATERMARK, false);
    record->watermark.generation = job->generation;
    record->watermark.up_to = job->released;
    record->watermark.cursor = line_at(job, job->released - 1);
    tell(core, job, CORE_TELL_RELEASE);
}

static void say_done(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_DONE, true);
    record->done.generation = job->generation;
    record->done.position = job->finished_position;
    tell(core, job, CORE_TELL_BYE);
}

static void say_abort(struct core *core, struct job *job)
{
    tell(core, job, CORE_TELL_ABORT);
}

static void say_stop(struct core *core, struct job *job)
{
    action_add(core, CORE_ACTION_STOP_JOB)->job = job->id;
}

static void say_changed(struct core *core, struct job *job)
{
    action_add(core, CORE_ACTION_JOB_CHANGED)->job = job->id;
}

static const struct {
    enum due due;
    void (*say)(struct core *core, struct job *job);
} sayings[] = {
    {DUE_START, say_start},
    {DUE_PLAN, say_plan},
    {DUE_RELEASE, say_release},
    {DUE_DONE, say_done},
    {DUE_ABORT, say_abort},
    {DUE_STOP, say_stop},
    {DUE_CHANGED, say_changed},
};
_Static_assert(
    2 * CADRE_COUNT_OF(sayings) + 2 <= ACTIONS_PER_JOB_MAX, "all of it and the end fit one round");

void speak_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan)
{
    enum core_tell tells[2];
    uint32_t count = 0;
    uint32_t worker = job_party(core, job, job_task(core, job, slot)->party)->worker;
    CADRE_ASSERT(worker != NONE);
    /* What is still due will be said to all of them. */
    if (job->phase == PHASE_RUN && (job->due & DUE_PLAN) == 0) {
        if (!knows_plan) {
            tells[count++] = CORE_TELL_PLAN;
        }
        if (job->released > job->resume) {
            tells[count++] = CORE_TELL_RELEASE;
        }
    } else if (job->phase == PHASE_COLLECT && (job->due & DUE_ABORT) == 0) {
        tells[count++] = CORE_TELL_ABORT;
    } else if (job->phase == PHASE_DONE && (job->due & DUE_DONE) == 0) {
        tells[count++] = CORE_TELL_BYE;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct core_action *action = tell(core, job, tells[i]);
        action->tell_job.one = true;
        action->tell_job.link = core->workers[worker].link;
        action->tell_job.slot = slot;
    }
}

static void record_lost(struct core *core, struct job *job)
{
    struct task *task = job_task(core, job, job->lost);
    CADRE_ASSERT(task->state == TASK_LOST);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK_EXIT, false);
    struct text text = text_begin(record->task_exit.exit.text, sizeof(record->task_exit.exit.text));
    record->task_exit.slot = job->lost;
    record->task_exit.incarnation = task->incarnation;
    record->task_exit.state = TASK_LOST;
    text_add(&text, "its worker was lost: nobody knows how it ended");
    job->lost = task->next_lost;
}

/* To a worker that came back: it may not have got its start. */
static void start_again(struct core *core, struct job *job, struct party *party)
{
    const struct worker *worker = &core->workers[party->worker];
    party->again = false;
    job->agains--;
    if (worker->state == WORKER_CONNECTED) { /* else its next hello brings it up */
        struct core_action *action = action_add(core, CORE_ACTION_START_AGAIN);
        action->start_again.job = job->id;
        action->start_again.link = worker->link;
    }
}

/* Whether the job has said all. It may be forgotten afterwards. */
static bool speak_job(struct core *core, struct job *job)
{
    CADRE_ASSERT(actions_left(core) >= ACTIONS_PER_JOB_MAX);
    uint32_t due = job->due;
    job->due = 0;
    for (size_t i = 0; i < CADRE_COUNT_OF(sayings); i++) {
        if ((due & sayings[i].due) != 0) {
            sayings[i].say(core, job);
        }
    }
    while (job->lost != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_lost(core, job);
    }
    for (uint32_t i = 0; i < job->parties && job->agains > 0; i++) {
        struct party *party = job_party(core, job, i);
        if (party->again && actions_left(core) > ACTIONS_PER_JOB_MAX) {
            start_again(core, job, party);
        }
    }
    if (job->lost != NONE || job->agains > 0) {
        return false;
    }
    if (!ending_complete(job)) {
        return true;
    }
    CADRE_ASSERT(actions_left(core) >= 2);
    ending_settle(core, job);
    return true;
}

static void speak_jobs(struct core *core)
{
    for (uint32_t turns = core->touched.count;
         turns > 0 && actions_left(core) >= ACTIONS_PER_JOB_MAX; turns--) {
        uint32_t index = list_take(&core->touched);
        struct job *job = &core->jobs[index];
        CADRE_ASSERT(job->touched);
        job->touched = false;
        if (!speak_job(core, job)) {
            job_due(core, job, 0);
        }
    }
}

void speak_run(struct core *core)
{
    do {
        placement_run(core);
        speak_jobs(core);
    } while (core->place_due && actions_left(core) >= ACTIONS_PER_JOB_MAX);
    while (core->stray_count > 0 && actions_left(core) > 0) {
        const struct stray *stray = &core->strays[core->stray_first];
        struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
        action->stop_task.link = stray->link;
        action->stop_task.task = stray->task;
        core->stray_first = (core->stray_first + 1) % STRAYS_MAX;
        core->stray_count--;
    }
}

bool speak_waits(const struct core *core)
{
    return core->touched.count > 0 || core->stray_count > 0 || core->place_due;
}
