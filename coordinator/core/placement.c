/* SPDX-License-Identifier: Apache-2.0
 * The queue and gang placement: the fewest tasks that a job can do with or none, and as many more
 * as there is room for, in strict order (priority, then first come). A job at the head keeps all
 * behind it waiting, so nobody starves. Only a job that asks for more than all slots of the cluster
 * is passed over until enough workers have joined: nobody could tell how long the others would wait
 * for it. */
#include "coordinator/core/parts.h"

/* The first job that the cluster could hold if it were empty; NONE when there is none. */
static uint32_t queue_head(const struct core *core)
{
    uint32_t index = core->queue.first;
    while (index != LIST_NONE && core->jobs[index].tasks_min > core->slots_total) {
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

static uint32_t next_empty(const struct core *core, const struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    while (task->state != TASK_WAITING || task->declined) {
        task = job_task(core, job, ++slot);
    }
    return slot;
}

/* Slots are handed out worker by worker, so that tasks of one worker are neighbours. */
void placement_spread(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot))
{
    const struct list *live = &core->workers_live;
    uint32_t level = fill_level(core, tasks);
    uint64_t above = 0;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        uint32_t unused = core->workers[i].counted_free;
        above += unused > level ? unused - level : 0;
    }
    CADRE_ASSERT(above <= tasks);
    uint32_t singles = tasks - (uint32_t)above;
    uint32_t left = tasks;
    uint32_t slot = 0;
    for (uint32_t i = live->first; i != LIST_NONE && left > 0; i = live->nodes[i].next) {
        uint32_t unused = core->workers[i].counted_free;
        uint32_t take = unused > level ? unused - level : 0;
        if (singles > 0 && level > 0 && unused >= level) {
            take++;
            singles--;
        }
        for (; take > 0; take--, left--) {
            slot = next_empty(core, job, slot);
            task_place(core, job, slot, i, job->incarnation_max + 1);
            if (placed != NULL) {
                placed(core, job, slot);
            }
        }
    }
    CADRE_ASSERT(left == 0);
}

static void place(struct core *core, struct job *job)
{
    uint32_t tasks = job->tasks < core->slots_free ? job->tasks : core->slots_free;
    placement_spread(core, job, tasks, NULL);
    list_remove(&core->queue, job_index(core, job));
    job->initial = tasks;
    job_move(core, job, JOB_STARTING);
    job_due(core, job, DUE_START);
    vacancy_note(core, job);
}

/* Jobs whose tasks have to go elsewhere may find room now. */
static void ask_draining(struct core *core)
{
    const struct list *live = &core->jobs_live;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        if (core->jobs[i].draining) {
            job_due(core, &core->jobs[i], DUE_CONTROL);
        }
    }
}

void placement_run(struct core *core)
{
    bool ran = core->place_due;
    uint32_t head = queue_head(core);
    if (ran) {
        ask_draining(core);
    }
    while (core->place_due) {
        core->place_due = false;
        vacancy_run(core, false);
        head = queue_head(core);
        if (head != LIST_NONE && core->jobs[head].tasks_min <= core->slots_free) {
            place(core, &core->jobs[head]);
        } else if (head == LIST_NONE) {
            vacancy_run(core, true);
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
    } else if (job->tasks_min > core->slots_total) {
        text_add(&text, "waits for more workers: it asks for ");
        text_add_u64(&text, job->tasks_min);
        text_add(
            &text, job->tasks_min == 1 ? " slot, the cluster has " : " slots, the cluster has ");
        text_add_u64(&text, core->slots_total);
    } else if (head == job_index(core, job)) {
        text_add(&text, "waits for ");
        text_add_u64(&text, job->tasks_min);
        text_add(&text, job->tasks_min == 1 ? " free slot, " : " free slots, ");
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
