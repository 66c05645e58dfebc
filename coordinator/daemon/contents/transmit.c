/* SPDX-License-Identifier: Apache-2.0
 * Sends files over a server stream: Agents.GetBlob and Jobs.GetOutput. Threads of the pool open and
 * read them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/file_store.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/worker_permissions.h"
#include "coordinator/daemon/objects/object_cache.h"
#include "coordinator/daemon/objects/object_names.h"
#include "common/rpc/file_work.h"
#include "common/storage/ahead.h"

#define CHUNK_BYTES ((size_t)512 * 1024)

/* What is requested. */
enum wanted { WANTED_BLOB, WANTED_ARTIFACT, WANTED_OUTPUT };

struct transmit {
    struct daemon *daemon;
    struct rpc_call *call; /* NULL once it was cancelled */
    struct file_work work; /* while it runs nothing may be freed */
    enum wanted kind;
    char *path;                 /* of the content or the output */
    char *name;                 /* of the output or of the checkpoint's file, as requested */
    struct artifacts artifacts; /* of the job, for the latter two */
    struct cadre_error error;   /* of the opening */
    uint8_t announced[LIMIT_SHA256_BYTES]; /* of the whole; 0: not known */
    uint8_t *bytes;                        /* of the chunk that is read */
    size_t got;
    bool whole;                        /* the end was reached, and what was read is right */
    int fd;                            /* of the current file or block; -1: none */
    struct storage_object *object;     /* an output in an object store; NULL: none */
    struct storage_ahead *ahead;       /* its bytes */
    uint64_t offset;                   /* of the next one */
    uint64_t left_bytes;               /* of all */
    struct checkpoint_content content; /* its blocks follow one another; none: one file */
    size_t next_block;
    struct sha256_stream *hash; /* of the current block or content: a damaged one is found before
                                   its last byte is sent */
    uint8_t wanted[LIMIT_SHA256_BYTES]; /* what it should be */
    bool damaged;
};

static void transmit_free(void *user)
{
    struct transmit *transmit = user;
    sha256_close(transmit->hash);
    checkpoint_content_free(&transmit->content);
    artifacts_free(&transmit->artifacts);
    free(transmit->path);
    free(transmit->name);
    free(transmit->bytes);
    free(transmit);
}

static void close_in_thread(void *user)
{
    struct transmit *transmit = user;
    storage_ahead_close(transmit->ahead);
    storage_close(transmit->object);
    if (transmit->fd >= 0) {
        close(transmit->fd);
    }
}

/* In a thread, because closing a file that was removed meanwhile waits for the disk, and closing an
 * object for what is on its way. */
static void transmit_end(struct transmit *transmit)
{
    if (transmit->fd >= 0 || transmit->object != NULL) {
        file_work_start(&transmit->work, &transmit->daemon->file_pool, close_in_thread,
            transmit_free, transmit);
    } else {
        transmit_free(transmit);
    }
}

/* The error of a file that was whole when the download began. */
static cadre_status ended_early(const struct transmit *transmit, struct cadre_error *error)
{
    if (transmit->error.code != CADRE_OK) { /* of an object store */
        *error = transmit->error;
        return error->code;
    }
    if (transmit->damaged && transmit->daemon->objects != NULL) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the coordinator's copy was damaged and is fetched from the object store again: try "
            "again");
    }
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

/* ---- in a thread ---- */

/* The block or content that was read is what it should be; none was: true. */
static bool close_block(struct transmit *transmit)
{
    struct sha256 made;
    if (transmit->hash == NULL) {
        return true;
    }
    bool hashed = sha256_finish(transmit->hash, &made, NULL) == CADRE_OK;
    transmit->damaged = hashed && memcmp(made.bytes, transmit->wanted, sizeof made.bytes) != 0;
    if (transmit->damaged && transmit->daemon->object_cache != NULL) {
        object_cache_drop(transmit->daemon->object_cache, transmit->wanted);
    }
    sha256_close(transmit->hash);
    transmit->hash = NULL;
    close(transmit->fd);
    transmit->fd = -1;
    return hashed && !transmit->damaged;
}

static cadre_status open_content(struct transmit *transmit,
    const uint8_t sha256[LIMIT_SHA256_BYTES], uint64_t *ret_bytes, struct cadre_error *error)
{
    const struct daemon *daemon = transmit->daemon;
    return object_cache_read(
        daemon->object_cache, daemon->blob_dir, sha256, &transmit->fd, ret_bytes, error);
}

static bool open_block(struct transmit *transmit)
{
    const struct checkpoint_block *block = &transmit->content.blocks[transmit->next_block++];
    struct cadre_error error = {0};
    memcpy(transmit->wanted, block->sha256, sizeof transmit->wanted);
    cadre_status status = open_content(transmit, block->sha256, NULL, &error);
    if (status != CADRE_OK && transmit->daemon->objects != NULL && status != CADRE_NOT_FOUND) {
        transmit->error = error;
    }
    return status == CADRE_OK && sha256_open(&transmit->hash, NULL) == CADRE_OK;
}

static size_t read_object(struct transmit *transmit, uint8_t *bytes, size_t want)
{
    cadre_status status =
        storage_ahead_read(transmit->ahead, transmit->offset, bytes, want, &transmit->error);
    if (status == CADRE_UNAVAILABLE) {
        (void)objects_judge(transmit->daemon->objects, status, &transmit->error);
    }
    transmit->offset += status == CADRE_OK ? want : 0;
    return status == CADRE_OK ? want : 0;
}

/* Up to `want` of the next bytes; 0: the file ended too early. */
static size_t read_on(struct transmit *transmit, uint8_t *bytes, size_t want)
{
    if (transmit->object != NULL) {
        return read_object(transmit, bytes, want);
    }
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

static void read_in_thread(void *user)
{
    struct transmit *transmit = user;
    size_t want = transmit->left_bytes < CHUNK_BYTES ? (size_t)transmit->left_bytes : CHUNK_BYTES;
    transmit->got = want > 0 ? read_on(transmit, transmit->bytes, want) : 0;
    transmit->whole = want == 0 && close_block(transmit);
}

/* Its bytes are those of its blocks, or of one file. */
static cadre_status open_artifact(
    struct transmit *transmit, const char *name, struct cadre_error *error)
{
    struct artifact_file file;
    cadre_status status = artifacts_find(&transmit->artifacts, name, &file, error);
    if (status == CADRE_OK && file.is_content) {
        status = open_content(transmit, file.sha256, &transmit->left_bytes, error);
        if (status == CADRE_NOT_FOUND) { /* it was dropped since it was found */
            status = artifacts_none(&transmit->artifacts, name, error);
        }
    } else if (status == CADRE_OK && file.path != NULL) {
        status = file_open_regular(file.path, &transmit->fd, &transmit->left_bytes, error);
        if (status == CADRE_NOT_FOUND) { /* it was dropped since it was found */
            status = artifacts_none(&transmit->artifacts, name, error);
        }
    } else if (status == CADRE_OK) {
        transmit->left_bytes = file.bytes;
        transmit->content = file.content;
        file.content = (struct checkpoint_content){0};
    }
    if (status == CADRE_OK) {
        memcpy(transmit->announced, file.sha256, sizeof transmit->announced);
    }
    artifact_file_free(&file);
    return status;
}

static cadre_status no_output(const struct transmit *transmit, struct cadre_error *error)
{
    if (strcmp(transmit->name, "checkpoints") == 0) {
        return artifacts_none(&transmit->artifacts, transmit->name, error);
    }
    uint64_t job = transmit->artifacts.job.n;
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "job %" PRIu64 " left no file %s: see `cadre get %" PRIu64 " --list`", job, transmit->name,
        job);
}

/* An output in the object store, or the file of a checkpoint to which it refers. */
static cadre_status open_object(struct transmit *transmit, struct cadre_error *error)
{
    struct objects *objects = transmit->daemon->objects;
    struct job_id job = transmit->artifacts.job;
    CADRE_FREE_AT_EXIT char *path = object_name_of_output(objects, job, transmit->name);
    CADRE_FREE_AT_EXIT char *reference = object_name_of_reference(objects, job, transmit->name);
    struct storage_object *object = NULL;
    cadre_status status = objects_look(objects, path, &transmit->object, error);
    if (status == CADRE_OK) {
        transmit->left_bytes = storage_info_of(transmit->object)->bytes;
        return storage_ahead_open(transmit->object, &transmit->ahead, error);
    }
    if (status == CADRE_NOT_FOUND) {
        *error = (struct cadre_error){0};
        status = objects_look(objects, reference, &object, error);
        storage_close(object);
    }
    if (status == CADRE_OK) {
        const char *slash = strrchr(transmit->name, '/');
        return open_artifact(transmit, slash != NULL ? slash + 1 : transmit->name, error);
    }
    return status == CADRE_NOT_FOUND ? no_output(transmit, error) : status;
}

static cadre_status open_output(struct transmit *transmit, struct cadre_error *error)
{
    if (transmit->daemon->objects != NULL) {
        return open_object(transmit, error);
    }
    CADRE_FREE_AT_EXIT char *refers_to = artifacts_link_target(transmit->path);
    if (refers_to != NULL) {
        return open_artifact(transmit, refers_to, error);
    }
    if (file_open_regular(transmit->path, &transmit->fd, &transmit->left_bytes, error) ==
        CADRE_OK) {
        return CADRE_OK;
    }
    return no_output(transmit, error);
}

static void open_in_thread(void *user)
{
    struct transmit *transmit = user;
    if (transmit->kind == WANTED_BLOB) {
        (void)open_content(transmit, transmit->wanted, &transmit->left_bytes, &transmit->error);
    } else if (transmit->kind == WANTED_ARTIFACT) {
        (void)open_artifact(transmit, transmit->name, &transmit->error);
    } else {
        (void)open_output(transmit, &transmit->error);
    }
}

/* ---- on the loop ---- */

static void fail_early(struct transmit *transmit)
{
    struct cadre_error error = {0};
    if (transmit->damaged && transmit->daemon->objects == NULL) {
        damage_handle(transmit->daemon, transmit->wanted, "its content does not have its hash");
    } else if (transmit->error.code == CADRE_DATA_LOSS && transmit->object == NULL) {
        damage_handle(transmit->daemon, transmit->wanted, transmit->error.text);
    }
    (void)ended_early(transmit, &error);
    rpc_call_fail(transmit->call, &error);
}

static void after_read(void *user)
{
    struct transmit *transmit = user;
    if (transmit->call == NULL) {
        transmit_end(transmit);
    } else if (transmit->whole) {
        rpc_call_finish(transmit->call, CADRE_OK, "");
    } else if (transmit->got == 0) {
        fail_early(transmit);
    } else {
        struct blob_chunk chunk = {.bytes = transmit->bytes, .byte_count = transmit->got};
        transmit->left_bytes -= transmit->got;
        DAEMON_SEND(transmit->daemon, transmit->call, blob_chunk, &chunk);
    }
}

/* The next chunk, read by a thread of the pool; on_drained starts the one after it, so a slow
 * reader costs one chunk of memory. */
static void transmit_pump(struct transmit *transmit)
{
    transmit->bytes = transmit->bytes != NULL ? transmit->bytes : malloc(CHUNK_BYTES);
    if (transmit->bytes == NULL) {
        fail_early(transmit);
        return;
    }
    file_work_start(
        &transmit->work, &transmit->daemon->file_pool, read_in_thread, after_read, transmit);
}

static void transmit_drained(struct rpc_call *call, void *user)
{
    (void)user;
    struct transmit *transmit = rpc_call_user(call);
    if (transmit != NULL && !transmit->work.running && !transmit->whole) {
        transmit_pump(transmit);
    }
}

static void transmit_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    (void)user;
    struct transmit *transmit = rpc_call_user(call);
    if (transmit != NULL && transmit->work.running) {
        transmit->call = NULL; /* the end of the work frees this */
    } else if (transmit != NULL) {
        transmit_end(transmit);
    }
}

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for a download");
}

/* The error does not contain the path. */
static void fail_blob(struct transmit *transmit)
{
    struct daemon *daemon = transmit->daemon;
    struct cadre_error error = {0};
    struct sha256 hash;
    memcpy(hash.bytes, transmit->wanted, sizeof hash.bytes);
    if (transmit->error.code == CADRE_RESOURCE_EXHAUSTED) {
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory or no descriptor for a download: try again");
    } else if (transmit->error.code == CADRE_UNAVAILABLE) {
        error = transmit->error; /* the object store is away */
    } else {
        (void)contents_not_found(&hash, &error);
    }
    if (transmit->error.code == CADRE_DATA_LOSS && daemon->objects != NULL) {
        damage_handle(daemon, hash.bytes, transmit->error.text);
    } else if (transmit->error.code != CADRE_NOT_FOUND) {
        log_event(LOG_LEVEL_WARNING, "files", "a content cannot be read",
            LOG_STR("reason", transmit->error.text));
    } else if (!contents_is_removing(daemon->contents, &hash)) {
        damage_handle(daemon, hash.bytes,
            daemon->objects != NULL ? "it is not in the object store any more"
                                    : "it is not on the coordinator's disk any more");
    } /* else it is not referenced any more */
    rpc_call_fail(transmit->call, &error);
}

/* It may be where the job's tasks leave their files, which is not here. */
static void name_folder(struct transmit *transmit)
{
    struct job_id job = transmit->artifacts.job;
    const struct job_spec *spec = engine_job_spec(transmit->daemon->engine, job);
    if (transmit->kind == WANTED_OUTPUT && transmit->error.code == CADRE_NOT_FOUND &&
        spec != NULL && spec->outputs_folder[0] != '\0') {
        cadre_error_set(&transmit->error, CADRE_NOT_FOUND,
            "%s of job %" PRIu64
            " is not at the coordinator: what the job's tasks leave lies in the object store, at "
            "%s/%" PRIu64 "; fetch it from there",
            transmit->name, job.n, spec->outputs_folder, job.n);
    }
}

static void after_open(void *user)
{
    struct transmit *transmit = user;
    if (transmit->call == NULL) {
        transmit_end(transmit);
    } else if (transmit->error.code != CADRE_OK && transmit->kind == WANTED_BLOB) {
        fail_blob(transmit);
    } else if (transmit->error.code != CADRE_OK) {
        name_folder(transmit);
        rpc_call_fail(transmit->call, &transmit->error);
    } else {
        struct blob_chunk header = {.has_header = true, .size_bytes = transmit->left_bytes};
        memcpy(header.sha256, transmit->announced, LIMIT_SHA256_BYTES);
        DAEMON_SEND(transmit->daemon, transmit->call, blob_chunk, &header);
    }
}

/* Takes the path and the name over, which may be NULL for want of memory. */
static struct transmit *transmit_new(
    struct daemon *daemon, enum wanted kind, char *path, char *name, struct cadre_error *error)
{
    struct transmit *transmit = calloc(1, sizeof *transmit);
    if (transmit == NULL || path == NULL || name == NULL) {
        free(transmit);
        free(path);
        free(name);
        no_memory(error);
        return NULL;
    }
    *transmit =
        (struct transmit){.daemon = daemon, .fd = -1, .kind = kind, .path = path, .name = name};
    return transmit;
}

static void transmit_begin(struct transmit *transmit, struct rpc_call *call)
{
    transmit->call = call;
    rpc_call_set_user(call, transmit);
    file_work_start(
        &transmit->work, &transmit->daemon->file_pool, open_in_thread, after_open, transmit);
}

/* It is read to its end and hashed, as it is now. */
static cadre_status begin_blob(struct daemon *daemon, struct rpc_call *call,
    const struct sha256 *hash, struct cadre_error *error)
{
    struct transmit *transmit =
        transmit_new(daemon, WANTED_BLOB, path_of_blob(daemon, hash->bytes), strdup(""), error);
    if (transmit == NULL) {
        return error->code;
    }
    memcpy(transmit->wanted, hash->bytes, sizeof transmit->wanted);
    memcpy(transmit->announced, hash->bytes, sizeof transmit->announced);
    if (sha256_open(&transmit->hash, error) != CADRE_OK) {
        transmit_free(transmit);
        return error->code;
    }
    transmit_begin(transmit, call);
    return CADRE_OK;
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
        status = worker_permissions_check_content(daemon, call, &hash, &error);
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

static cadre_status begin_output(struct daemon *daemon, struct rpc_call *call,
    const struct get_output_request *request, struct cadre_error *error)
{
    size_t folder = strlen(ARTIFACTS_FOLDER);
    bool artifact = strncmp(request->path, ARTIFACTS_FOLDER, folder) == 0;
    CADRE_FREE_AT_EXIT char *outputs = path_of_outputs(daemon, request->id);
    char *path = NULL;
    if (outputs == NULL || asprintf(&path, "%s/%s", outputs, request->path) < 0) {
        path = NULL;
    }
    struct transmit *transmit = transmit_new(daemon, artifact ? WANTED_ARTIFACT : WANTED_OUTPUT,
        path, strdup(request->path + (artifact ? folder : 0)), error);
    if (transmit == NULL) {
        return error->code;
    }
    if (artifacts_of(daemon, request->id, &transmit->artifacts, error) != CADRE_OK) {
        transmit_free(transmit);
        return error->code;
    }
    transmit_begin(transmit, call);
    return CADRE_OK;
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
        status = begin_output(daemon, call, &request, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
    }
}

const struct rpc_server_ops get_output_ops = {
    .on_message = get_output_message, .on_drained = transmit_drained, .on_closed = transmit_closed};
