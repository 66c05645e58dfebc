/* SPDX-License-Identifier: Apache-2.0
 * The queue and gang placement: all tasks of a job or none, in strict order (priority, then first
 * come). A job at the head keeps all behind it waiting, so nobody starves. Only a job that asks for
 * more than all slots of the cluster is passed over until enough workers have joined: nobody could
 * tell how long the others would wait for it. */
#include "coordinator/core/state.h"

/* The first job that the cluster could hold if it were empty; NONE when there is none. */
static uint32_t queue_head(const struct core *core)
{
    uint32_t index = core->queue.first;
    while (index != LIST_NONE && core->jobs[index].tasks > core->slots_total) {
        index = core->queue.nodes[index].next;
    }
    return index;
}

/* Taking one slot after another from the worker with most free ones (the oldest worker first among
 * equals) fills from the top: it takes all slots above some level from everybody, and the rest one
 * each at that level. The level is the lowest at which not more than `tasks` are taken. */
static uint32_t fill_level(const struct core *core, uint32_t tasks)
{
    const struct list *live = &core->workers_live;
    uint32_t low = 0;
    uint32_t high = LIMIT_SLOTS_PER_WORKER;
    while (low < high) {
        uint32_t level = (low + high) / 2;
        uint64_t taken = 0;
        for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
            uint32_t unused = core->workers[i].counted_free;
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

static void party_add(
    struct core *core, struct job *job, uint32_t worker, uint32_t slot, uint32_t tasks)
{
    struct worker *w = &core->workers[worker];
    uint32_t index = job_index(core, job);
    uint32_t number = job->parties++;
    struct party *party = job_party(core, job, number);
    *party = (struct party){.worker = worker,
        .worker_id = w->id,
        .first_slot = slot,
        .tasks = tasks,
        .prev = {.job = NONE, .party = NONE},
        .next = w->parties};
    if (w->parties.job != NONE) {
        struct job *other = &core->jobs[w->parties.job];
        job_party(core, other, w->parties.party)->prev =
            (struct party_ref){.job = index, .party = number};
    }
    w->parties = (struct party_ref){.job = index, .party = number};
    map_add(&core->parties_by_place, (uint64_t)index << 32 | worker, number);
    for (uint32_t i = 0; i < tasks; i++) {
        struct task *task = job_task(core, job, slot + i);
        task->party = number;
        task->incarnation = ++job->incarnation_max;
        task_move(task, TASK_STARTING);
    }
    w->slots_used += tasks;
    CADRE_ASSERT(w->slots_used <= w->slots);
    worker_offer(core, worker);
}

/* Slots are handed out worker by worker, so that tasks of one worker are neighbours. */
static void place(struct core *core, struct job *job)
{
    const struct list *live = &core->workers_live;
    uint32_t level = fill_level(core, job->tasks);
    uint64_t above = 0;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        uint32_t unused = core->workers[i].counted_free;
        above += unused > level ? unused - level : 0;
    }
    CADRE_ASSERT(above <= job->tasks);
    uint32_t singles = job->tasks - (uint32_t)above;
    uint32_t slot = 0;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        uint32_t unused = core->workers[i].counted_free;
        uint32_t take = unused > level ? unused - level : 0;
        if (singles > 0 && level > 0 && unused >= level) {
            take++;
            singles--;
        }
        if (take > 0) {
            party_add(core, job, i, slot, take);
            slot += take;
        }
    }
    CADRE_ASSERT(slot == job->tasks);
    CADRE_ASSERT(singles == 0);
    list_remove(&core->queue, job_index(core, job));
    job_move(core, job, JOB_STARTING);
    job_due(core, job, DUE_START);
}

void placement_run(struct core *core)
{
    bool ran = core->place_due;
    uint32_t head = queue_head(core);
    while (core->place_due) {
        core->place_due = false;
        head = queue_head(core);
        if (head != LIST_NONE && core->jobs[head].tasks <= core->slots_free) {
            place(core, &core->jobs[head]);
        }
    }
    if (ran && core->queue.first != LIST_NONE) {
        /* What it waits for changed. */
        job_due(core, &core->jobs[head != LIST_NONE ? head : core->queue.first], DUE_CHANGED);
    }
}

void placement_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    uint32_t head = queue_head(core);
    CADRE_ASSERT(job->state == JOB_QUEUED);
    if (core->slots_total == 0) {
        text_add(&text, "waits for workers: none has joined");
    } else if (job->tasks > core->slots_total) {
        text_add(&text, "waits for more workers: it asks for ");
        text_add_u64(&text, job->tasks);
        text_add(&text, job->tasks == 1 ? " slot, the cluster has " : " slots, the cluster has ");
        text_add_u64(&text, core->slots_total);
    } else if (head == job_index(core, job)) {
        text_add(&text, "waits for ");
        text_add_u64(&text, job->tasks);
        text_add(&text, job->tasks == 1 ? " free slot, " : " free slots, ");
        text_add_u64(&text, core->slots_free);
        text_add(&text, " of ");
        text_add_u64(&text, core->slots_total);
        text_add(&text, core->slots_free == 1 ? " is free" : " are free");
    } else {
        uint32_t before = job_queued_before(core, job);
        text_add(&text, "waits for its turn: ");
        text_add_u64(&text, before);
        text_add(&text, before == 1 ? " job is before it" : " jobs are before it");
    }
}
