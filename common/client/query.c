/* SPDX-License-Identifier: Apache-2.0
 * The calls of one request and one answer: a job, the jobs, cancel, outputs, workers, drain, the
 * version. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/client/query.h"
#include "common/client/state.h"
#include "common/view/result.h"
#include "common/view/view.h"
#include "common/wire/methods.h"

struct query {
    struct operation base;
    query_read_fn *read;
    /* Updates the client once the call has ended with OK; or NULL. */
    void (*learn)(struct cadre_client *client, void *result);
    void *result;
    void **ret_result;
};

cadre_status query_no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the answer");
}

static cadre_status query_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct query *query = (struct query *)operation;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (arena == NULL) {
        return query_no_memory(error);
    }
    cadre_status status = query->read(data, length, arena, &query->result, error);
    if (status != CADRE_OK) {
        wire_arena_free(arena);
    }
    return status;
}

static cadre_status query_ended(
    struct operation *operation, cadre_status status, struct cadre_error *error)
{
    struct query *query = (struct query *)operation;
    (void)error;
    if (status == CADRE_OK && query->learn != NULL && query->result != NULL) {
        query->learn(operation->client, query->result);
    }
    if (status == CADRE_OK && query->ret_result != NULL) {
        *query->ret_result = query->result;
        query->result = NULL;
    }
    return status;
}

static void query_release(struct operation *operation)
{
    struct query *query = (struct query *)operation;
    cadre_result_release(query->result);
    operation_free(operation);
}

static const struct operation_kind query_kind = {
    .message = query_message, .call_ended = query_ended, .release = query_release};

struct query *query_new(
    cadre_client *client, query_read_fn *read, void **ret_result, const cadre_then *then)
{
    struct query *query = operation_new(client, &query_kind, sizeof *query, then);
    if (query != NULL) {
        query->read = read;
        query->ret_result = ret_result;
    }
    return query;
}

static cadre_status query_ask(struct query *query, const char *path, const cadre_then *then)
{
    struct cadre_error error = {0};
    const struct operation_call call = {.path = path, .has_timeout = true};
    cadre_status status = operation_send(&query->base, &call, &error);
    return operation_launch(&query->base, status, &error, then);
}

cadre_status query_launch(struct query *query, const char *path, cadre_status packed,
    struct cadre_error *error, const cadre_then *then)
{
    const struct operation_call call = {.path = path, .has_timeout = true};
    cadre_status status = packed == CADRE_OK ? operation_send(&query->base, &call, error) : packed;
    return operation_launch(&query->base, status, error, then);
}

static cadre_status ask_about_job(
    struct query *query, const char *path, uint64_t job, const cadre_then *then)
{
    struct cadre_error error = {0};
    const struct job_request request = {.id = {job}};
    cadre_status status = wire_pack_job_request(&request, &query->base.client->packed, &error);
    return query_launch(query, path, status, &error, then);
}

/* ---- a job ---- */

static cadre_status read_job(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct job_info info;
    CADRE_TRY(wire_unpack_job_info(data, length, arena, &info, error));
    *ret_result = view_job_new(&info, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_job(
    cadre_client *client, uint64_t job, cadre_job **ret_job, const cadre_then *then)
{
    struct query *query = query_new(client, read_job, (void **)ret_job, then);
    return query != NULL ? ask_about_job(query, METHOD_JOBS_GET, job, then)
                         : operation_new_status(client, then);
}

cadre_status cadre_client_cancel(
    cadre_client *client, uint64_t job, cadre_job **ret_job, const cadre_then *then)
{
    struct query *query = query_new(client, read_job, (void **)ret_job, then);
    return query != NULL ? ask_about_job(query, METHOD_JOBS_CANCEL, job, then)
                         : operation_new_status(client, then);
}

cadre_status cadre_client_checkpoint(
    cadre_client *client, uint64_t job, cadre_job **ret_job, const cadre_then *then)
{
    struct query *query = query_new(client, read_job, (void **)ret_job, then);
    return query != NULL ? ask_about_job(query, METHOD_JOBS_CHECKPOINT, job, then)
                         : operation_new_status(client, then);
}

/* ---- the jobs ---- */

static cadre_status read_jobs(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct list_jobs_response response;
    CADRE_TRY(wire_unpack_list_jobs_response(data, length, arena, &response, error));
    *ret_result = view_jobs_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_jobs(
    cadre_client *client, cadre_job_list **ret_jobs, const cadre_then *then)
{
    struct query *query = query_new(client, read_jobs, (void **)ret_jobs, then);
    return query != NULL ? query_ask(query, METHOD_JOBS_LIST, then)
                         : operation_new_status(client, then);
}

/* ---- outputs ---- */

/* "folder/path" of each, one behind the other in `texts`. */
static void join_stored(const struct list_outputs_response *response,
    cadre_stored_checkpoint *stored, char *texts, size_t room)
{
    size_t folder = strlen(response->store);
    while (folder > 0 && response->store[folder - 1] == '/') {
        folder--;
    }
    for (size_t i = 0; i < response->stored_count; i++) {
        const struct checkpoint_ref *ref = &response->stored[i];
        int length = snprintf(texts, room, "%.*s/%s", (int)folder, response->store, ref->path);
        stored[i] = (cadre_stored_checkpoint){
            .path = texts, .step = ref->position, .manifest_bytes = ref->manifest_bytes};
        memcpy(stored[i].manifest_sha256, ref->manifest_sha256, sizeof stored[i].manifest_sha256);
        texts += length + 1;
        room -= (size_t)length + 1;
    }
}

/* Bytes of all their texts. */
static size_t count_stored(const struct list_outputs_response *response)
{
    size_t bytes = 0;
    for (size_t i = 0; i < response->stored_count; i++) {
        bytes += strlen(response->store) + strlen(response->stored[i].path) + 2;
    }
    return bytes;
}

static cadre_status read_outputs(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct list_outputs_response response;
    CADRE_TRY(wire_unpack_list_outputs_response(data, length, arena, &response, error));
    cadre_output_list *list = result_new(sizeof *list, arena);
    cadre_output *outputs =
        list != NULL ? result_array(list, 0, response.count, sizeof *outputs) : NULL;
    cadre_stored_checkpoint *stored =
        outputs != NULL ? result_array(list, 1, response.stored_count, sizeof *stored) : NULL;
    size_t room = count_stored(&response);
    char *texts = stored != NULL ? result_array(list, 2, room, 1) : NULL;
    if (texts == NULL) {
        result_discard(list);
        return query_no_memory(error);
    }
    for (size_t i = 0; i < response.count; i++) {
        outputs[i] = (cadre_output){
            .path = response.outputs[i].path, .size_bytes = response.outputs[i].size_bytes};
    }
    join_stored(&response, stored, texts, room);
    *list = (cadre_output_list){.outputs = outputs,
        .count = response.count,
        .more = response.more,
        .stored = {.checkpoints = stored, .count = response.stored_count},
        .folder = response.folder};
    *ret_result = list;
    return CADRE_OK;
}

cadre_status cadre_client_outputs(
    cadre_client *client, uint64_t job, cadre_output_list **ret_outputs, const cadre_then *then)
{
    struct query *query = query_new(client, read_outputs, (void **)ret_outputs, then);
    return query != NULL ? ask_about_job(query, METHOD_JOBS_LIST_OUTPUTS, job, then)
                         : operation_new_status(client, then);
}

/* ---- the cluster ---- */

static cadre_status ask_drain(
    cadre_client *client, const struct drain_request *request, const cadre_then *then)
{
    static const struct operation_kind kind = {.release = operation_free};
    const struct operation_call call = {.path = METHOD_JOBS_DRAIN, .has_timeout = true};
    struct operation *operation = operation_new(client, &kind, sizeof *operation, then);
    if (operation == NULL) {
        return operation_new_status(client, then);
    }
    struct cadre_error error = {0};
    cadre_status status = wire_pack_drain_request(request, &client->packed, &error);
    if (status == CADRE_OK) {
        status = operation_send(operation, &call, &error);
    }
    return operation_launch(operation, status, &error, then);
}

cadre_status cadre_client_drain(
    cadre_client *client, const char *worker, const char *reason, const cadre_then *then)
{
    const struct drain_request request = {.worker = worker, .reason = reason != NULL ? reason : ""};
    return ask_drain(client, &request, then);
}

cadre_status cadre_client_undrain(cadre_client *client, const char *worker, const cadre_then *then)
{
    const struct drain_request request = {.worker = worker, .reason = "", .ends = true};
    return ask_drain(client, &request, then);
}

static cadre_status read_workers(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct list_workers_response response;
    CADRE_TRY(wire_unpack_list_workers_response(data, length, arena, &response, error));
    *ret_result = view_workers_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_workers(cadre_client *client, const char *worker,
    cadre_worker_list **ret_workers, const cadre_then *then)
{
    struct query *query = query_new(client, read_workers, (void **)ret_workers, then);
    if (query == NULL) {
        return operation_new_status(client, then);
    }
    struct cadre_error error = {0};
    const struct operation_call call = {.path = METHOD_JOBS_LIST_WORKERS, .has_timeout = true};
    const struct list_workers_request request = {.worker = worker == NULL ? "" : worker};
    cadre_status status = CADRE_OK;
    if (worker != NULL && worker[0] == '\0') {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "the worker's name is empty");
    }
    if (status == CADRE_OK) {
        status = wire_pack_list_workers_request(&request, &query->base.client->packed, &error);
    }
    if (status == CADRE_OK) {
        status = operation_send(&query->base, &call, &error);
    }
    return operation_launch(&query->base, status, &error, then);
}

static cadre_status read_login(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct login_response response;
    CADRE_TRY(wire_unpack_login_response(data, length, arena, &response, error));
    *ret_result = view_login_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

cadre_status cadre_client_login(
    cadre_client *client, cadre_login **ret_login, const cadre_then *then)
{
    struct query *query = query_new(client, read_login, (void **)ret_login, then);
    if (query == NULL) {
        return operation_new_status(client, then);
    }
    return query_ask(query, METHOD_JOBS_LOGIN, then);
}

static cadre_status read_version(const void *data, size_t length, struct wire_arena *arena,
    void **ret_result, struct cadre_error *error)
{
    struct version_response response;
    CADRE_TRY(wire_unpack_version_response(data, length, arena, &response, error));
    *ret_result = view_version_new(&response, arena);
    return *ret_result != NULL ? CADRE_OK : query_no_memory(error);
}

/* For error messages about methods that this coordinator does not have, and for submissions. */
static void remember_version(struct cadre_client *client, void *result)
{
    const cadre_coordinator_version *version = result;
    free(client->version);
    client->version = strdup(version->version);
    client->request_ids = version->request_ids;
    client->objects = version->objects;
}

cadre_status cadre_client_version(
    cadre_client *client, cadre_coordinator_version **ret_version, const cadre_then *then)
{
    struct query *query = query_new(client, read_version, (void **)ret_version, then);
    if (query == NULL) {
        return operation_new_status(client, then);
    }
    query->learn = remember_version;
    return query_ask(query, METHOD_JOBS_VERSION, then);
}
