/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/traces/trace_tasks.h"

#include <stdio.h>
#include <stdlib.h>

#define RATE_NS UINT64_C(100000000) /* a rate is measured for at least so long */

void trace_tasks_free(struct trace_tasks *tasks)
{
    free(tasks->items);
    free(tasks->clocks);
    *tasks = (struct trace_tasks){0};
}

/* From the newest: of a slot the last process is the one that sends. */
struct traced_task *trace_tasks_find(
    const struct trace_tasks *tasks, uint32_t slot, uint64_t incarnation)
{
    for (size_t i = tasks->count; i > 0; i--) {
        struct traced_task *task = &tasks->items[i - 1];
        if (task->view.slot == slot && task->view.incarnation == incarnation) {
            return task;
        }
    }
    return NULL;
}

struct traced_task *trace_tasks_get(struct trace_tasks *tasks, const struct task_info *info)
{
    /* Mostly they are added in the order of their slots, and looked at in the same. */
    struct traced_task *found = info->slot < tasks->count ? &tasks->items[info->slot] : NULL;
    if (found == NULL || found->view.slot != info->slot ||
        found->view.incarnation != info->incarnation) {
        found = trace_tasks_find(tasks, info->slot, info->incarnation);
    }
    if (found != NULL || tasks->count == TRACE_TASKS_MAX) {
        return found;
    }
    if (tasks->count == tasks->capacity) {
        size_t capacity = tasks->capacity > 0 ? tasks->capacity * 2 : 16;
        struct traced_task *grown = realloc(tasks->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        tasks->items = grown;
        tasks->capacity = capacity;
    }
    struct traced_task *made = &tasks->items[tasks->count++];
    *made = (struct traced_task){.view = {.slot = info->slot,
                                     .incarnation = info->incarnation,
                                     .state = TRACE_TASK_ASKED,
                                     .pid = info->pid},
        .changed = true};
    snprintf(made->worker, sizeof made->worker, "%s", info->worker);
    return made;
}

/* The clock of this number, added if it is not there; NULL: no memory. */
static struct traced_clock *clock_of(struct trace_tasks *tasks, uint64_t id, bool add)
{
    for (size_t i = 0; i < tasks->clock_count; i++) {
        if (tasks->clocks[i].id == id) {
            return &tasks->clocks[i];
        }
    }
    if (!add || tasks->clock_count == TRACE_TASKS_MAX) {
        return NULL;
    }
    if (tasks->clock_count == tasks->clock_capacity) {
        size_t capacity = tasks->clock_capacity > 0 ? tasks->clock_capacity * 2 : 8;
        struct traced_clock *grown = realloc(tasks->clocks, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        tasks->clocks = grown;
        tasks->clock_capacity = capacity;
    }
    tasks->clocks[tasks->clock_count] = (struct traced_clock){.id = id};
    return &tasks->clocks[tasks->clock_count++];
}

void trace_tasks_take(struct trace_tasks *tasks, struct traced_task *task,
    const struct task_spans *spans, uint64_t now_ns)
{
    struct trace_task *view = &task->view;
    struct traced_clock *clock = clock_of(tasks, spans->clock, true);
    if (spans->asked_ns != 0 && clock != NULL) {
        (void)clock_offset_add(&clock->offset, spans->asked_ns, spans->answered_ns, now_ns);
    }
    if (view->state != TRACE_TASK_ENDED) {
        view->state = spans->ended ? TRACE_TASK_ENDED : TRACE_TASK_RECORDS;
    }
    view->clock = spans->clock;
    task->own_numbers = spans->own_numbers;
    if (task->first_ns == 0) {
        task->first_ns = now_ns;
        task->first_position = spans->position;
    }
    task->newest_ns = now_ns;
    view->position = spans->position > view->position ? spans->position : view->position;
    view->missing += spans->sent > task->expected ? spans->sent - task->expected : 0;
    task->expected = spans->sent > task->expected ? spans->sent : task->expected;
    task->expected += spans->span_count;
    view->spans += spans->span_count;
    view->lost = spans->lost;
    task->changed = true;
}

void trace_tasks_begin_look(struct trace_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        tasks->items[i].here = false;
    }
}

void trace_tasks_end_look(struct trace_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        struct traced_task *task = &tasks->items[i];
        if (!task->here && task->view.state < TRACE_TASK_ENDED) {
            task->view.state = TRACE_TASK_GONE;
            task->changed = true;
        }
    }
}

bool trace_tasks_are_done(const struct trace_tasks *tasks)
{
    bool any = false;
    for (size_t i = 0; i < tasks->count; i++) {
        const struct traced_task *task = &tasks->items[i];
        any = any || task->view.state == TRACE_TASK_ENDED;
        if (task->here && task->view.state != TRACE_TASK_ENDED) {
            return false;
        }
    }
    return any;
}

uint64_t trace_tasks_position(const struct trace_tasks *tasks)
{
    uint64_t position = 0;
    for (size_t i = 0; i < tasks->count; i++) {
        uint64_t own = tasks->items[i].view.position;
        position = own > position ? own : position;
    }
    return position;
}

bool trace_tasks_next_number(
    const struct trace_tasks *tasks, uint64_t lead_ns, uint64_t *ret_number)
{
    uint64_t ahead = 0;
    bool all = tasks->count > 0;
    for (size_t i = 0; i < tasks->count && all; i++) {
        const struct traced_task *task = &tasks->items[i];
        uint64_t passed_ns = task->newest_ns - task->first_ns;
        if (!task->here) {
            continue;
        }
        all = task->own_numbers && passed_ns >= RATE_NS;
        if (all) {
            double rate = (double)(task->view.position - task->first_position) / (double)passed_ns;
            uint64_t own_ahead = (uint64_t)(rate * (double)lead_ns);
            ahead = own_ahead > ahead ? own_ahead : ahead;
        }
    }
    *ret_number = trace_tasks_position(tasks) + ahead + 2; /* one is under way */
    return all;
}

/* With its worker's name, and its clock's offset. */
static struct trace_task copy_of(
    struct trace_tasks *tasks, const struct traced_task *task, uint64_t now_ns)
{
    struct trace_task copy = task->view;
    const struct traced_clock *clock = clock_of(tasks, copy.clock, false);
    copy.worker = task->worker;
    if (copy.clock == tasks->own_clock || clock == NULL) {
        copy.error_ns = copy.clock == tasks->own_clock ? 0 : UINT64_MAX;
        return copy;
    }
    copy.offset_ns = clock->offset.offset_ns;
    copy.error_ns = clock_offset_error(&clock->offset, tasks->began_ns, now_ns);
    return copy;
}

size_t trace_tasks_changed(struct trace_tasks *tasks, uint64_t now_ns, bool all, size_t *cursor,
    struct trace_task *ret_items, size_t max)
{
    size_t count = 0;
    for (; *cursor < tasks->count && count < max; ++*cursor) {
        struct traced_task *task = &tasks->items[*cursor];
        if (task->changed || all) {
            ret_items[count++] = copy_of(tasks, task, now_ns);
            task->changed = false;
        }
    }
    return count;
}
