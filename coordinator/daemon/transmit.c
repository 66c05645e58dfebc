/* SPDX-License-Identifier: Apache-2.0
 * Files that go out over a server stream: Agents.GetBlob and Jobs.GetOutput. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/artifacts.h"
#include "coordinator/daemon/damage.h"
#include "coordinator/daemon/file_store.h"

#define CHUNK_BYTES ((size_t)512 * 1024)

struct transmit {
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it is gone */
    bool in_thread;        /* nothing may be freed */
    uv_work_t work;
    uint8_t *bytes; /* of the chunk that is read */
    size_t got;
    int fd;                            /* of the file or the block in hand; -1: none */
    uint64_t left_bytes;               /* of all */
    struct checkpoint_content content; /* its blocks follow one another; none: one file */
    size_t next_block;
    struct sha256_stream *hash; /* of the block or content in hand: a damaged one is found before
                                   its last byte is taken for good */
    uint8_t wanted[LIMIT_SHA256_BYTES]; /* what it should be */
    bool damaged;
};

static void transmit_free(struct transmit *transmit)
{
    if (transmit->fd >= 0) {
        close(transmit->fd);
    }
    sha256_close(transmit->hash);
    checkpoint_content_free(&transmit->content);
    free(transmit->bytes);
    free(transmit);
}

/* What was whole when the download began is not any more. */
static cadre_status ended_early(const struct transmit *transmit, struct cadre_error *error)
{
    if (transmit->damaged && transmit->content.block_count == 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "it is damaged on the coordinator's disk: its content does not have its hash");
    }
    if (transmit->damaged) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "block %zu of %zu of the checkpoint is damaged on the coordinator's disk: its content "
            "does not have its hash",
            transmit->next_block, transmit->content.block_count);
    }
    if (transmit->content.block_count > 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "the checkpoint was replaced by a newer one %" PRIu64
            " bytes before its end: list the outputs again",
            transmit->left_bytes);
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "the coordinator's file ended %" PRIu64 " bytes early", transmit->left_bytes);
}

/* The block or content that was read is what it should be; none was: true. */
static bool close_block(struct transmit *transmit)
{
    struct sha256 made;
    if (transmit->hash == NULL) {
        return true;
    }
    bool hashed = sha256_finish(transmit->hash, &made, NULL) == CADRE_OK;
    transmit->damaged = hashed && memcmp(made.bytes, transmit->wanted, sizeof made.bytes) != 0;
    sha256_close(transmit->hash);
    transmit->hash = NULL;
    close(transmit->fd);
    transmit->fd = -1;
    return hashed && !transmit->damaged;
}

static bool open_block(struct transmit *transmit)
{
    const struct checkpoint_block *block = &transmit->content.blocks[transmit->next_block++];
    CADRE_FREE_AT_EXIT char *path = path_of_blob(transmit->daemon, block->sha256);
    memcpy(transmit->wanted, block->sha256, sizeof transmit->wanted);
    return path != NULL && file_open_regular(path, &transmit->fd, NULL, NULL) == CADRE_OK &&
           sha256_open(&transmit->hash, NULL) == CADRE_OK;
}

/* Up to `want` bytes of what comes next; 0: there is nothing where something must be. */
static size_t read_on(struct transmit *transmit, uint8_t *bytes, size_t want)
{
    ssize_t got = transmit->fd >= 0 ? read(transmit->fd, bytes, want) : 0;
    while (got == 0 && transmit->next_block < transmit->content.block_count) {
        if (!close_block(transmit) || !open_block(transmit)) {
            return 0;
        }
        got = read(transmit->fd, bytes, want);
    }
    if (got > 0 && transmit->hash != NULL &&
        sha256_add(transmit->hash, bytes, (size_t)got, NULL) != CADRE_OK) {
        return 0;
    }
    return got > 0 ? (size_t)got : 0;
}

static void fail_early(struct transmit *transmit)
{
    struct cadre_error error = {0};
    if (transmit->damaged) {
        damage_found(transmit->daemon, transmit->wanted, "its content does not have its hash");
    }
    (void)ended_early(transmit, &error);
    rpc_call_fail(transmit->call, &error);
}

static void read_in_thread(uv_work_t *work)
{
    struct transmit *transmit = work->data;
    size_t want = transmit->left_bytes < CHUNK_BYTES ? (size_t)transmit->left_bytes : CHUNK_BYTES;
    transmit->got = read_on(transmit, transmit->bytes, want);
}

static void after_read(uv_work_t *work, int status)
{
    (void)status;
    struct transmit *transmit = work->data;
    transmit->daemon->works--;
    transmit->in_thread = false;
    if (transmit->call == NULL) {
        transmit_free(transmit);
    } else if (transmit->got == 0) {
        fail_early(transmit);
    } else {
        struct blob_chunk chunk = {.bytes = transmit->bytes, .byte_count = transmit->got};
        transmit->left_bytes -= transmit->got;
        DAEMON_SEND(transmit->daemon, transmit->call, blob_chunk, &chunk);
    }
}

/* The next chunk, read by a thread of the pool; on_drained asks for the one after it, so a slow
 * reader costs one chunk of memory. */
static void pump(struct transmit *transmit)
{
    if (transmit->left_bytes == 0 && close_block(transmit)) {
        rpc_call_finish(transmit->call, CADRE_OK, "");
        return;
    }
    transmit->bytes = transmit->bytes != NULL ? transmit->bytes : malloc(CHUNK_BYTES);
    if (transmit->left_bytes == 0 || transmit->bytes == NULL) {
        fail_early(transmit);
        return;
    }
    transmit->in_thread = true;
    transmit->work.data = transmit;
    transmit->daemon->works++;
    uv_queue_work(rpc_loop_uv(transmit->daemon->loop), &transmit->work, read_in_thread, after_read);
}

static void transmit_drained(struct rpc_call *call, void *user)
{
    (void)user;
    struct transmit *transmit = rpc_call_user(call);
    if (transmit != NULL && !transmit->in_thread) {
        pump(transmit);
    }
}

static void transmit_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct transmit *transmit = rpc_call_user(call);
    if (transmit != NULL && transmit->in_thread) {
        transmit->call = NULL; /* its end frees this */
    } else if (transmit != NULL) {
        transmit_free(transmit);
    }
}

static void send_header(struct daemon *daemon, struct rpc_call *call, uint64_t size_bytes,
    const uint8_t sha256[LIMIT_SHA256_BYTES])
{
    struct blob_chunk header = {.has_header = true, .size_bytes = size_bytes};
    memcpy(header.sha256, sha256, LIMIT_SHA256_BYTES);
    DAEMON_SEND(daemon, call, blob_chunk, &header);
}

static cadre_status begin(struct daemon *daemon, struct rpc_call *call, const char *path,
    const uint8_t sha256[LIMIT_SHA256_BYTES], struct cadre_error *error)
{
    struct transmit *transmit = calloc(1, sizeof *transmit);
    if (transmit == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
    }
    *transmit = (struct transmit){.daemon = daemon, .call = call, .fd = -1};
    cadre_status status = file_open_regular(path, &transmit->fd, &transmit->left_bytes, error);
    if (status != CADRE_OK) {
        transmit_free(transmit);
        return status;
    }
    rpc_call_set_user(call, transmit);
    send_header(daemon, call, transmit->left_bytes, sha256);
    return CADRE_OK;
}

/* Takes the file over. */
static cadre_status begin_blocks(struct daemon *daemon, struct rpc_call *call,
    struct artifact_file *file, struct cadre_error *error)
{
    struct transmit *transmit = calloc(1, sizeof *transmit);
    if (transmit == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
    }
    *transmit = (struct transmit){.daemon = daemon,
        .call = call,
        .fd = -1,
        .left_bytes = file->bytes,
        .content = file->content};
    file->content = (struct checkpoint_content){0};
    rpc_call_set_user(call, transmit);
    send_header(daemon, call, file->bytes, file->sha256);
    return CADRE_OK;
}

/* Where it lies is nobody's business. It is read to its end and hashed, as it is now. */
static cadre_status begin_blob(struct daemon *daemon, struct rpc_call *call,
    const struct sha256 *hash, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(daemon, hash->bytes);
    struct cadre_error inner = {0};
    if (path == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
    }
    if (begin(daemon, call, path, hash->bytes, &inner) == CADRE_OK) {
        struct transmit *transmit = rpc_call_user(call);
        memcpy(transmit->wanted, hash->bytes, sizeof transmit->wanted);
        return sha256_open(&transmit->hash, error);
    }
    if (inner.code == CADRE_NOT_FOUND) {
        damage_found(daemon, hash->bytes, "it is not on the coordinator's disk any more");
    } else {
        log_event(
            LOG_LEVEL_WARNING, "files", "a content cannot be read", LOG_STR("reason", inner.text));
    }
    if (inner.code == CADRE_RESOURCE_EXHAUSTED) {
        return cadre_error_set(error, inner.code,
            "the coordinator has no memory or no descriptor for a download: try again");
    }
    return file_store_none(hash, error);
}

static void get_blob_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct get_blob_request request;
    struct sha256 hash;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_get_blob_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK) {
        memcpy(hash.bytes, request.sha256, sizeof hash.bytes);
        status = agents_check_content(daemon, call, &hash, &error);
    }
    if (status == CADRE_OK) {
        status = begin_blob(daemon, call, &hash, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops get_blob_ops = {
    .on_message = get_blob_message, .on_drained = transmit_drained, .on_closed = transmit_closed};

static cadre_status no_job(struct job_id job, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_NOT_FOUND, "there is no job %" PRIu64 ": see `cadre jobs`", job.n);
}

static cadre_status begin_artifact(struct daemon *daemon, struct rpc_call *call, struct job_id job,
    const char *name, struct cadre_error *error)
{
    struct artifact_file file;
    cadre_status status = artifacts_find(daemon, job, name, &file, error);
    if (status == CADRE_OK) {
        status = file.path != NULL ? begin(daemon, call, file.path, file.sha256, error)
                                   : begin_blocks(daemon, call, &file, error);
    }
    artifact_file_free(&file);
    return status;
}

static cadre_status begin_output(struct daemon *daemon, struct rpc_call *call,
    const struct get_output_request *request, struct cadre_error *error)
{
    static const uint8_t unknown[LIMIT_SHA256_BYTES];
    CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, request->id);
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (outputs == NULL || asprintf(&path, "%s/%s", outputs, request->path) < 0) {
        path = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
    }
    CADRE_FREE_AT_EXIT char *refers_to = artifacts_reference(path);
    if (refers_to != NULL) {
        return begin_artifact(daemon, call, request->id, refers_to, error);
    }
    if (begin(daemon, call, path, unknown, error) == CADRE_OK) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %" PRIu64 " left no file %s: see `cadre get %" PRIu64 " --list`", request->id.n,
        request->path, request->id.n);
}

static void get_output_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct get_output_request request;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_get_output_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK && engine_job_spec(daemon->engine, request.id) == NULL) {
        status = no_job(request.id, &error);
    }
    if (status == CADRE_OK) {
        bool artifact = strncmp(request.path, ARTIFACTS_FOLDER, strlen(ARTIFACTS_FOLDER)) == 0;
        status = artifact ? begin_artifact(daemon, call, request.id,
                                request.path + strlen(ARTIFACTS_FOLDER), &error)
                          : begin_output(daemon, call, &request, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops get_output_ops = {
    .on_message = get_output_message, .on_drained = transmit_drained, .on_closed = transmit_closed};
