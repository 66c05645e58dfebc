/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_trace: what the tasks of a job do in some of its steps, as a stream. It ends with
 * the coordinator, because the tasks do not go on for another one. */
#include "cadre/client_trace.h"
#include "common/client/state.h"
#include "common/view/view.h"
#include "common/wire/methods.h"

#define STEPS_DEFAULT 10

struct trace {
    struct operation base;
    struct trace_request request;
    cadre_trace_fn *on_trace;
    void *user;
    cadre_trace_span spans[LIMIT_TRACE_SPANS]; /* of the message at hand */
    cadre_trace_task tasks[LIMIT_TRACE_SPANS];
};

static cadre_status trace_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct trace *trace = (struct trace *)operation;
    struct trace_response response;
    CADRE_TRY(wire_unpack_trace_response(data, length, operation->client->arena, &response, error));
    view_spans(response.spans, response.span_count, trace->spans);
    view_traced_tasks(response.tasks, response.task_count, trace->tasks);
    const cadre_trace piece = {.first = response.first,
        .end = response.end,
        .clock_ns = response.clock_ns,
        .wall_us = response.wall_us,
        .tasks = trace->tasks,
        .task_count = response.task_count,
        .task = response.slot,
        .incarnation = response.incarnation,
        .spans = trace->spans,
        .span_count = response.span_count,
        .own_numbers = response.own_numbers,
        .ended = response.ended,
        .message = response.text};
    if (!trace->on_trace(&piece, trace->user)) {
        operation_stop(operation);
    }
    return CADRE_OK;
}

static const struct operation_kind trace_kind = {
    .message = trace_message, .release = operation_free};

static cadre_status trace_start(struct trace *trace, struct cadre_error *error)
{
    const struct operation_call call = {.path = METHOD_JOBS_TRACE, .server_streams = true};
    if (trace->on_trace == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_client_trace: the callback is NULL: give a function");
    }
    CADRE_TRY(wire_pack_trace_request(&trace->request, &trace->base.client->packed, error));
    return operation_send(&trace->base, &call, error);
}

cadre_status cadre_client_trace(cadre_client *client, uint64_t job,
    const cadre_trace_options *options, cadre_trace_fn *on_trace, void *user,
    const cadre_then *then)
{
    static const cadre_trace_options defaults;
    struct cadre_error error = {0};
    struct trace *trace = operation_new(client, &trace_kind, sizeof *trace, then);
    options = options != NULL ? options : &defaults;
    if (trace == NULL) {
        return operation_new_status(client, then);
    }
    trace->request = (struct trace_request){.id = {job},
        .next = !options->from_first,
        .first = options->from_first ? options->first : 0,
        .steps = options->steps > 0 ? options->steps : STEPS_DEFAULT,
        .limit_us = options->limit_us};
    trace->on_trace = on_trace;
    trace->user = user;
    return operation_launch(&trace->base, trace_start(trace, &error), &error, then);
}
