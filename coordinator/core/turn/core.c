/* SPDX-License-Identifier: Apache-2.0
 * The one switch over events, and the memory of the core. The engine and the simulator call
 * core_step(). */
#include "coordinator/core/core.h"

#include <stdalign.h>

#include "coordinator/core/events/events.h"
#include "coordinator/core/events/task_lifecycle.h"
#include "coordinator/core/events/membership.h"
#include "coordinator/core/facts/divergence.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/turn/turn.h"

/* Hands out memory in order; with base NULL it only measures. */
struct layout {
    unsigned char *base;
    size_t used;
};

static void *layout_take(struct layout *layout, size_t size, size_t count)
{
    size_t align = alignof(max_align_t);
    size_t at = (layout->used + align - 1) / align * align;
    CADRE_ASSERT(size > 0 && count > 0);
    layout->used = at + size * count;
    CADRE_ASSERT(at % align == 0);
    return layout->base == NULL ? NULL : layout->base + at;
}

struct core_arrays {
    struct core *core;
    struct worker *workers;
    struct list_node *worker_nodes;
    struct map_entry *by_link;
    struct map_entry *by_name;
    struct offer *offers;
    struct job *jobs;
    struct list_node *job_nodes;
    struct list_node *queue_nodes;
    uint32_t *queue_numbers;
    struct list_node *undecided_nodes;
    struct list_node *touched_nodes;
    struct list_node *drained_nodes;
    struct map_entry *by_id;
    struct task *tasks;
    struct task_group *task_groups;
    uint32_t *members;
    struct core_drained *drains;
    struct core_culprit *culprits;
    struct map_entry *by_index;
    struct stray *strays;
    struct heap_entry *heap_entries;
    uint32_t *heap_positions;
};

static size_t layout_arrays(
    unsigned char *base, const struct core_limits *limits, struct core_arrays *ret_arrays)
{
    size_t workers = limits->workers_max;
    size_t jobs = limits->jobs_max;
    size_t tasks = limits->tasks_max;
    struct layout layout = {.base = base};
    struct core_arrays p;
    p.core = layout_take(&layout, sizeof(*p.core), 1);
    p.workers = layout_take(&layout, sizeof(*p.workers), workers);
    p.worker_nodes = layout_take(&layout, sizeof(*p.worker_nodes), workers);
    p.by_link = layout_take(&layout, sizeof(*p.by_link), map_capacity(limits->workers_max));
    p.by_name = layout_take(&layout, sizeof(*p.by_name), map_capacity(limits->workers_max));
    p.offers = layout_take(&layout, sizeof(*p.offers), map_capacity(limits->workers_max));
    p.job_nodes = layout_take(&layout, sizeof(*p.job_nodes), jobs);
    p.queue_nodes = layout_take(&layout, sizeof(*p.queue_nodes), jobs);
    p.queue_numbers = layout_take(&layout, sizeof(*p.queue_numbers), jobs);
    p.undecided_nodes = layout_take(&layout, sizeof(*p.undecided_nodes), jobs);
    p.touched_nodes = layout_take(&layout, sizeof(*p.touched_nodes), jobs);
    p.drained_nodes = layout_take(&layout, sizeof(*p.drained_nodes), jobs);
    p.by_id = layout_take(&layout, sizeof(*p.by_id), map_capacity(limits->jobs_max));
    p.by_index = layout_take(&layout, sizeof(*p.by_index), map_capacity(limits->tasks_max));
    p.strays = layout_take(&layout, sizeof(*p.strays), STRAYS_MAX);
    p.heap_entries = layout_take(&layout, sizeof(*p.heap_entries), workers + jobs);
    p.heap_positions = layout_take(&layout, sizeof(*p.heap_positions), workers + jobs);
    /* These are the large ones, and set to zero as they are used: unused ones cost no memory. */
    p.jobs = layout_take(&layout, sizeof(*p.jobs), jobs);
    p.tasks = layout_take(&layout, sizeof(*p.tasks), tasks);
    p.task_groups = layout_take(&layout, sizeof(*p.task_groups), tasks);
    p.members = layout_take(&layout, sizeof(*p.members), tasks);
    p.drains = layout_take(&layout, sizeof(*p.drains), workers);
    p.culprits = layout_take(&layout, sizeof(*p.culprits), workers);
    *ret_arrays = p;
    return layout.used;
}

size_t core_bytes(const struct core_limits *limits)
{
    struct core_arrays arrays;
    CADRE_ASSERT(limits->workers_max > 0 && limits->jobs_max > 0 && limits->tasks_max > 0);
    return layout_arrays(NULL, limits, &arrays);
}

struct core *core_init(void *memory, const struct core_options *options)
{
    const struct core_limits *limits = &options->limits;
    struct core_arrays p;
    CADRE_ASSERT(limits->workers_max > 0 && limits->workers_max < NONE / 4);
    CADRE_ASSERT(limits->jobs_max > 0 && limits->jobs_max < NONE / 4);
    CADRE_ASSERT(limits->tasks_max > 0 && limits->tasks_max < NONE / 4);
    CADRE_ASSERT(options->lease_us > 0);
    layout_arrays(memory, limits, &p);
    memset(memory, 0, (size_t)((unsigned char *)p.jobs - (unsigned char *)memory));

    struct core *core = p.core;
    core->options = *options;
    core->prng = (struct prng){.state = options->seed};
    core->workers = p.workers;
    list_init(&core->workers_live, p.worker_nodes);
    list_init(&core->workers_free, p.worker_nodes);
    map_init(&core->workers_by_link, p.by_link, map_capacity(limits->workers_max));
    map_init(&core->workers_by_name, p.by_name, map_capacity(limits->workers_max));
    core->offers = p.offers;
    offers_open(core);
    core->jobs = p.jobs;
    list_init(&core->jobs_live, p.job_nodes);
    list_init(&core->jobs_free, p.job_nodes);
    list_init(&core->queue, p.queue_nodes);
    list_init(&core->underfilled, p.queue_nodes);
    core->queue_numbers = p.queue_numbers;
    list_init(&core->undecided, p.undecided_nodes);
    list_init(&core->touched, p.touched_nodes);
    list_init(&core->drained, p.drained_nodes);
    map_init(&core->jobs_by_id, p.by_id, map_capacity(limits->jobs_max));
    core->tasks = p.tasks;
    core->task_groups = p.task_groups;
    core->members = p.members;
    core->drains = p.drains;
    core->culprits = p.culprits;
    map_init(&core->task_groups_by_worker, p.by_index, map_capacity(limits->tasks_max));
    core->strays = p.strays;
    heap_init(
        &core->deadlines, p.heap_entries, p.heap_positions, limits->workers_max + limits->jobs_max);
    for (uint32_t i = 0; i < limits->workers_max; i++) {
        list_append(&core->workers_free, i);
    }
    for (uint32_t i = 0; i < limits->jobs_max; i++) {
        list_append(&core->jobs_free, i);
    }
    CADRE_ASSERT(core->jobs_free.count == limits->jobs_max &&
                 core->workers_free.count == limits->workers_max);
    return core;
}

static void agent_up(struct core *core, struct link_id link, const struct agent_up *up)
{
    if (up->type == AGENT_UP_HELLO) {
        member_hello(core, link, &up->hello);
        return;
    }
    uint32_t worker = worker_by_link(core, link);
    if (worker == NONE) {
        return; /* Rule 12: refused, or lost meanwhile; the engine is ending this stream */
    }
    worker_seen(core, worker);
    switch (up->type) {
    case AGENT_UP_DRAINING:
        worker_draining(core, worker);
        break;
    case AGENT_UP_ARRIVED:
        arrival_handle(core, worker, &up->arrived);
        break;
    case AGENT_UP_TASK_STARTED:
        task_started(core, worker, &up->started);
        break;
    case AGENT_UP_TASK_GONE:
        task_gone(core, worker, &up->gone);
        break;
    case AGENT_UP_TASK_COLLECTED:
        task_collected(core, worker, &up->collected);
        break;
    case AGENT_UP_RELAY:
        task_relayed(core, worker, &up->relay_up);
        break;
    case AGENT_UP_HELLO:
    case AGENT_UP_HEARTBEAT:
    case AGENT_UP_LOG:
        break;
    }
}

void core_step(struct core *core, const struct core_event *event, struct core_actions *out)
{
    CADRE_ASSERT(core->out == NULL);
    CADRE_ASSERT(out->capacity - out->count >= CORE_ACTIONS_PER_STEP_MAX);
    lease_clock(core, event->now_us);
    core->steps++;
    core->out = out;
    core->out_end = out->count + CORE_ACTIONS_PER_STEP_MAX;
    switch (event->type) {
    case CORE_EVENT_TICK:
        deadlines_run(core);
        break;
    case CORE_EVENT_SUBMIT:
        job_submit(core, &event->submit);
        break;
    case CORE_EVENT_CANCEL:
        job_cancel(core, &event->cancel);
        break;
    case CORE_EVENT_CHECKPOINT:
        checkpoint_now(core, &event->checkpoint);
        break;
    case CORE_EVENT_CHECKPOINT_DAMAGED:
        checkpoint_damaged(core, &event->damaged);
        break;
    case CORE_EVENT_DRAIN:
        worker_drain(core, &event->drain);
        break;
    case CORE_EVENT_AGENT_UP:
        agent_up(core, event->agent.link, event->agent.up);
        break;
    case CORE_EVENT_LINK_DOWN:
        member_link_down(core, event->link_down);
        break;
    case CORE_EVENT_RESTORE_DRAIN:
        drain_restore(core, &event->restore_drain);
        break;
    case CORE_EVENT_RESTORE_CULPRIT:
        culprit_restore(core, &event->restore_culprit);
        break;
    case CORE_EVENT_RESTORE_JOB:
        restore_job(core, &event->restore);
        break;
    case CORE_EVENT_RESTORE_DONE:
        restore_done(core, &event->restore_done);
        break;
    }
    turn_run(core);
    CADRE_ASSERT(out->count <= core->out_end);
    core->out = NULL;
    core->out_end = 0;
}

uint64_t core_wake_us(const struct core *core)
{
    struct heap_entry next;
    CADRE_ASSERT(core->out == NULL);
    if (turn_waits(core)) {
        return core->now_us;
    }
    return heap_top(&core->deadlines, &next) ? next.due_us : UINT64_MAX;
}
