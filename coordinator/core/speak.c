/* SPDX-License-Identifier: Apache-2.0
 * Turns what jobs have to say into actions, in a fixed order, as far as the step's list has room.
 * What does not fit is said by the next step; core_wake_us() asks for it at once. Jobs take turns,
 * so that one with much to say does not keep the others from their releases. */
#include "coordinator/core/parts.h"

static struct core_action *tell(struct core *core, const struct job *job, enum core_tell what)
{
    struct core_action *action = action_add(core, CORE_ACTION_TELL_JOB);
    action->tell_job.job = job->id;
    action->tell_job.tell = what;
    action->tell_job.generation = job->generation;
    if (what == CORE_TELL_ABORT) {
        const char *why = job->outcome != 0 ? job->text : job->reason;
        memcpy(action->tell_job.reason, why, sizeof(action->tell_job.reason));
    }
    return action;
}

static void say_start(struct core *core, struct job *job)
{
    record_add(core, job, CORE_RECORD_STARTED, true)->incarnation_max = job->incarnation_max;
    action_add(core, CORE_ACTION_START_JOB)->job = job->id;
}

static void say_queued(struct core *core, struct job *job)
{
    record_add(core, job, CORE_RECORD_QUEUED, false);
    if (crew_is(&job->crew)) {
        action_add(core, CORE_ACTION_FORGET_JOB)->forget_job.job = job->id;
    }
}

/* Its tasks are told to end because of this, which is no failure of theirs. */
static void say_unsaved(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_CONTROL, true);
    record->control.generation = job->generation;
    record->control.halt_kind = HALT_STOP;
}

static void say_feeds(struct core *core, struct job *job)
{
    bool done = job->phase == PHASE_DONE;
    proof_record(core, job, done, done ? job->finished_position : job->applied.least);
}

static void say_published(struct core *core, struct job *job)
{
    record_add(core, job, CORE_RECORD_CHECKPOINT, true)->checkpoint = job->checkpoint;
}

static void say_plan(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_PLAN, true);
    record->plan.generation = job->generation;
    record->plan.parent = job->parent;
    record->plan.resume = job->resume;
    record->plan.restarts = job->restarts;
    record->plan.restarted = job->restarted;
    tell(core, job, CORE_TELL_PLAN);
}

static void say_halt(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_CONTROL, true);
    record->control.generation = job->generation;
    record->control.halt_at = job->halt_at;
    record->control.halt_kind = job->halt_kind;
    record->control.halt_stream = job->halt_stream;
}

/* The release is recorded and said in the same breath; its fsync may lag, because reports outrank
 * it. Nothing is released beyond a halt. It is the full state: said again when any part of it
 * changed. */
static void say_release(struct core *core, struct job *job)
{
    uint64_t up_to = job->arrived.least < job->halt_at ? job->arrived.least : job->halt_at;
    bool again = (job->due & DUE_RELEASE_AGAIN) != 0;
    bool rises = up_to > job->released;
    if (job->phase != PHASE_RUN || (!rises && !again)) {
        return;
    }
    if (rises) {
        job->released = up_to;
    }
    if (rises || job->raised) {
        struct core_record *record = record_add(core, job, CORE_RECORD_WATERMARK, false);
        record->watermark.generation = job->generation;
        record->watermark.up_to = job->released;
        (void)line_at(job, job->released - 1, &record->watermark.cursor);
        job->raised = false;
    }
    tell(core, job, CORE_TELL_RELEASE);
}

static void say_done(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_DONE, true);
    record->done.generation = job->generation;
    record->done.position = job->finished_position;
    tell(core, job, CORE_TELL_BYE);
}

static void say_members(struct core *core, struct job *job)
{
    const struct task *chief = job_task(core, job, 0);
    if (!crew_speaks(job) || crew_holds_back(core, job)) {
        return;
    }
    if ((job->due & DUE_MEMBERS) != 0) {
        tell(core, job, CORE_TELL_MEMBERS);
        return;
    }
    uint32_t worker =
        chief->usable && chief->joined ? job_party(core, job, chief->party)->worker : NONE;
    if (worker != NONE && core->workers[worker].link.n != 0) { /* else its next hello is answered */
        crew_tell(core, job, 0);
    }
}

static void say_bye_crew(struct core *core, struct job *job)
{
    tell(core, job, CORE_TELL_BYE_CREW);
}

static void say_bye_servers(struct core *core, struct job *job)
{
    tell(core, job, CORE_TELL_BYE_SERVERS);
}

static void say_abort(struct core *core, struct job *job)
{
    tell(core, job, CORE_TELL_ABORT);
}

static void say_ending(struct core *core, struct job *job)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_ENDING, true);
    record->ended.state = job->outcome;
    record->ended.code = job->code;
    record->ended.exit_code = job->exit_code;
    memcpy(record->ended.text, job->text, sizeof(record->ended.text));
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
    uint32_t due;
    void (*say)(struct core *core, struct job *job);
} sayings[] = {
    {DUE_UNSAVED, say_unsaved},
    {DUE_QUEUED, say_queued},
    {DUE_START, say_start},
    {DUE_PUBLISH, say_published},
    {DUE_PLAN, say_plan},
    {DUE_HALT, say_halt},
    {DUE_RELEASE | DUE_RELEASE_AGAIN, say_release},
    {DUE_FEEDS, say_feeds},
    {DUE_MEMBERS | DUE_MEMBERS_CHIEF, say_members},
    {DUE_DONE, say_done},
    {DUE_BYE_CREW, say_bye_crew},
    {DUE_BYE_SERVERS, say_bye_servers},
    {DUE_ENDING, say_ending},
    {DUE_ABORT, say_abort},
};
_Static_assert(
    PROOFS_MAX + 2 * 6 + 8 <= ACTIONS_PER_JOB_MAX, "all of it and the end fit one round");

void speak_to_task(struct core *core, const struct job *job, uint32_t slot,
    enum task_down_type type, cadre_status code, const char *sentence)
{
    uint32_t worker = job_party(core, job, job_task(core, job, slot)->party)->worker;
    struct core_action *action = action_add(core, CORE_ACTION_TELL_TASK);
    struct text text = text_begin(action->tell_task.text, sizeof(action->tell_task.text));
    CADRE_ASSERT(worker != NONE);
    action->tell_task.link = core->workers[worker].link;
    action->tell_task.task = job_task_ref(core, job, slot);
    action->tell_task.type = type;
    action->tell_task.code = code;
    text_add(&text, sentence);
}

void speak_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan)
{
    enum core_tell tells[3];
    uint32_t count = 0;
    uint32_t worker = job_party(core, job, job_task(core, job, slot)->party)->worker;
    bool has_news =
        job->released > job->resume || job->halt_kind != HALT_NONE || job->has_checkpoint;
    CADRE_ASSERT(worker != NONE);
    /* What is still due will be said to all of them. */
    if (job->phase == PHASE_RUN && (job->due & DUE_PLAN) == 0) {
        if (!knows_plan) {
            tells[count++] = CORE_TELL_PLAN;
        }
        if (has_news) {
            tells[count++] = CORE_TELL_RELEASE;
        }
    } else if (job->phase == PHASE_COLLECT && (job->due & DUE_ABORT) == 0) {
        if (!knows_plan) {
            tells[count++] = CORE_TELL_PLAN; /* else it could not report in that generation */
        }
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

/* ---- what is said task by task, as there is room ---- */

/* The place that a task was given; then its worker may be told to start it. */
static void record_fresh(struct core *core, struct job *job)
{
    uint32_t slot = job->fresh;
    struct task *task = job_task(core, job, slot);
    uint32_t worker = job_party(core, job, task->party)->worker;
    CADRE_ASSERT(task->unplaced);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK, true);
    record->task.slot = slot;
    record->task.incarnation = task->incarnation;
    record->task.lives = task->lives;
    record->task.lives_in = task->lives_in;
    record->task.backed_by = task->backed.by;
    job->fresh = task->next_fresh;
    task->unplaced = false;
    if (worker != NONE) {
        memcpy(record->task.worker, core->workers[worker].name, sizeof(record->task.worker));
        party_again(core, job, task->party);
    }
    task_vacate(core, job, slot);
}

static void record_lost(struct core *core, struct job *job)
{
    uint32_t slot = job->lost;
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->state == TASK_LOST);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK_EXIT, false);
    struct text text = text_begin(record->task_exit.exit.text, sizeof(record->task_exit.exit.text));
    record->task_exit.slot = slot;
    record->task_exit.incarnation = task->incarnation;
    record->task_exit.state = TASK_LOST;
    text_add(&text, task->dismissed == DISMISSED_NOT ? "" : "it was not wanted any more, and ");
    text_add(&text, "its worker was lost: nobody knows how it ended");
    job->lost = task->next_lost;
    task->unsaid = false;
    CADRE_ASSERT(core->unsaid > 0);
    core->unsaid--;
    task_vacate(core, job, slot);
}

/* One that is away hears it when it says hello. */
static void stop_dismissed(struct core *core, struct job *job)
{
    uint32_t slot = job->dismissed;
    struct task *task = job_task(core, job, slot);
    uint32_t worker = job_party(core, job, task->party)->worker;
    bool alive = task->state == TASK_STARTING || task->state == TASK_RUNNING;
    job->dismissed = task->next_dismissed;
    task->unstopped = false;
    if (!alive || worker == NONE || core->workers[worker].state != WORKER_CONNECTED) {
        task_vacate(core, job, slot);
        return;
    }
    if (task->joined && task->dismissed != DISMISSED_SILENT) {
        speak_to_task(core, job, slot,
            task->dismissed == DISMISSED_RESET ? TASK_DOWN_RESET : TASK_DOWN_SUPERSEDED,
            CADRE_ABORTED, "the job goes on without this task");
    }
    struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
    action->stop_task.link = core->workers[worker].link;
    action->stop_task.task = job_task_ref(core, job, slot);
}

/* To a worker that may not have got the start of all its tasks. */
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

/* Whether all that wait for steps of a stream that is over are told. Who is away is when it is
 * back.
 */
static bool warm_again(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        if (!task->outdated) {
            continue;
        }
        if (actions_left(core) <= ACTIONS_PER_JOB_MAX) {
            return false;
        }
        uint32_t worker = job_party(core, job, task->party)->worker;
        task->outdated = false;
        if (task->usable && worker != NONE && core->workers[worker].state == WORKER_CONNECTED) {
            speak_to_task(core, job, slot, TASK_DOWN_WARM, CADRE_OK, "");
        }
    }
    job->outdated = false;
    return true;
}

/* Whether all of it is said. In this order: a place is recorded before its task is started, a task
 * is started before it is told to end, and a slot is empty again only when nothing is left to be
 * said of its last task. */
static bool speak_of_tasks(struct core *core, struct job *job)
{
    while (job->fresh != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_fresh(core, job);
    }
    if (job->fresh != NONE) {
        return false;
    }
    for (uint32_t i = 0; i < job->parties && job->agains > 0; i++) {
        struct party *party = job_party(core, job, i);
        if (party->again && actions_left(core) > ACTIONS_PER_JOB_MAX) {
            start_again(core, job, party);
        }
    }
    if (job->agains > 0) {
        return false;
    }
    while (job->dismissed != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        stop_dismissed(core, job);
    }
    while (job->lost != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_lost(core, job);
    }
    if (job->outdated && !warm_again(core, job)) {
        return false;
    }
    return job->dismissed == NONE && job->lost == NONE;
}

/* What is decided once a turn adds to what is to be said. */
static void decide(struct core *core, struct job *job)
{
    uint32_t due = job->due;
    job->due &= ~(uint32_t)DUE_REGROUP;
    if ((due & DUE_REGROUP) != 0) {
        regroup_decide(core, job);
    }
    due = job->due;
    job->due &= ~(uint32_t)DUE_CONTROL;
    if ((due & DUE_CONTROL) != 0) {
        control_consider(core, job);
    }
    due = job->due;
    job->due &= ~(uint32_t)DUE_CREW;
    if ((due & DUE_CREW) != 0) {
        crew_consider(core, job);
    }
}

/* Whether the job has said all. It may be forgotten afterwards. */
static bool speak_job(struct core *core, struct job *job)
{
    CADRE_ASSERT(actions_left(core) >= ACTIONS_PER_JOB_MAX);
    decide(core, job);
    for (size_t i = 0; i < CADRE_COUNT_OF(sayings); i++) {
        if ((job->due & sayings[i].due) != 0) {
            sayings[i].say(core, job);
            job->due &= ~sayings[i].due;
        }
    }
    bool told = speak_of_tasks(core, job);
    /* A worker must have been told to start a task before it is told to end it. */
    if ((job->due & DUE_STOP) != 0 && job->fresh == NONE && job->agains == 0) {
        say_stop(core, job);
        job->due &= ~(uint32_t)DUE_STOP;
    }
    if ((job->due & DUE_CHANGED) != 0) {
        say_changed(core, job);
        job->due &= ~(uint32_t)DUE_CHANGED;
    }
    if (!told) {
        return false;
    }
    if (overtime_in_queue(job) && job->due == 0 && actions_left(core) >= 3) {
        overtime_leaves_queue(core, job);
        return true;
    }
    if (!ending_complete(job)) {
        return job->due == 0 && !overtime_in_queue(job);
    }
    CADRE_ASSERT(actions_left(core) >= 3);
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
        /* With so many left each job that speaks comes on. */
    } while (core->place_due && actions_left(core) > ACTIONS_PER_JOB_MAX);
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
