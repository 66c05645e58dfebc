/* SPDX-License-Identifier: Apache-2.0
 * The queue and gang placement: the fewest tasks that a job can do with or none, and as many more
 * as there is room for, in strict order (priority, then first come). A job at the head keeps all
 * behind it waiting, so nobody starves. Only a job that asks for more than all slots of the cluster
 * is passed over until enough workers have joined: nobody could tell how long the others would wait
 * for it. Slots are those that have the GPUs which the job asks for; one that asks for none takes
 * any. */
#include "coordinator/core/parts.h"

/* So few are placed one after another; for more, what looking at all workers costs is little for
 * each. */
#define FEW_TASKS 32

uint32_t placement_total(const struct core *core, const struct job *job)
{
    return core->slots_total[job->gpus];
}

uint32_t placement_free(const struct core *core, const struct job *job)
{
    return core->slots_free[job->gpus];
}

/* Free slots of the worker that the job's tasks may have. */
static uint32_t room_on(const struct core *core, uint32_t worker, const struct job *job)
{
    return worker_serves(core, worker, job) ? core->workers[worker].counted_free : 0;
}

/* Taking one slot after another from the worker with most free ones (the oldest worker first among
 * equals) fills from the top: it takes all slots above some level from everybody, and the rest one
 * each at that level. The level is the lowest at which not more than `tasks` are taken. */
static uint32_t fill_level(const struct core *core, const struct job *job, uint32_t tasks)
{
    const struct list *live = &core->workers_live;
    uint32_t low = 0;
    uint32_t high = LIMIT_SLOTS_PER_WORKER;
    while (low < high) {
        uint32_t level = (low + high) / 2;
        uint64_t taken = 0;
        for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
            uint32_t unused = room_on(core, i, job);
            taken += unused > level ? unused - level : 0;
        }
        if (taken <= tasks) {
            high = level;
        } else {
            low = level + 1;
        }
    }
    return low;
}

static uint32_t next_empty(const struct core *core, const struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    while (task->state != TASK_WAITING || task->declined) {
        task = job_task(core, job, ++slot);
    }
    return slot;
}

/* So many slots of one worker. */
struct share {
    uint32_t worker;
    uint32_t slots;
};

static void hand_out(struct core *core, struct job *job, const struct share *share, uint32_t *slot,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    for (uint32_t i = 0; i < share->slots; i++) {
        *slot = next_empty(core, job, *slot);
        task_place(core, job, *slot, share->worker, job->incarnation_max + 1);
        if (placed != NULL) {
            placed(core, job, *slot);
        }
    }
}

/* Of as many tasks as there are workers, or so: all workers are looked at. */
static void spread_many(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    const struct list *live = &core->workers_live;
    uint32_t level = fill_level(core, job, tasks);
    uint64_t above = 0;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        uint32_t unused = room_on(core, i, job);
        above += unused > level ? unused - level : 0;
    }
    CADRE_ASSERT(above <= tasks);
    uint32_t singles = tasks - (uint32_t)above;
    uint32_t left = tasks;
    uint32_t slot = 0;
    for (uint32_t i = live->first; i != LIST_NONE && left > 0; i = live->nodes[i].next) {
        uint32_t unused = room_on(core, i, job);
        struct share share = {.worker = i, .slots = unused > level ? unused - level : 0};
        if (singles > 0 && level > 0 && unused >= level) {
            share.slots++;
            singles--;
        }
        hand_out(core, job, &share, &slot, placed);
        left -= share.slots;
    }
    CADRE_ASSERT(left == 0);
}

/* The worker of the next slot; it is found, or put, in its place among the shares. */
static uint32_t pick(
    struct core *core, const struct job *job, struct share shares[FEW_TASKS], uint32_t count)
{
    uint32_t worker = offers_best(core, job->gpus);
    CADRE_ASSERT(worker != NONE);
    core->workers[worker].counted_free--;
    offers_changed(core, worker);
    uint32_t at = count;
    while (at > 0 && core->workers[shares[at - 1].worker].id.n >= core->workers[worker].id.n) {
        at--;
    }
    if (at < count && shares[at].worker == worker) {
        shares[at].slots++;
        return count;
    }
    memmove(&shares[at + 1], &shares[at], (count - at) * sizeof(*shares));
    shares[at] = (struct share){.worker = worker, .slots = 1};
    return count + 1;
}

/* The same, slot by slot: no other worker is looked at. */
static void spread_few(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    struct share shares[FEW_TASKS];
    uint32_t count = 0;
    uint32_t slot = 0;
    for (uint32_t i = 0; i < tasks; i++) {
        count = pick(core, job, shares, count);
    }
    for (uint32_t i = 0; i < count; i++) { /* task_place() takes them */
        core->workers[shares[i].worker].counted_free += shares[i].slots;
        offers_changed(core, shares[i].worker);
    }
    for (uint32_t i = 0; i < count; i++) {
        hand_out(core, job, &shares[i], &slot, placed);
    }
}

/* Slots are handed out worker by worker, so that tasks of one worker are neighbours. */
void placement_spread(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    if (tasks <= FEW_TASKS) {
        spread_few(core, job, tasks, placed);
    } else {
        spread_many(core, job, tasks, placed);
    }
}

static void place(struct core *core, struct job *job)
{
    uint32_t room = placement_free(core, job);
    uint32_t tasks = job->tasks < room ? job->tasks : room;
    placement_spread(core, job, tasks, NULL);
    queue_remove(core, job);
    job->initial = tasks;
    job_move(core, job, JOB_STARTING);
    job_due(core, job, DUE_START);
    if (!deadline_armed(job, DEADLINE_LIMIT)) { /* it was not preempted */
        overtime_arm(core, job, 0);
    }
    vacancy_note(core, job);
}

/* Jobs whose tasks have to go elsewhere may find room now. */
static void ask_draining(struct core *core)
{
    const struct list *drained = &core->drained;
    for (uint32_t i = drained->first; i != LIST_NONE; i = drained->nodes[i].next) {
        job_due(core, &core->jobs[i], DUE_CONTROL);
    }
}

void placement_run(struct core *core)
{
    bool ran = core->place_due;
    uint32_t head = LIST_NONE;
    if (ran) {
        ask_draining(core);
    }
    while (core->place_due) {
        core->place_due = false;
        vacancy_run(core, false);
        queue_settle_head(core);
        head = queue_head(core);
        if (core->unsaid > 0) {
            core->place_due = true; /* their slots of running jobs come before the queue */
            break;
        }
        if (head != LIST_NONE &&
            core->jobs[head].tasks_min <= placement_free(core, &core->jobs[head])) {
            place(core, &core->jobs[head]);
        } else if (head == LIST_NONE) {
            vacancy_run(core, true);
        }
    }
    if (!ran) {
        return;
    }
    queue_settle(core);
    if (core->queue.first != LIST_NONE) {
        /* What it waits for changed. */
        job_due(core, &core->jobs[head != LIST_NONE ? head : core->queue.first], DUE_CHANGED);
    }
}

/* " slot", " free slots with 2 GPUs": what so many of them are called. */
static void add_slots(struct text *text, const struct job *job, const char *before, bool one)
{
    text_add(text, before);
    text_add(text, one ? "slot" : "slots");
    if (job->gpus > 0) {
        text_add(text, " with ");
        text_count(text, job->gpus, "GPU", "GPUs");
        if (!one) {
            text_add(text, " each");
        }
    }
}

static void add_too_few(const struct core *core, const struct job *job, struct text *text)
{
    uint32_t total = placement_total(core, job);
    text_add(text, "waits for more workers: it asks for ");
    text_add_u64(text, job->tasks_min);
    add_slots(text, job, " ", job->tasks_min == 1);
    text_add(text, ", the cluster has ");
    if (job->gpus > 0 && total == 0) {
        text_add(text, "none such");
    } else {
        text_add_u64(text, total);
    }
    if (job->gpus > 0) {
        text_add(text, " among ");
        text_count(text, core->slots_total[0], "slot", "slots");
    }
}

void placement_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    uint32_t head = queue_head(core);
    CADRE_ASSERT(job->state == JOB_QUEUED);
    if (core->slots_total[0] == 0) {
        text_add(&text, "waits for workers: none has joined");
    } else if (job->tasks_min > placement_total(core, job)) {
        add_too_few(core, job, &text);
    } else if (head == job_index(core, job)) {
        text_add(&text, "waits for ");
        text_add_u64(&text, job->tasks_min);
        add_slots(&text, job, " free ", job->tasks_min == 1);
        text_add(&text, ", ");
        text_add_u64(&text, placement_free(core, job));
        text_add(&text, " of ");
        text_add_u64(&text, placement_total(core, job));
        text_add(&text, placement_free(core, job) == 1 ? " is free" : " are free");
    } else {
        uint32_t before = queue_before(core, job);
        text_add(&text, "waits for its turn: ");
        text_add_u64(&text, before);
        text_add(&text, before == 1 ? " job is before it" : " jobs are before it");
    }
}
