/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test.h"

#include "tests/unit/trace/made_trace.h"

#define TRANSFER_US 100
#define BEGAN_US    5000000

static void add(struct trace_store *store, uint32_t task, cadre_trace_span span)
{
    const cadre_trace piece = {.end = store->end,
        .first = store->first,
        .clock_ns = store->clock_ns,
        .wall_us = store->wall_us,
        .task = task,
        .incarnation = task + 1,
        .spans = &span,
        .span_count = 1,
        .message = ""};
    assert_true(trace_store_add(store, &piece));
}

static void add_tasks(
    struct trace_store *store, const struct made_task *tasks, uint32_t count, uint64_t steps)
{
    for (uint32_t i = 0; i < count; i++) {
        const cadre_trace_task task = {.task = i,
            .incarnation = i + 1,
            .state = CADRE_TRACE_ENDED,
            .worker = tasks[i].worker != NULL ? tasks[i].worker : "w",
            .pid = 100 + i,
            .clock = 1 + tasks[i].ahead_us,
            .offset_ns = 0 - tasks[i].ahead_us * 1000,
            .error_ns = tasks[i].ahead_us > 0 ? 500 : 0};
        const cadre_trace piece = {.end = steps,
            .clock_ns = 2 * BEGAN_US * UINT64_C(1000),
            .wall_us = 1700000000000000,
            .tasks = &task,
            .task_count = 1,
            .message = ""};
        assert_true(trace_store_add(store, &piece));
    }
}

/* The task's spans of one step that begins at at_us, all but the collective. Returns when it comes
 * to that. */
static uint64_t add_own(struct trace_store *store, uint32_t i, const struct made_task *task,
    uint64_t step, uint64_t at_us)
{
    uint64_t ahead_us = task->ahead_us;
    uint64_t input_us = at_us + task->between_us + ahead_us;
    uint64_t run_us = input_us + task->input_us;
    uint64_t function_us = run_us + task->checkpoint_us;
    uint64_t arrived_us = function_us + task->function_us;
    add(store, i,
        (cadre_trace_span){.kind = CADRE_TRACE_INPUT,
            .step = step,
            .begin_ns = input_us * 1000,
            .end_ns = run_us * 1000});
    if (task->checkpoint_us > 0) {
        add(store, i,
            (cadre_trace_span){.kind = CADRE_TRACE_CHECKPOINT,
                .step = step,
                .begin_ns = run_us * 1000,
                .end_ns = function_us * 1000});
    }
    return arrived_us - ahead_us;
}

static void add_collective(struct trace_store *store, uint32_t i, const struct made_task *task,
    uint64_t step, uint64_t at_us, uint64_t last_us, bool knows, uint64_t function_us)
{
    uint64_t ahead_us = task->ahead_us;
    uint64_t end_us = last_us + TRANSFER_US + ahead_us;
    add(store, i,
        (cadre_trace_span){.kind = CADRE_TRACE_ALL_REDUCE,
            .step = step,
            .begin_ns = (at_us + ahead_us) * 1000,
            .end_ns = end_us * 1000,
            .arrived_ns = knows ? (last_us + ahead_us) * 1000 : 0,
            .bytes = 4096,
            .match = step + 1});
    add(store, i,
        (cadre_trace_span){.kind = CADRE_TRACE_FUNCTION,
            .step = step,
            .begin_ns = (function_us + ahead_us) * 1000,
            .end_ns = end_us * 1000});
    add(store, i,
        (cadre_trace_span){.kind = CADRE_TRACE_STEP,
            .step = step,
            .begin_ns = (function_us - task->checkpoint_us + ahead_us) * 1000,
            .end_ns = end_us * 1000});
}

void made_trace(struct trace_store *store, const struct made_task *tasks, uint32_t count,
    uint64_t steps, bool knows)
{
    uint64_t at_us = BEGAN_US;
    uint64_t come_us[8];
    assert_true(count <= 8);
    add_tasks(store, tasks, count, steps);
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t last_us = 0;
        for (uint32_t i = 0; i < count; i++) {
            come_us[i] = add_own(store, i, &tasks[i], step, at_us);
            last_us = come_us[i] > last_us ? come_us[i] : last_us;
        }
        for (uint32_t i = 0; i < count; i++) {
            add_collective(store, i, &tasks[i], step, come_us[i], last_us, knows,
                come_us[i] - tasks[i].function_us);
        }
        at_us = last_us + TRANSFER_US;
    }
    trace_store_align(store);
}
