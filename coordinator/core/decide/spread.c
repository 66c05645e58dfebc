/* SPDX-License-Identifier: Apache-2.0
 * Which slots a job's tasks get: one after another from the worker with most free ones. placement.c
 * and vacancy.c call this; `placed` is called for each slot. */
#include "coordinator/core/decide/placement.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"

/* Up to so many are placed one by one; for more, reading all workers costs little per task. */
#define FEW_TASKS 32

/* Free slots of the worker that the job's tasks may be placed on. */
static uint32_t room_on(const struct core *core, uint32_t worker, const struct job *job)
{
    CADRE_ASSERT(core->workers[worker].counted_free <= core->workers[worker].slots);
    return worker_serves(core, worker, job) ? core->workers[worker].counted_free : 0;
}

/* Taking one slot after another from the worker with most free ones (the oldest worker first among
 * equals) fills from the top: it takes all slots above some level from all workers, and the rest
 * one each at that level. The level is the lowest at which not more than `tasks` are taken. */
static uint32_t fill_level(const struct core *core, const struct job *job, uint32_t tasks)
{
    const struct list *live = &core->workers_live;
    uint32_t low = 0;
    uint32_t high = LIMIT_SLOTS_PER_WORKER;
    CADRE_ASSERT(tasks > 0);
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
    CADRE_ASSERT(low <= LIMIT_SLOTS_PER_WORKER);
    return low;
}

static uint32_t next_empty(const struct core *core, const struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(job->waiting > job->declined);
    while (task->state != TASK_WAITING || task->refill == REFILL_NEXT_PLAN) {
        task = job_task(core, job, ++slot);
    }
    CADRE_ASSERT(slot < job->tasks);
    return slot;
}

/* So many slots on one worker. */
struct share {
    uint32_t worker;
    uint32_t slots;
};

static void hand_out(struct core *core, struct job *job, const struct share *share, uint32_t *slot,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    CADRE_ASSERT(share->slots <= core->workers[share->worker].counted_free);
    for (uint32_t i = 0; i < share->slots; i++) {
        *slot = next_empty(core, job, *slot);
        task_assign(core, job, *slot, share->worker, job->incarnation_max + 1);
        if (placed != NULL) {
            placed(core, job, *slot);
        }
    }
}

/* For many tasks: reads all workers. */
static void spread_many(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    const struct list *live = &core->workers_live;
    uint32_t level = fill_level(core, job, tasks);
    uint64_t above = 0;
    CADRE_ASSERT(tasks > FEW_TASKS);
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
    CADRE_ASSERT(singles == 0);
}

/* Takes a slot of the best worker and adds it to that worker's share; returns the share count. */
static uint32_t spread_pick(
    struct core *core, const struct job *job, struct share shares[FEW_TASKS], uint32_t count)
{
    uint32_t worker = offers_best(core, job->gpus);
    CADRE_ASSERT(count < FEW_TASKS);
    CADRE_ASSERT(worker != NONE);
    CADRE_ASSERT(core->workers[worker].counted_free > 0);
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
    CADRE_ASSERT(at <= count);
    return count + 1;
}

/* The same for few tasks: reads no worker that gets none. */
static void spread_few(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    struct share shares[FEW_TASKS];
    uint32_t count = 0;
    uint32_t slot = 0;
    CADRE_ASSERT(tasks <= FEW_TASKS);
    for (uint32_t i = 0; i < tasks; i++) {
        count = spread_pick(core, job, shares, count);
    }
    for (uint32_t i = 0; i < count; i++) { /* task_assign() takes them */
        core->workers[shares[i].worker].counted_free += shares[i].slots;
        offers_changed(core, shares[i].worker);
    }
    for (uint32_t i = 0; i < count; i++) {
        hand_out(core, job, &shares[i], &slot, placed);
    }
    CADRE_ASSERT(count <= tasks);
}

/* Slots are handed out worker by worker, so that tasks of one worker are neighbours. */
void placement_spread(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    CADRE_ASSERT(tasks <= offers_free(core, job));
    CADRE_ASSERT(tasks <= job->waiting - job->declined);
    if (tasks <= FEW_TASKS) {
        spread_few(core, job, tasks, placed);
    } else {
        spread_many(core, job, tasks, placed);
    }
}

static uint32_t home_of(const struct core *core, const struct job *job, const struct task *task)
{
    const struct list *live = &core->workers_live;
    uint32_t i = live->first;
    CADRE_ASSERT(task->home.n != 0);
    while (i != LIST_NONE && core->workers[i].id.n != task->home.n) {
        i = live->nodes[i].next;
    }
    bool room = i != LIST_NONE && core->workers[i].counted_free > 0 && worker_serves(core, i, job);
    return room ? i : NONE;
}

uint32_t placement_return_servers(struct core *core, struct job *job, uint32_t count,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    uint32_t first = ps_job_first_slot(&job->ps_job, ROLE_SERVER);
    uint32_t gone = 0;
    CADRE_ASSERT(job->ps_job.servers == 0 || count <= job->waiting);
    for (uint32_t i = 0; i < job->ps_job.servers && gone < count; i++) {
        const struct task *task = job_task(core, job, first + i);
        bool waits = task->state == TASK_WAITING && task->home.n != 0;
        uint32_t worker = waits ? home_of(core, job, task) : NONE;
        if (worker != NONE) {
            task_assign(core, job, first + i, worker, job->incarnation_max + 1);
            placed(core, job, first + i);
            gone++;
        }
    }
    CADRE_ASSERT(gone <= count);
    return gone;
}
