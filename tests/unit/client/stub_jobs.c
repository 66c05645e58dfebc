/* SPDX-License-Identifier: Apache-2.0
 * The stub's methods. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub.h"

#include "common/wire/methods.h"

/* ---- jobs ---- */

static const struct metric metrics[] = {{"loss", 0.25}, {"accuracy", 0.5}};

static const struct task_info tasks[] = {
    {.slot = 0,
        .incarnation = 1,
        .state = TASK_EXITED,
        .worker = "alpha",
        .pid = 77,
        .has_exit = true,
        .exit = {.code = 3, .text = "bad luck"},
        .uses_cadre = true,
        .log_bytes = 12},
    {.slot = 1, .state = TASK_WAITING, .worker = ""},
};

struct job_info stub_job(uint64_t id, enum job_state state)
{
    return (struct job_info){.id = {id},
        .name = "digits",
        .program = "digits",
        .state = state,
        .code = CADRE_OK,
        .message = "a sentence",
        .workers = 2,
        .workers_min = 1,
        .roster = 1,
        .restarts = 6,
        .replicas = 3,
        .priority = -4,
        .submitted_us = 5,
        .started_us = 6,
        .ended_us = 7,
        .position = 8,
        .generation = 9,
        .checkpoint = "0/c",
        .exit_code = 10,
        .has_progress = true,
        .progress = {.stream = "train",
            .epoch = 1,
            .epochs = 4,
            .step = 2,
            .steps = 5,
            .samples_per_s = 100,
            .left_s = -1,
            .metrics = metrics,
            .metric_count = 2},
        .tasks = tasks,
        .task_count = 2};
}

bool stub_has_job(struct rpc_call *call, struct job_id id)
{
    struct cadre_error error;
    if (id.n == JOB_NONE) {
        rpc_call_finish(call, CADRE_NOT_FOUND, "there is no job 404");
    } else if (id.n == JOB_GARBAGE) {
        rpc_call_send(call, "\xff\xff\xff", 3, &error);
        rpc_call_finish(call, CADRE_OK, "");
    }
    return id.n != JOB_NONE && id.n != JOB_GARBAGE && id.n != JOB_HANGS;
}

/* The job that is asked for; false when the call was answered otherwise. */
static bool take_job(struct stub *stub, struct rpc_call *call, const void *data, size_t length,
    struct job_id *ret_id)
{
    struct job_request request;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_job_request(data, length, stub->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return false;
    }
    *ret_id = request.id;
    return stub_has_job(call, request.id);
}

static void on_get(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct job_id id;
    if (take_job(user, call, data, length, &id)) {
        struct job_info info = stub_job(id.n, JOB_RUNNING);
        STUB_SEND((struct stub *)user, call, job_info, &info);
        rpc_call_finish(call, CADRE_OK, "");
    }
}

static void on_list(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct job_info infos[] = {stub_job(2, JOB_QUEUED), stub_job(1, JOB_SUCCEEDED)};
    infos[0].has_progress = false;
    const struct list_jobs_response response = {.jobs = infos, .count = 2, .more = true};
    STUB_SEND((struct stub *)user, call, list_jobs_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

/* Counts the calls; true: the stream breaks off. */
static bool breaks_off(struct stub *stub, struct rpc_call *call, uint64_t id, int *counter)
{
    pthread_mutex_lock(&stub->lock);
    bool first = (*counter)++ == 0;
    pthread_mutex_unlock(&stub->lock);
    bool goes = id == JOB_GONE || (id == JOB_OUTAGE && first);
    cadre_status status = goes ? CADRE_UNAVAILABLE : stub->watch_fails;
    if (status != CADRE_OK) {
        rpc_call_finish(call, status, "the coordinator breaks off");
    }
    return status != CADRE_OK;
}

static void on_watch(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct job_id id;
    if (!take_job(stub, call, data, length, &id)) {
        return;
    }
    struct job_info info = stub_job(id.n, JOB_RUNNING);
    STUB_SEND(stub, call, job_info, &info);
    if (!breaks_off(stub, call, id.n, &stub->seen.watches)) {
        info.state = JOB_SUCCEEDED;
        STUB_SEND(stub, call, job_info, &info);
        rpc_call_finish(call, CADRE_OK, "");
    }
}

/* ---- logs ---- */

static void send_log(struct stub *stub, struct rpc_call *call, const struct log_chunk *chunk)
{
    STUB_SEND(stub, call, log_chunk, chunk);
}

static struct log_chunk text_chunk(uint32_t slot, uint64_t offset, const char *text)
{
    return (struct log_chunk){.job = {1},
        .slot = slot,
        .offset = offset,
        .bytes = (const uint8_t *)text,
        .size_bytes = strlen(text)};
}

/* Task 0 prints "one two three" in pieces, task 33 prints "x". */
static void on_logs(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct logs_request request;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_logs_request(data, length, stub->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    pthread_mutex_lock(&stub->lock);
    stub->seen.tail_bytes = request.tail_bytes;
    stub->seen.follow = request.follow;
    pthread_mutex_unlock(&stub->lock);
    struct log_chunk chunk = text_chunk(0, 0, "one t");
    if (stub->seen.logs > 0 && request.id.n == JOB_OUTAGE) {
        chunk = text_chunk(0, 0, "one two "); /* cut elsewhere this time */
    }
    uint64_t next = chunk.size_bytes;
    const struct log_mark marks[] = {{.offset = 0, .stream = LOG_STREAM_STDOUT, .received_us = 70},
        {.offset = 4, .stream = LOG_STREAM_STDERR, .received_us = 80}};
    chunk.marks = marks;
    chunk.mark_count = 2;
    send_log(stub, call, &chunk);
    if (breaks_off(stub, call, request.id.n, &stub->seen.logs)) {
        return;
    }
    chunk = text_chunk(0, next, &"one two three"[next]);
    send_log(stub, call, &chunk);
    chunk = text_chunk(33, 7, "x"); /* what is before it is of the other stream */
    chunk.skipped_bytes = 7;
    send_log(stub, call, &chunk);
    chunk = (struct log_chunk){.job = {1}, .slot = 0, .offset = 13, .end = true};
    send_log(stub, call, &chunk);
    rpc_call_finish(call, CADRE_OK, "");
}

/* ---- uploads and submit ---- */

static struct stub_blob *find_blob(struct stub *stub, const uint8_t hash[SHA256_BYTES])
{
    for (size_t i = 0; i < stub->seen.blob_count; i++) {
        if (memcmp(stub->seen.blobs[i].hash.bytes, hash, SHA256_BYTES) == 0) {
            return &stub->seen.blobs[i];
        }
    }
    return NULL;
}

static void on_missing(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct blob_list asked;
    struct cadre_error error;
    uint8_t missing[STUB_BLOBS_MAX][LIMIT_SHA256_BYTES];
    struct blob_list answer = {.sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])missing};
    wire_arena_reset(stub->arena);
    if (wire_unpack_blob_list(data, length, stub->arena, &asked, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    for (size_t i = 0; i < asked.count && answer.count < STUB_BLOBS_MAX; i++) {
        const struct stub_blob *blob = find_blob(stub, asked.sha256[i]);
        if (blob == NULL || !blob->whole) {
            memcpy(missing[answer.count++], asked.sha256[i], LIMIT_SHA256_BYTES);
        }
    }
    STUB_SEND(stub, call, blob_list, &answer);
    rpc_call_finish(call, CADRE_OK, "");
}

struct upload {
    struct stub_blob *blob;
    struct sha256_stream *hash;
};

static void on_blob(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct upload *upload = rpc_call_user(call);
    struct blob_chunk chunk;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_blob_chunk(data, length, stub->arena, &chunk, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    pthread_mutex_lock(&stub->lock);
    if (upload == NULL) {
        upload = calloc(1, sizeof *upload);
        upload->blob = &stub->seen.blobs[stub->seen.blob_count++];
        upload->blob->announced_bytes = chunk.size_bytes;
        memcpy(upload->blob->hash.bytes, chunk.sha256, SHA256_BYTES);
        sha256_open(&upload->hash, &error);
        rpc_call_set_user(call, upload);
    }
    sha256_add(upload->hash, chunk.bytes, chunk.byte_count, &error);
    upload->blob->got_bytes += chunk.byte_count;
    pthread_mutex_unlock(&stub->lock);
}

static void on_blob_end(struct rpc_call *call, void *user)
{
    struct stub *stub = user;
    struct upload *upload = rpc_call_user(call);
    struct sha256 made;
    struct cadre_error error;
    sha256_finish(upload->hash, &made, &error);
    pthread_mutex_lock(&stub->lock);
    upload->blob->whole = sha256_equal(&made, &upload->blob->hash);
    pthread_mutex_unlock(&stub->lock);
    rpc_call_send(call, "", 0, &error);
    rpc_call_finish(call, CADRE_OK, "");
}

static void on_blob_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct upload *upload = rpc_call_user(call);
    if (upload != NULL) {
        sha256_close(upload->hash);
        free(upload);
    }
}

static void describe_spec(const struct job_spec *spec, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");
    fprintf(out, "name=%s program=%s args=", spec->name, spec->program.name);
    for (size_t i = 0; i < spec->argument_count; i++) {
        fprintf(out, "%s,", spec->arguments[i]);
    }
    fprintf(out, " env=");
    for (size_t i = 0; i < spec->environment_count; i++) {
        fprintf(out, "%s,", spec->environment[i]);
    }
    fprintf(out, " files=");
    for (size_t i = 0; i < spec->file_count; i++) {
        const struct job_file *file = &spec->files[i];
        fprintf(out, "%s%s", file->name, file->executable ? "*" : "");
        if (job_file_is_object(file)) {
            fprintf(out, "=%s(%s %" PRIu64 ")", file->url, file->version, file->size_bytes);
        }
        fprintf(out, ",");
    }
    fprintf(out, " workers=%u replicas=%u strategy=%s priority=%d", spec->workers, spec->replicas,
        spec->strategy, spec->priority);
    fprintf(out, " min=%u restarts=%u wait=%" PRIu64 " stall=%" PRIu64, spec->workers_min,
        spec->max_restarts, spec->wait_us, spec->stall_us);
    fprintf(out, " every=%" PRIu64 " kept=%u folder=%s from=%" PRIu64, spec->checkpoint_every,
        spec->checkpoints_kept, spec->checkpoint_folder, spec->restore_from.n);
    fprintf(out, "%s%s", spec->outputs_folder[0] != '\0' ? " outputs=" : "", spec->outputs_folder);
    if (spec->gpus > 0) { /* and with them the rest of what is seldom */
        fprintf(out, " step=%" PRIu64 " gpus=%u", spec->restore_step, spec->gpus);
        fprintf(out, " limits=%" PRIu64 ",%u,%u,%" PRIu64, spec->limits.memory_bytes,
            spec->limits.cpu_thousandths, spec->limits.pids, spec->limits.time_limit_us);
        fprintf(out, "%s", spec->terminal ? " terminal" : "");
    }
    if (spec->has_restore_checkpoint) {
        const struct checkpoint_ref *from = &spec->restore_checkpoint;
        fprintf(out, " object=%s,%" PRIu64 ",%" PRIu64 ",%02x", from->path, from->position,
            from->manifest_bytes, from->manifest_sha256[0]);
    }
    fclose(out);
}

static void on_submit(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct job_spec spec;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_job_spec(data, length, stub->arena, &spec, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    pthread_mutex_lock(&stub->lock);
    if (stub->seen.submits < STUB_REQUEST_IDS) {
        memcpy(stub->seen.request_ids[stub->seen.submits], spec.request_id, sizeof spec.request_id);
    }
    stub->seen.submits++;
    bool is_lost = stub->submit_losses > 0;
    stub->submit_losses -= is_lost ? 1 : 0;
    describe_spec(&spec, stub->seen.spec, sizeof stub->seen.spec);
    pthread_mutex_unlock(&stub->lock);
    if (is_lost) {
        rpc_call_abort(call, CADRE_UNAVAILABLE, "Socket closed");
        return;
    }
    if (stub->submit_fails != CADRE_OK) {
        rpc_call_finish(call, stub->submit_fails, "the coordinator says no");
        return;
    }
    const struct submit_response response = {.id = {7}, .queued_before = 2, .note = "of step 20"};
    STUB_SEND(stub, call, submit_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

/* ---- outputs and the cluster ---- */

static void on_drain(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct drain_request request;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_drain_request(data, length, stub->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
    } else if (strcmp(request.worker, "alpha") != 0) {
        rpc_call_finish(call, CADRE_NOT_FOUND, "there is no worker of this name");
    } else {
        pthread_mutex_lock(&stub->lock);
        stub->seen.drains++;
        pthread_mutex_unlock(&stub->lock);
        rpc_call_send(call, "", 0, &error);
        rpc_call_finish(call, CADRE_OK, "");
    }
}

static void on_outputs(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct job_id id;
    if (take_job(user, call, data, length, &id)) {
        static const struct output_info outputs[] = {{"0/a", 11}, {"1/b/c", 0}};
        static const struct checkpoint_ref stored[] = {{.position = 4,
            .shared = true,
            .path = "checkpoint-4.json",
            .manifest_bytes = 5,
            .manifest_sha256 = {6}}};
        const struct list_outputs_response response = {.outputs = outputs,
            .count = 2,
            .stored = stored,
            .stored_count = 1,
            .store = "s3://bucket/run/"};
        STUB_SEND((struct stub *)user, call, list_outputs_response, &response);
        rpc_call_finish(call, CADRE_OK, "");
    }
}

static void on_output(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct get_output_request request;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_get_output_request(data, length, stub->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    bool is_short = strcmp(request.path, "0/short") == 0;
    if (!is_short && strcmp(request.path, "0/a") != 0) {
        rpc_call_finish(call, CADRE_NOT_FOUND, "job 1 left no such file");
        return;
    }
    struct blob_chunk chunk = {.has_header = true, .size_bytes = 11};
    STUB_SEND(stub, call, blob_chunk, &chunk);
    chunk = (struct blob_chunk){.bytes = (const uint8_t *)"hello ", .byte_count = 6};
    STUB_SEND(stub, call, blob_chunk, &chunk);
    if (!is_short) {
        chunk = (struct blob_chunk){.bytes = (const uint8_t *)"world", .byte_count = 5};
        STUB_SEND(stub, call, blob_chunk, &chunk);
    }
    rpc_call_finish(call, CADRE_OK, "");
}

static void on_workers(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    struct list_workers_request request;
    struct cadre_error error;
    wire_arena_reset(stub->arena);
    if (wire_unpack_list_workers_request(data, length, stub->arena, &request, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    if (strcmp(request.worker, "absent") == 0) {
        rpc_call_finish(call, CADRE_NOT_FOUND, "no worker is named absent");
        return;
    }
    static const struct gpu gpus[] = {{.name = "NVIDIA H200",
                                          .uuid = "GPU-1",
                                          .bus = "0000:65:00.0",
                                          .memory_bytes = 7,
                                          .compute_major = 9,
                                          .unused = ""},
        {.name = "x", .unused = "too old"}};
    static const struct worker_info workers[] = {{.id = {1},
                                                     .name = "alpha",
                                                     .host = "here",
                                                     .version = "0.2.0",
                                                     .slots = 4,
                                                     .slots_used = 1,
                                                     .cpus = 8,
                                                     .memory_bytes = 1 << 30,
                                                     .connected = true,
                                                     .joined_us = 9,
                                                     .gpus = {.devices = gpus,
                                                         .count = 2,
                                                         .usable = 1,
                                                         .driver = "580.1",
                                                         .runtime = "CUDA 13.0",
                                                         .nccl = 22809,
                                                         .reason = "1 is too old"}},
        {.id = {2}, .name = "beta", .gpus = {.omitted = 8, .usable = 8}}};
    const struct list_workers_response response = {
        .workers = workers, .count = request.worker[0] != '\0' ? 1 : 2};
    STUB_SEND(stub, call, list_workers_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

static void on_version(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    (void)data;
    (void)length;
    const struct version_response response = {.version = "1.2.3",
        .agent_protocol = 4,
        .task_frame = 5,
        .started_us = 6,
        .jobs_live = 7,
        .workers = 8,
        .request_ids = stub->request_ids,
        .objects = stub->objects};
    STUB_SEND(stub, call, version_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

static void on_coordinators(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct stub *stub = user;
    (void)data;
    (void)length;
    static const struct coordinator_info coordinators[] = {{.name = "c1",
                                                               .addresses = "h1:1",
                                                               .state = COORDINATOR_FOLLOWER,
                                                               .text = "reads",
                                                               .term = {5, 6, 7},
                                                               .since_us = 8,
                                                               .applied = 9,
                                                               .head = 10,
                                                               .version = "1.2.3",
                                                               .age_us = 11},
        {.name = "c2",
            .addresses = "h2:1",
            .state = COORDINATOR_LEADING,
            .text = "",
            .leads = true,
            .version = "1.2.4"}};
    const struct list_coordinators_response response = {coordinators, 2};
    STUB_SEND(stub, call, list_coordinators_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

size_t stub_methods(struct stub *stub, struct rpc_method *ret_methods)
{
    static const struct rpc_server_ops get_ops = {.on_message = on_get};
    static const struct rpc_server_ops list_ops = {.on_message = on_list};
    static const struct rpc_server_ops watch_ops = {.on_message = on_watch};
    static const struct rpc_server_ops logs_ops = {.on_message = on_logs};
    static const struct rpc_server_ops missing_ops = {.on_message = on_missing};
    static const struct rpc_server_ops blob_ops = {
        .on_message = on_blob, .on_half_close = on_blob_end, .on_closed = on_blob_closed};
    static const struct rpc_server_ops submit_ops = {.on_message = on_submit};
    static const struct rpc_server_ops outputs_ops = {.on_message = on_outputs};
    static const struct rpc_server_ops output_ops = {.on_message = on_output};
    static const struct rpc_server_ops drain_ops = {.on_message = on_drain};
    static const struct rpc_server_ops workers_ops = {.on_message = on_workers};
    static const struct rpc_server_ops version_ops = {.on_message = on_version};
    static const struct rpc_server_ops coordinators_ops = {.on_message = on_coordinators};
    const struct rpc_method methods[] = {
        {METHOD_JOBS_GET, false, false, 65536, &get_ops, stub},
        {METHOD_JOBS_CANCEL, false, false, 65536, &get_ops, stub},
        {METHOD_JOBS_LIST, false, false, 65536, &list_ops, stub},
        {METHOD_JOBS_WATCH, false, true, 65536, &watch_ops, stub},
        {METHOD_JOBS_LOGS, false, true, 65536, &logs_ops, stub},
        {METHOD_JOBS_MISSING_BLOBS, false, false, LIMIT_SPEC_BYTES, &missing_ops, stub},
        {METHOD_JOBS_PUT_BLOB, true, false, LIMIT_BLOB_CHUNK_BYTES + 4096, &blob_ops, stub},
        {METHOD_JOBS_SUBMIT, false, false, LIMIT_SPEC_BYTES + 4096, &submit_ops, stub},
        {METHOD_JOBS_LIST_OUTPUTS, false, false, 65536, &outputs_ops, stub},
        {METHOD_JOBS_GET_OUTPUT, false, true, 65536, &output_ops, stub},
        {METHOD_JOBS_VERIFY, false, false, 65536, &stub_verify_ops, stub},
        {METHOD_JOBS_DRAIN, false, false, 65536, &drain_ops, stub},
        {METHOD_JOBS_LIST_WORKERS, false, false, 65536, &workers_ops, stub},
        {METHOD_JOBS_VERSION, false, false, 65536, &version_ops, stub},
        {METHOD_COORDINATORS_LIST, false, false, 65536, &coordinators_ops, stub},
    };
    _Static_assert(sizeof methods / sizeof methods[0] <= STUB_METHODS_MAX, "the table must fit");
    memcpy(ret_methods, methods, sizeof methods);
    return sizeof methods / sizeof methods[0];
}
