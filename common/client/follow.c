/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_watch and cadre_client_logs: a job's state, and what its tasks print, as streams.
 * Both go on after the coordinator was away. */
#include <stdlib.h>
#include <string.h>

#include "common/client/state.h"
#include "common/view/view.h"
#include "common/wire/methods.h"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to follow the job");
}

/* ---- a job's state ---- */

struct watch {
    struct operation base;
    uint64_t job;
    cadre_job_fn *on_job;
    void *user;
};

static cadre_status watch_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct watch *watch = (struct watch *)operation;
    struct job_info info;
    CADRE_TRY(wire_unpack_job_info(data, length, operation->client->arena, &info, error));
    cadre_job *job = view_job_new(&info, NULL);
    if (job == NULL) {
        return no_memory(error);
    }
    bool more = watch->on_job(job, watch->user);
    cadre_result_release(job);
    if (!more) {
        operation_stop(operation);
    }
    return CADRE_OK;
}

static cadre_status no_callback(const char *function, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_INVALID_ARGUMENT, "%s: the callback is NULL: give a function", function);
}

static cadre_status watch_start(struct operation *operation, struct cadre_error *error)
{
    const struct watch *watch = (struct watch *)operation;
    if (watch->on_job == NULL) {
        return no_callback("cadre_client_watch", error);
    }
    const struct operation_call call = {.path = METHOD_JOBS_WATCH, .server_streams = true};
    const struct job_request request = {.id = {watch->job}};
    CADRE_TRY(wire_pack_job_request(&request, &operation->client->packed, error));
    return operation_send(operation, &call, error);
}

static const struct operation_kind watch_kind = {
    .message = watch_message, .restart = watch_start, .release = operation_free};

cadre_status cadre_client_watch(
    cadre_client *client, uint64_t job, cadre_job_fn *on_job, void *user, const cadre_then *then)
{
    struct watch *watch = operation_new(client, &watch_kind, sizeof *watch, then);
    if (watch == NULL) {
        return operation_new_status(client, then);
    }
    watch->job = job;
    watch->on_job = on_job;
    watch->user = user;
    struct cadre_error error = {0};
    return operation_launch(&watch->base, watch_start(&watch->base, &error), &error, then);
}

/* ---- logs ---- */

struct logs {
    struct operation base;
    struct logs_request request;
    cadre_log_fn *on_log;
    void *user;
    uint64_t
        *delivered; /* by task: the end of the delivered bytes; what is received again is dropped */
    bool *begun;    /* by task: `delivered` counts */
    bool enough;    /* the caller wants no more */
    size_t tasks;
};

/* Room for one more task. */
static cadre_status add_task_state(struct logs *logs, uint32_t task, struct cadre_error *error)
{
    if (task < logs->tasks) {
        return CADRE_OK;
    }
    size_t tasks = logs->tasks * 2 > task ? logs->tasks * 2 : (size_t)task + 16;
    uint64_t *delivered = realloc(logs->delivered, tasks * sizeof *delivered);
    logs->delivered = delivered != NULL ? delivered : logs->delivered;
    bool *begun = realloc(logs->begun, tasks * sizeof *begun);
    logs->begun = begun != NULL ? begun : logs->begun;
    if (delivered == NULL || begun == NULL) {
        return no_memory(error);
    }
    memset(logs->delivered + logs->tasks, 0, (tasks - logs->tasks) * sizeof *delivered);
    memset(logs->begun + logs->tasks, 0, (tasks - logs->tasks) * sizeof *begun);
    logs->tasks = tasks;
    return CADRE_OK;
}

/* A coordinator of an earlier version sends both streams, and does not say which is which. */
static bool is_of_other_stream(const struct logs *logs, const struct log_mark *mark)
{
    enum log_stream stream = mark->stream == LOG_STREAM_ANY ? LOG_STREAM_STDOUT : mark->stream;
    return logs->request.stream != LOG_STREAM_ANY && logs->request.stream != stream;
}

/* Passes on the bytes of one mark, without those that were delivered. */
static void deliver_run(struct logs *logs, const struct log_chunk *chunk, size_t mark,
    uint64_t delivered, uint64_t *left_out)
{
    const struct log_mark *marks = chunk->marks;
    const struct log_mark unknown = {.offset = chunk->offset};
    const struct log_mark *this = chunk->mark_count > 0 ? &marks[mark] : &unknown;
    bool last = mark + 1 >= chunk->mark_count;
    uint64_t begin = this->offset > delivered ? this->offset : delivered;
    uint64_t end = last ? chunk->offset + chunk->size_bytes : marks[mark + 1].offset;
    begin = begin < end && !is_of_other_stream(logs, this) ? begin : end;
    if (begin == end && !(last && chunk->end)) {
        return; /* delivered before the coordinator was away */
    }
    const cadre_log log = {.task = chunk->slot,
        .offset = begin,
        .bytes = begin < end ? (const char *)chunk->bytes + (begin - chunk->offset) : "",
        .size = (size_t)(end - begin),
        .end = last && chunk->end,
        .left_out = *left_out,
        .stream = (cadre_log_stream)this->stream,
        .received_us = this->received_us};
    *left_out = 0;
    logs->enough = !logs->on_log(&log, logs->user);
}

static cadre_status deliver(
    struct logs *logs, const struct log_chunk *chunk, uint64_t delivered, uint64_t left_out)
{
    size_t marks = chunk->mark_count > 0 ? chunk->mark_count : 1;
    for (size_t i = 0; i < marks && !logs->enough; i++) {
        deliver_run(logs, chunk, i, delivered, &left_out);
    }
    if (logs->enough) {
        operation_stop(&logs->base);
    }
    return CADRE_OK;
}

static cadre_status logs_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct logs *logs = (struct logs *)operation;
    struct log_chunk chunk;
    CADRE_TRY(wire_unpack_log_chunk(data, length, operation->client->arena, &chunk, error));
    CADRE_TRY(add_task_state(logs, chunk.slot, error));
    uint64_t begin =
        chunk.offset - (chunk.skipped_bytes < chunk.offset ? chunk.skipped_bytes : chunk.offset);
    uint64_t end = chunk.offset + chunk.size_bytes;
    const struct logs_request *request = &logs->request;
    bool from_start = logs->begun[chunk.slot] ||
                      request->tail_bytes + request->tail_lines + request->since_us == 0;
    uint64_t delivered = from_start ? logs->delivered[chunk.slot] : begin;
    logs->begun[chunk.slot] = true;
    logs->delivered[chunk.slot] = end > delivered ? end : delivered;
    return deliver(logs, &chunk, delivered, begin > delivered ? begin - delivered : 0);
}

static cadre_status logs_start(struct operation *operation, struct cadre_error *error)
{
    const struct logs *logs = (struct logs *)operation;
    if (logs->on_log == NULL) {
        return no_callback("cadre_client_logs", error);
    }
    const struct operation_call call = {.path = METHOD_JOBS_LOGS, .server_streams = true};
    CADRE_TRY(wire_pack_logs_request(&logs->request, &operation->client->packed, error));
    return operation_send(operation, &call, error);
}

/* From the start of all logs, or from the same time: what was delivered is dropped, and a task that
 * had no log has no tail. */
static cadre_status logs_restart(struct operation *operation, struct cadre_error *error)
{
    struct logs *logs = (struct logs *)operation;
    logs->request.tail_bytes = 0;
    logs->request.tail_lines = 0;
    return logs_start(operation, error);
}

static void logs_release(struct operation *operation)
{
    struct logs *logs = (struct logs *)operation;
    free(logs->delivered);
    free(logs->begun);
    operation_free(operation);
}

static const struct operation_kind logs_kind = {
    .message = logs_message, .restart = logs_restart, .release = logs_release};

/* Reading the logs once does not wait for a lost coordinator. */
static const struct operation_kind logs_once_kind = {
    .message = logs_message, .release = logs_release};

cadre_status cadre_client_logs(cadre_client *client, uint64_t job, const cadre_log_options *options,
    cadre_log_fn *on_log, void *user, const cadre_then *then)
{
    static const cadre_log_options defaults;
    options = options != NULL ? options : &defaults;
    struct logs *logs =
        operation_new(client, options->follow ? &logs_kind : &logs_once_kind, sizeof *logs, then);
    if (logs == NULL) {
        return operation_new_status(client, then);
    }
    logs->request = (struct logs_request){.id = {job},
        .one_slot = options->one_task,
        .slot = options->task,
        .follow = options->follow,
        .tail_bytes = options->tail_bytes,
        .stream = (enum log_stream)options->stream,
        .tail_lines = options->tail_lines,
        .since_us = options->since_us};
    logs->on_log = on_log;
    logs->user = user;
    struct cadre_error error = {0};
    return operation_launch(&logs->base, logs_start(&logs->base, &error), &error, then);
}
