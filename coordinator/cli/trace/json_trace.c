/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/json_trace.h"

#include "common/json/json_value.h"

static json_t *json_of_split(const double split[TRACE_SPLITS])
{
    json_t *object = json_object();
    for (int part = 0; part < TRACE_SPLITS; part++) {
        const char *name = trace_split_name((enum trace_split)part);
        json_object_set_new(object, name, json_real(split[part]));
    }
    return object;
}

static json_t *json_of_traced(const struct stored_process *process, const struct trace_share *share)
{
    static const char *const states[] = {[CADRE_TRACE_ASKED] = "asked",
        [CADRE_TRACE_RECORDS] = "records",
        [CADRE_TRACE_ENDED] = "ended",
        [CADRE_TRACE_GONE] = "gone"};
    const cadre_trace_task *task = &process->task;
    size_t state = (size_t)task->state;
    bool known = state > 0 && state < sizeof states / sizeof states[0];
    bool measured = task->error_ns != UINT64_MAX;
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:f, s:o, s:o}", "task",
        json_number(task->task), "incarnation", json_number(task->incarnation), "worker",
        json_text(process->worker), "pid", json_number(task->pid), "state",
        known ? states[state] : "unknown", "clock_error_us",
        measured ? json_real((double)task->error_ns / 1000) : json_null(), "spans",
        json_number(process->received), "lost", json_number(task->lost), "missing",
        json_number(task->missing), "awaited", share->awaited, "split", json_of_split(share->split),
        "longer", json_of_split(share->longer));
}

json_t *json_of_trace(const struct trace_store *store, const struct trace_conclusion *conclusion,
    uint64_t job, const char *file, const char *sentence)
{
    json_t *tasks = json_array();
    bool slow = conclusion->slowest != TRACE_NO_PROCESS;
    for (size_t i = 0; i < conclusion->share_count; i++) {
        json_array_append_new(tasks, json_of_traced(&store->processes[i], &conclusion->shares[i]));
    }
    bool waits = conclusion->longest_for != TRACE_NO_PROCESS;
    json_t *longest = json_pack("{s:o, s:f, s:f, s:o}", "step", json_number(conclusion->longest),
        "step_us", conclusion->longest_us, "wait", conclusion->longest_wait, "awaited",
        waits ? json_number(store->processes[conclusion->longest_for].task.task) : json_null());
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o, s:o}", "id",
        json_number(job), "first", json_number(store->first), "end", json_number(store->end),
        "file", json_text(file), "spans", json_number(store->span_count), "lost",
        json_number(trace_store_lost(store)), "steps", json_number(conclusion->steps), "step_us",
        conclusion->step_us, "split", json_of_split(conclusion->split), "awaited",
        slow ? json_number(store->processes[conclusion->slowest].task.task) : json_null(),
        "longest", longest, "conclusion", json_text(sentence), "incomplete",
        json_text(store->message), "tasks", tasks);
}
