/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/trace_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trace_store_free(struct trace_store *store)
{
    free(store->processes);
    free(store->spans);
    *store = (struct trace_store){0};
}

/* Room for `more` entries behind `count`; false: no memory. */
static bool trace_store_room(
    void **list, size_t *capacity, size_t count, size_t more, size_t entry_bytes)
{
    if (count + more <= *capacity) {
        return true;
    }
    size_t grown_capacity = *capacity * 2 > count + more ? *capacity * 2 : count + more + 64;
    void *grown = realloc(*list, grown_capacity * entry_bytes);
    if (grown != NULL) {
        *list = grown;
        *capacity = grown_capacity;
    }
    return grown != NULL;
}

/* TRACE_NO_PROCESS: it is not described yet. */
static uint32_t trace_store_find(
    const struct trace_store *store, uint32_t task, uint64_t incarnation)
{
    for (size_t i = store->process_count; i > 0; i--) {
        const cadre_trace_task *at = &store->processes[i - 1].task;
        if (at->task == task && at->incarnation == incarnation) {
            return (uint32_t)(i - 1);
        }
    }
    return TRACE_NO_PROCESS;
}

/* TRACE_NO_PROCESS: no memory. */
static uint32_t trace_store_get(struct trace_store *store, uint32_t task, uint64_t incarnation)
{
    uint32_t at = trace_store_find(store, task, incarnation);
    void *list = store->processes;
    if (at != TRACE_NO_PROCESS) {
        return at;
    }
    if (!trace_store_room(
            &list, &store->process_capacity, store->process_count, 1, sizeof store->processes[0])) {
        return TRACE_NO_PROCESS;
    }
    store->processes = list;
    store->processes[store->process_count] = (struct stored_process){
        .task = {.task = task, .incarnation = incarnation, .error_ns = UINT64_MAX}};
    return (uint32_t)store->process_count++;
}

static bool add_task(struct trace_store *store, const cadre_trace_task *task)
{
    uint32_t at = trace_store_get(store, task->task, task->incarnation);
    if (at == TRACE_NO_PROCESS) {
        return false;
    }
    struct stored_process *process = &store->processes[at];
    process->task = *task;
    snprintf(process->worker, sizeof process->worker, "%s", task->worker);
    process->task.worker = NULL; /* the list may move */
    return true;
}

static bool add_spans(struct trace_store *store, const cadre_trace *piece)
{
    uint32_t process = trace_store_get(store, piece->task, piece->incarnation);
    size_t room = TRACE_STORE_SPANS_MAX - store->span_count;
    size_t count = piece->span_count < room ? piece->span_count : room;
    void *list = store->spans;
    store->dropped += piece->span_count - count;
    if (process == TRACE_NO_PROCESS || !trace_store_room(&list, &store->span_capacity,
                                           store->span_count, count, sizeof store->spans[0])) {
        return false;
    }
    store->spans = list;
    for (size_t i = 0; i < count; i++) {
        const cadre_trace_span *span = &piece->spans[i];
        store->spans[store->span_count++] = (struct stored_span){.process = process,
            .kind = span->kind,
            .thread = span->thread,
            .replica = span->replica,
            .step = span->step,
            .begin_ns = span->begin_ns,
            .end_ns = span->end_ns,
            .arrived_ns = span->arrived_ns,
            .bytes = span->bytes,
            .match = span->match,
            .waits_for = TRACE_NO_PROCESS};
    }
    store->processes[process].received += count;
    return true;
}

bool trace_store_add(struct trace_store *store, const cadre_trace *piece)
{
    bool memory = true;
    store->first = piece->first;
    store->end = piece->end;
    store->clock_ns = piece->clock_ns;
    store->wall_us = piece->wall_us;
    store->own_numbers = piece->own_numbers;
    for (size_t i = 0; i < piece->task_count && memory; i++) {
        memory = add_task(store, &piece->tasks[i]);
    }
    if (piece->span_count > 0 && memory) {
        memory = add_spans(store, piece);
    }
    if (piece->ended) {
        store->ended = true;
        snprintf(store->message, sizeof store->message, "%s", piece->message);
    }
    return memory;
}

/* ---- one clock ---- */

/* The number that each process gets, in the order of slots and incarnations. */
static int compare_processes(const void *a, const void *b, void *user)
{
    const struct trace_store *store = user;
    const cadre_trace_task *first = &store->processes[*(const uint32_t *)a].task;
    const cadre_trace_task *second = &store->processes[*(const uint32_t *)b].task;
    if (first->task != second->task) {
        return first->task < second->task ? -1 : 1;
    }
    return first->incarnation < second->incarnation ? -1 : 1;
}

static void order_processes(struct trace_store *store)
{
    size_t count = store->process_count;
    uint32_t *order = calloc(count + 1, sizeof *order);
    uint32_t *number = calloc(count + 1, sizeof *number);
    struct stored_process *ordered = calloc(count + 1, sizeof *ordered);
    if (order != NULL && number != NULL && ordered != NULL) {
        for (size_t i = 0; i < count; i++) {
            order[i] = (uint32_t)i;
        }
        qsort_r(order, count, sizeof *order, compare_processes, store);
        for (size_t i = 0; i < count; i++) {
            ordered[i] = store->processes[order[i]];
            number[order[i]] = (uint32_t)i;
        }
        for (size_t i = 0; i < store->span_count; i++) {
            store->spans[i].process = number[store->spans[i].process];
        }
        if (count > 0) { /* else there is no array */
            memcpy(store->processes, ordered, count * sizeof *ordered);
        }
    }
    free(order);
    free(number);
    free(ordered);
}

/* By process, replica, thread, begin; of two that begin together first the one that is around the
 * other: it ends later, or it is of the kind that contains the other's. */
static int compare_spans(const void *a, const void *b)
{
    const struct stored_span *first = a;
    const struct stored_span *second = b;
    const uint64_t left[] = {first->process, first->replica, first->thread, first->begin_ns};
    const uint64_t right[] = {second->process, second->replica, second->thread, second->begin_ns};
    for (size_t i = 0; i < 4; i++) {
        if (left[i] != right[i]) {
            return left[i] < right[i] ? -1 : 1;
        }
    }
    if (first->end_ns != second->end_ns) {
        return first->end_ns > second->end_ns ? -1 : 1;
    }
    return first->kind < second->kind ? -1 : first->kind > second->kind ? 1 : 0;
}

void trace_store_align(struct trace_store *store)
{
    uint64_t origin_ns = UINT64_MAX;
    order_processes(store);
    for (size_t i = 0; i < store->span_count; i++) {
        struct stored_span *span = &store->spans[i];
        const cadre_trace_task *task = &store->processes[span->process].task;
        span->begin_ns += task->offset_ns;
        span->end_ns += task->offset_ns;
        span->arrived_ns += span->arrived_ns != 0 ? task->offset_ns : 0;
        origin_ns = span->begin_ns < origin_ns ? span->begin_ns : origin_ns;
    }
    for (size_t i = 0; i < store->span_count; i++) {
        struct stored_span *span = &store->spans[i];
        span->begin_ns -= origin_ns;
        span->end_ns -= origin_ns;
        span->arrived_ns -= span->arrived_ns != 0 ? origin_ns : 0;
        span->until_ns = span->begin_ns;
    }
    if (store->span_count > 0) {
        store->began_wall_us = store->wall_us - (store->clock_ns - origin_ns) / 1000;
        qsort(store->spans, store->span_count, sizeof store->spans[0], compare_spans);
    }
}

/* ---- counts ---- */

uint64_t trace_store_steps_done(const struct trace_store *store)
{
    uint64_t position = UINT64_MAX;
    for (size_t i = 0; i < store->process_count; i++) {
        const cadre_trace_task *task = &store->processes[i].task;
        if (task->state != CADRE_TRACE_GONE) {
            position = task->position < position ? task->position : position;
        }
    }
    position = position == UINT64_MAX || position < store->first ? store->first : position;
    return (position < store->end ? position : store->end) - store->first;
}

uint64_t trace_store_lost(const struct trace_store *store)
{
    uint64_t lost = store->dropped;
    for (size_t i = 0; i < store->process_count; i++) {
        lost += store->processes[i].task.lost + store->processes[i].task.missing;
    }
    return lost;
}

uint64_t trace_store_clock_error(const struct trace_store *store)
{
    uint64_t error_ns = 0;
    for (size_t i = 0; i < store->process_count; i++) {
        const struct stored_process *process = &store->processes[i];
        if (process->received > 0 && process->task.error_ns > error_ns) {
            error_ns = process->task.error_ns;
        }
    }
    return error_ns;
}
