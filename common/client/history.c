/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_history: what happened to a job, and when. */
#include "common/client/query.h"
#include "common/client/result.h"
#include "common/client/state.h"
#include "common/wire/methods.h"

/* Arrays of the result. */
enum { EVENTS, JOB, METRICS };
_Static_assert(METRICS < RESULT_ARRAYS, "a result has so many arrays");

#define KIND_IS(name)                                                                              \
    _Static_assert((int)CADRE_EVENT_##name == (int)HISTORY_##name, "kinds have the same numbers")
KIND_IS(SUBMITTED);
KIND_IS(STARTED);
KIND_IS(TASK_STARTED);
KIND_IS(TASK_ENDED);
KIND_IS(TASK_LOST);
KIND_IS(GENERATION);
KIND_IS(CHECKPOINT);
KIND_IS(CHECKPOINT_LOST);
KIND_IS(STALLED);
KIND_IS(WENT_ON);
KIND_IS(HALTED);
KIND_IS(DRAINED);
KIND_IS(PREEMPTED);
KIND_IS(DIVERGED);
KIND_IS(ENDING);
KIND_IS(ENDED);
KIND_IS(COORDINATOR_RESTARTED);

const char *cadre_event_kind_name(cadre_event_kind kind)
{
    return history_kind_name((enum history_kind)kind);
}

static void client_history_fill(const struct history_event *from, cadre_event *ret)
{
    bool of_task = from->slot != HISTORY_SLOT_NONE;
    *ret = (cadre_event){.number = from->number,
        .time_us = from->time_us,
        .kind = (cadre_event_kind)from->kind,
        .generation = from->generation,
        .position = from->position,
        .of_task = of_task,
        .task = of_task ? from->slot : 0,
        .incarnation = from->incarnation,
        .tasks = from->tasks,
        .undone = from->undone,
        .restarted = from->restarted,
        .waited_us = from->waited_us,
        .exit_code = from->exit_code,
        .exit_signal = from->exit_signal,
        .state = (cadre_job_state)from->state,
        .code = from->code,
        .worker = from->worker,
        .roster = from->roster,
        .text = from->text};
}

static cadre_status read_history(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct history_response response;
    CADRE_TRY(wire_unpack_history_response(data, length, arena, &response, error));
    cadre_history *history = result_new(sizeof *history, arena);
    cadre_event *events = NULL;
    cadre_job *job = NULL;
    cadre_job_metric *metrics = NULL;
    if (history != NULL) {
        events = result_array(history, EVENTS, response.event_count, sizeof *events);
        job = result_array(history, JOB, 1, sizeof *job);
        metrics =
            result_array(history, METRICS, view_metric_count(&response.job), sizeof *metrics);
    }
    if (events == NULL || job == NULL || metrics == NULL) {
        result_discard(history);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the answer");
    }
    for (size_t i = 0; i < response.event_count; i++) {
        client_history_fill(&response.events[i], &events[i]);
    }
    view_job(&response.job, metrics, NULL, job);
    *history = (cadre_history){.job = job,
        .events = events,
        .count = response.event_count,
        .last = response.last,
        .dropped = response.dropped,
        .more = response.more};
    *ret_result = history;
    return CADRE_OK;
}

cadre_status cadre_client_history(cadre_client *client, uint64_t job, uint64_t after,
    uint32_t limit, cadre_history **ret_history, const cadre_then *then)
{
    struct query *query = query_new(client, read_history, (void **)ret_history, then);
    struct history_request request = {.id = {job},
        .after = after,
        .limit = limit < LIMIT_EVENTS_LISTED ? limit : LIMIT_EVENTS_LISTED};
    struct cadre_error error = {0};
    if (query == NULL) {
        return operation_new_status(client, then);
    }
    cadre_status status = wire_pack_history_request(&request, &client->packed, &error);
    return query_launch(query, METHOD_JOBS_HISTORY, status, &error, then);
}
