/* SPDX-License-Identifier: Apache-2.0
 * Receives files over a client stream: PutBlob and Agents.PutOutput. A file is written to a
 * temporary name, checked, synced and renamed, so it is whole or not there. The name of an output
 * is synced, too, before its worker is answered, because the worker then drops its own copy; those
 * of contents are synced when a record refers to them (file_store.c). Threads of the pool do all
 * file work, for several uploads at once. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/disk.h"
#include "common/rpc/file_work.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/contents/received_objects.h"
#include "coordinator/daemon/contents/worker_permissions.h"

struct receive {
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it was cancelled */
    bool busy;             /* a thread works, or it waits: nothing may be freed */
    struct file_work work;
    struct contents_wait wait;
    struct cadre_error error; /* of the thread */
    char *temporary;
    char *target;
    int fd;         /* -1: made with the first chunk */
    uint8_t *chunk; /* that is being written */
    size_t chunk_bytes;
    size_t chunk_capacity;
    uint64_t expected_bytes;
    uint64_t got_bytes;
    uint64_t replaced_bytes;    /* of the file that it replaces */
    struct sha256_stream *hash; /* of a blob; NULL for outputs */
    struct sha256 wanted;
    char worker[LIMIT_NAME_BYTES]; /* of a blob: the worker that uploads it, by its certificate; "":
                                      another client */
    struct job_id job;             /* of an output */
    bool refers;                   /* the output is a reference: */
    uint64_t refers_bytes;         /* of the file that */
    uint8_t checkpoint[LIMIT_SHA256_BYTES]; /* has among its files */
    struct artifacts kept;
    char *folder;          /* of an output; NULL else */
    bool folder_is_synced; /* its own name is synced, and so are those above it */
};

static void receive_free(void *user)
{
    struct receive *receive = user;
    sha256_close(receive->hash);
    quota_add_incoming(receive->daemon->quota, -(int64_t)receive->expected_bytes);
    artifacts_free(&receive->kept);
    free(receive->temporary);
    free(receive->target);
    free(receive->chunk);
    free(receive->folder);
    free(receive);
}

static void discard_in_thread(void *user)
{
    struct receive *receive = user;
    close(receive->fd);
    unlink(receive->temporary);
}

static void receive_end(struct receive *receive)
{
    if (receive != NULL && receive->fd >= 0) {
        file_work_start(
            &receive->work, &receive->daemon->write_pool, discard_in_thread, receive_free, receive);
    } else if (receive != NULL) {
        receive_free(receive);
    }
}

/* Another coordinator, which shares the folder, uses other names. */
static cadre_status name_temporary(struct receive *receive, struct cadre_error *error)
{
    struct daemon *daemon = receive->daemon;
    if (receive->target == NULL ||
        asprintf(&receive->temporary, "%s/upload-%016" PRIx64 "-%" PRIu64, daemon->blob_dir,
            engine_term(daemon->engine).nonce, ++daemon->upload_last) < 0) {
        receive->temporary = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for an upload");
    }
    return CADRE_OK;
}

/* ---- a chunk, in a thread ---- */

static cadre_status open_temporary(struct receive *receive, struct cadre_error *error)
{
    if (receive->folder != NULL && receive->daemon->objects == NULL) {
        CADRE_TRY(folder_make(receive->folder, 0700, error));
    }
    receive->fd =
        open(receive->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (receive->fd < 0) {
        return cadre_error_errno(
            error, errno, "the coordinator cannot write %s", receive->temporary);
    }
    return CADRE_OK;
}

static cadre_status write_chunk(struct receive *receive, struct cadre_error *error)
{
    if (receive->fd < 0) {
        CADRE_TRY(open_temporary(receive, error));
    }
    if (receive->hash != NULL) {
        CADRE_TRY(sha256_add(receive->hash, receive->chunk, receive->chunk_bytes, error));
    }
    return file_write_all(
        receive->fd, receive->temporary, receive->chunk, receive->chunk_bytes, error);
}

static void write_in_thread(void *user)
{
    struct receive *receive = user;
    (void)write_chunk(receive, &receive->error);
}

static cadre_status ask_to_retry(const struct receive *receive, struct cadre_error *error);

static void after_write(void *user)
{
    struct receive *receive = user;
    receive->busy = false;
    if (receive->call == NULL) {
        receive_end(receive);
    } else if (ask_to_retry(receive, &receive->error) != CADRE_OK) {
        rpc_call_fail(receive->call, &receive->error);
    } else {
        rpc_call_resume(receive->call);
    }
}

/* ---- on the loop ---- */

/* The call is not read on before the chunk is written. */
static cadre_status receive_append(
    struct receive *receive, const uint8_t *bytes, size_t size, struct cadre_error *error)
{
    if (receive->expected_bytes - receive->got_bytes < size) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the upload is longer than the %" PRIu64 " bytes that its first chunk announced",
            receive->expected_bytes);
    }
    if (receive->refers) {
        return CADRE_OK;
    }
    if (size > receive->chunk_capacity) {
        uint8_t *grown = realloc(receive->chunk, size);
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for an upload");
        }
        receive->chunk = grown;
        receive->chunk_capacity = size;
    }
    if (size > 0) {
        memcpy(receive->chunk, bytes, size);
    }
    receive->chunk_bytes = size;
    receive->got_bytes += size;
    receive->busy = true;
    rpc_call_pause(receive->call);
    file_work_start(
        &receive->work, &receive->daemon->write_pool, write_in_thread, after_write, receive);
    return CADRE_OK;
}

static cadre_status check_hash(struct receive *receive, struct cadre_error *error)
{
    struct sha256 made;
    if (receive->hash == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(sha256_finish(receive->hash, &made, error));
    if (!sha256_equal(&made, &receive->wanted)) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the upload's content does not have the hash that was announced: the file changed or "
            "was damaged on the"
            " way, send it again");
    }
    return CADRE_OK;
}

static cadre_status receive_check(struct receive *receive, struct cadre_error *error)
{
    if (receive->got_bytes != receive->expected_bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the upload ended after %" PRIu64 " of %" PRIu64 " bytes: send it again",
            receive->got_bytes, receive->expected_bytes);
    }
    return check_hash(receive, error);
}

static cadre_status commit_file(struct receive *receive, struct cadre_error *error)
{
    struct stat before;
    bool replaces = lstat(receive->target, &before) == 0 && S_ISREG(before.st_mode);
    /* The access time is when an upload relied on the content (file_store.c): never, of a new one;
     * of a content that was here it is kept. */
    const struct timespec never = {0};
    const struct timespec times[2] = {replaces ? before.st_atim : never, {.tv_nsec = UTIME_NOW}};
    (void)futimens(receive->fd, times);
    receive->replaced_bytes = replaces ? (uint64_t)before.st_size : 0;
    bool refused = fault_point("receive.fsync") || fault_point("receive.rename");
    if (refused || fsync(receive->fd) != 0 || rename(receive->temporary, receive->target) != 0) {
        return cadre_error_errno(error, refused ? EIO : errno,
            "the coordinator cannot keep the upload as %s", receive->target);
    }
    close(receive->fd);
    receive->fd = -1;
    return CADRE_OK;
}

static cadre_status commit_link(struct receive *receive, struct cadre_error *error)
{
    CADRE_TRY(folder_make(receive->folder, 0700, error));
    return artifacts_link(&receive->kept, receive->checkpoint, receive->refers_bytes,
        receive->temporary, receive->target, error);
}

/* Syncs the folder of the output, the one above it, and so on. */
static cadre_status sync_names(const struct receive *receive, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *folder = strdup(receive->folder);
    size_t top = strlen(receive->daemon->job_dir);
    if (folder == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to sync an output");
    }
    CADRE_TRY(folder_sync(folder, error));
    while (!receive->folder_is_synced && strlen(folder) > top) {
        *strrchr(folder, '/') = '\0';
        CADRE_TRY(folder_sync(folder, error));
    }
    return CADRE_OK;
}

/* The next leader may have received a newer output of the same name. */
static cadre_status check_leading(const struct receive *receive, struct cadre_error *error)
{
    return leading_holds(&receive->daemon->leading)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_UNAVAILABLE,
                     "this coordinator does not know whether it leads still: send the file again, "
                     "to the one that leads");
}

/* Into an object store, the temporary file as it is. */
static cadre_status commit_object(struct receive *receive, struct cadre_error *error)
{
    struct daemon *daemon = receive->daemon;
    if (receive->hash != NULL) {
        return received_content_put(
            daemon, &receive->wanted, receive->fd, receive->temporary, receive->target, error);
    }
    CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, receive->job);
    const struct received_output output = {.job = receive->job,
        .name = outputs != NULL ? receive->target + strlen(outputs) + 1 : NULL,
        .fd = receive->fd,
        .kept = receive->refers ? &receive->kept : NULL,
        .checkpoint = receive->checkpoint,
        .refers_bytes = receive->refers_bytes};
    return received_output_put(daemon, &output, &receive->replaced_bytes, error);
}

static cadre_status receive_commit(struct receive *receive, struct cadre_error *error)
{
    CADRE_TRY(check_leading(receive, error));
    if (receive->daemon->objects != NULL) {
        return commit_object(receive, error);
    }
    CADRE_TRY(receive->refers ? commit_link(receive, error) : commit_file(receive, error));
    return receive->folder != NULL ? sync_names(receive, error) : CADRE_OK;
}

/* Refuses an output for which there is no room now with a code after which it is sent again. */
static cadre_status ask_to_retry(const struct receive *receive, struct cadre_error *error)
{
    if (receive != NULL && receive->hash == NULL && error->code == CADRE_RESOURCE_EXHAUSTED) {
        error->code = CADRE_UNAVAILABLE;
    }
    return error->code;
}

static struct receive *receive_new(
    struct daemon *daemon, struct rpc_call *call, uint64_t size_bytes)
{
    struct receive *receive = calloc(1, sizeof *receive);
    if (receive != NULL) {
        *receive = (struct receive){
            .daemon = daemon, .call = call, .fd = -1, .expected_bytes = size_bytes};
        quota_add_incoming(daemon->quota, (int64_t)size_bytes);
    }
    return receive;
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for an upload");
}

static cadre_status no_header(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the first chunk of an upload must have the header, and only the first");
}

/* PutBlobResponse, PutOutputResponse: without fields. */
static void contents_receive_answer(struct rpc_call *call)
{
    static const uint8_t empty[1] = {0};
    (void)rpc_call_send(call, empty, 0, NULL);
    rpc_call_finish(call, CADRE_OK, "");
}

static void commit_in_thread(void *user)
{
    struct receive *receive = user;
    (void)receive_commit(receive, &receive->error);
}

/* Counts the file, less the one that it replaced. */
static void receive_count(const struct receive *receive)
{
    struct daemon *daemon = receive->daemon;
    bool came = receive->error.code == CADRE_OK;
    if (receive->hash != NULL) {
        contents_upload_end(daemon->contents, &receive->wanted, came, receive->got_bytes);
        if (came && receive->worker[0] != '\0') {
            worker_contents_note(daemon, receive->worker, &receive->wanted);
        }
    } else if (came) {
        quota_output(daemon->quota, receive->job,
            (int64_t)receive->got_bytes - (int64_t)receive->replaced_bytes);
    }
}

static void note_synced(struct receive *receive)
{
    if (receive->folder != NULL && receive->daemon->objects == NULL && !receive->folder_is_synced) {
        free(receive->daemon->outputs_synced);
        receive->daemon->outputs_synced = receive->folder;
        receive->folder = NULL;
    }
}

static void report_committed(struct receive *receive)
{
    receive->busy = false;
    if (receive->call == NULL) {
        receive_end(receive);
    } else if (ask_to_retry(receive, &receive->error) != CADRE_OK) {
        rpc_call_fail(receive->call, &receive->error);
    } else {
        contents_receive_answer(receive->call);
    }
}

static void after_commit(void *user)
{
    struct receive *receive = user;
    receive_count(receive);
    if (receive->error.code == CADRE_OK) {
        note_synced(receive);
        (void)check_leading(receive, &receive->error); /* the next leader may not know of it */
    }
    report_committed(receive);
}

/* A content whose older file is still being removed waits for that, or the new file would be
 * removed. */
static void begin_commit(void *user)
{
    struct receive *receive = user;
    struct contents *contents = receive->daemon->contents;
    receive->busy = true;
    if (receive->hash != NULL && contents_is_removing(contents, &receive->wanted)) {
        receive->wait = (struct contents_wait){.go = begin_commit, .user = receive};
        contents_wait(contents, &receive->wait);
        return;
    }
    if (receive->hash != NULL &&
        contents_upload_begin(contents, &receive->wanted, &receive->error) != CADRE_OK) {
        report_committed(receive);
        return;
    }
    file_work_start(
        &receive->work, &receive->daemon->write_pool, commit_in_thread, after_commit, receive);
}

static void receive_half_close(struct rpc_call *call, void *user)
{
    (void)user;
    struct receive *receive = rpc_call_user(call);
    struct cadre_error error = {0};
    cadre_status status = receive == NULL ? no_header(&error) : receive_check(receive, &error);
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    begin_commit(receive);
}

static void receive_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct receive *receive = rpc_call_user(call);
    if (receive != NULL && receive->busy) {
        receive->call = NULL; /* the end of the work frees this */
    } else {
        receive_end(receive);
    }
}

/* ---- PutBlob of Jobs and of Agents ---- */

static cadre_status begin_blob(struct daemon *daemon, struct rpc_call *call,
    const struct blob_chunk *chunk, struct cadre_error *error)
{
    CADRE_TRY(worker_permissions_check_tasks(daemon, call, error));
    CADRE_TRY(quota_reserve(daemon, chunk->size_bytes, "an upload", error));
    struct receive *receive = receive_new(daemon, call, chunk->size_bytes);
    if (receive == NULL) {
        return no_memory(error);
    }
    rpc_call_set_user(call, receive);
    memcpy(receive->wanted.bytes, chunk->sha256, LIMIT_SHA256_BYTES);
    const struct tls_identity *identity = rpc_call_identity(call);
    if (identity->role == TLS_ROLE_WORKER) {
        snprintf(receive->worker, sizeof receive->worker, "%s", identity->name);
    }
    CADRE_TRY(sha256_open(&receive->hash, error));
    CADRE_TRY(disk_check(daemon, chunk->size_bytes, error));
    receive->target = path_of_blob(daemon, chunk->sha256);
    return name_temporary(receive, error);
}

static void put_blob_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct blob_chunk chunk;
    wire_arena_reset(daemon->arena);
    cadre_status status = wire_unpack_blob_chunk(data, length, daemon->arena, &chunk, &error);
    if (status == CADRE_OK && chunk.has_header != (rpc_call_user(call) == NULL)) {
        status = no_header(&error);
    }
    if (status == CADRE_OK && chunk.has_header) {
        status = begin_blob(daemon, call, &chunk, &error);
    }
    if (status == CADRE_OK) {
        status = receive_append(rpc_call_user(call), chunk.bytes, chunk.byte_count, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops put_blob_ops = {.on_message = put_blob_message,
    .on_half_close = receive_half_close,
    .on_closed = receive_closed};

/* ---- Agents.PutOutput ---- */

/* Sets the output's path, and the folder, which a thread makes. */
static cadre_status make_output_path(struct daemon *daemon, struct receive *receive,
    const struct output_chunk *chunk, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, chunk->task.job);
    if (outputs == NULL || asprintf(&receive->target, "%s/%" PRIu32 "/%s", outputs,
                               chunk->task.slot, chunk->path) < 0) {
        receive->target = NULL;
        return no_memory(error);
    }
    receive->folder =
        strndup(receive->target, (size_t)(strrchr(receive->target, '/') - receive->target));
    if (receive->folder == NULL) {
        return no_memory(error);
    }
    receive->folder_is_synced =
        daemon->outputs_synced != NULL && strcmp(daemon->outputs_synced, receive->folder) == 0;
    cadre_status status = disk_check(daemon, chunk->refers ? 0 : chunk->size_bytes, error);
    return status != CADRE_OK ? ask_to_retry(receive, error) : CADRE_OK;
}

static cadre_status begin_output(struct daemon *daemon, struct rpc_call *call,
    const struct output_chunk *chunk, struct cadre_error *error)
{
    CADRE_TRY(worker_permissions_check_task(daemon, call, chunk->task, error));
    if (chunk->size_bytes > daemon->options.output_limit_bytes) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "output file %s has %" PRIu64
            " bytes, over the coordinator's --output-limit of %" PRIu64,
            chunk->path, chunk->size_bytes, daemon->options.output_limit_bytes);
    }
    struct job_info info;
    if (!engine_job_basics(daemon->engine, chunk->task.job, &info) ||
        job_state_is_final(info.state)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "job %" PRIu64 " takes no more outputs", chunk->task.job.n);
    }
    if (!chunk->refers) {
        CADRE_TRY(quota_reserve(daemon, chunk->size_bytes, chunk->path, error));
        CADRE_TRY(quota_reserve_job(daemon, chunk->task.job, chunk->size_bytes,
            content_references_checkpoint_bytes(daemon, chunk->task.job), chunk->path, error));
    }
    struct receive *receive = receive_new(daemon, call, chunk->refers ? 0 : chunk->size_bytes);
    if (receive == NULL) {
        return no_memory(error);
    }
    receive->job = chunk->task.job;
    rpc_call_set_user(call, receive);
    CADRE_TRY(make_output_path(daemon, receive, chunk, error));
    if (chunk->refers) {
        receive->refers = true;
        receive->refers_bytes = chunk->size_bytes;
        memcpy(receive->checkpoint, chunk->checkpoint, LIMIT_SHA256_BYTES);
        CADRE_TRY(artifacts_of(daemon, chunk->task.job, &receive->kept, error));
    }
    return name_temporary(receive, error);
}

static void put_output_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct output_chunk chunk;
    wire_arena_reset(daemon->arena);
    cadre_status status = wire_unpack_output_chunk(data, length, daemon->arena, &chunk, &error);
    if (status == CADRE_OK && chunk.has_header != (rpc_call_user(call) == NULL)) {
        status = no_header(&error);
    }
    if (status == CADRE_OK && chunk.has_header) {
        status = begin_output(daemon, call, &chunk, &error);
    }
    if (status == CADRE_OK &&
        receive_append(rpc_call_user(call), chunk.bytes, chunk.byte_count, &error) != CADRE_OK) {
        status = ask_to_retry(rpc_call_user(call), &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops put_output_ops = {.on_message = put_output_message,
    .on_half_close = receive_half_close,
    .on_closed = receive_closed};
