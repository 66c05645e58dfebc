/* SPDX-License-Identifier: Apache-2.0
 * Fetches a file of a task that is an object: looks it up with the credentials of the job, reads it
 * unless the cache has that version, and asks the coordinator which bytes count for the job: those
 * of the first worker that asked. Threads of their own wait for the store. Of several tasks that
 * need one object here, one reads it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/pure/object_path.h"
#include "common/storage/ahead.h"
#include "common/wire/methods.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/fetch_report.h"
#include "worker/host/daemon/objects/object_index.h"
#include "worker/host/daemon/task_files.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define HEX_SHOWN   12 /* digits of a hash, for people */

struct object_fetch {
    struct task_files *task; /* NULL: cancelled, the end of the work or of the call frees this */
    struct daemon *daemon;
    size_t file; /* as of tasks_file(); what follows is copied */
    char *name;
    char *url;
    char *version; /* when the job was submitted; "": not known */
    uint64_t size_bytes;
    void (*done)(struct task_files *task);
    void (*ended)(struct task_files *task, void (*done)(struct task_files *task),
        enum object_end end, const struct cadre_error *error);
    struct job_storage storage;
    struct file_work work;
    struct storage_object *object;
    char *index_path; /* NULL: it cannot be known again */
    bool is_cached;
    bool reads;    /* it is on its way */
    bool waits;    /* for another task that reads it */
    bool was_here; /* its content, under another name or version */
    char *temporary;
    uint8_t sha256[SHA256_BYTES];
    struct checkpoint_counts counts; /* for the report */
    struct rpc_call *call;
    struct cadre_error error; /* ours, when code is set */
};

static void object_free(struct object_fetch *object)
{
    storage_close(object->object);
    job_storage_close(&object->storage);
    free(object->temporary);
    free(object->index_path);
    free(object->version);
    free(object->url);
    free(object->name);
    free(object);
}

/* ---- in a thread ---- */

static cadre_status check_version(struct object_fetch *object, struct cadre_error *error)
{
    const struct storage_info *info = storage_info_of(object->object);
    int shown = (int)object_url_shown(object->url);
    if (object->version[0] != '\0' &&
        (strcmp(object->version, info->version) != 0 || object->size_bytes != info->bytes)) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%.*s has changed since the job was submitted (%" PRIu64
            " bytes with ETag %s then, now %" PRIu64
            " with %s): put the object back, or submit the job again",
            shown, object->url, object->size_bytes, object->version, info->bytes, info->version);
    }
    if (info->bytes > LIMIT_BLOB_BYTES) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%.*s has %" PRIu64 " bytes; a file of a job may have %llu: have the program read it",
            shown, object->url, info->bytes, LIMIT_BLOB_BYTES);
    }
    return CADRE_OK;
}

static cadre_status look_up(struct object_fetch *object, struct cadre_error *error)
{
    const char *blobs = object->daemon->blob_dir;
    CADRE_TRY(storage_open(object->storage.client, object->url, &object->object, error));
    CADRE_TRY(check_version(object, error));
    const struct storage_info *info = storage_info_of(object->object);
    CADRE_TRY(
        object_index_path(blobs, &object->storage, object->url, info, &object->index_path, error));
    object->is_cached = object->index_path != NULL &&
                        object_index_find(object->index_path, blobs, info->bytes, object->sha256);
    if (object->is_cached) {
        CADRE_FREE_AT_EXIT char *path = cache_path(object->daemon, object->sha256);
        if (path != NULL) {
            cache_used(path);
        }
    }
    return CADRE_OK;
}

static void look_in_thread(void *user)
{
    struct object_fetch *object = user;
    (void)look_up(object, &object->error);
}

static cadre_status read_pieces(struct object_fetch *object, struct storage_ahead *ahead, int fd,
    struct sha256_stream *hash, struct cadre_error *error)
{
    uint64_t whole = storage_info_of(object->object)->bytes;
    CADRE_FREE_AT_EXIT uint8_t *piece = malloc(PIECE_BYTES);
    if (piece == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read an object");
    }
    for (uint64_t at = 0; at < whole;) {
        size_t want = whole - at < PIECE_BYTES ? (size_t)(whole - at) : PIECE_BYTES;
        CADRE_TRY(storage_ahead_read(ahead, at, piece, want, error));
        CADRE_TRY(sha256_add(hash, piece, want, error));
        CADRE_TRY(file_write_all(fd, object->temporary, piece, want, error));
        at += want;
        atomic_fetch_add(&object->counts.done_bytes, want);
    }
    return CADRE_OK;
}

static cadre_status read_object(
    struct object_fetch *object, int fd, struct sha256 *ret_hash, struct cadre_error *error)
{
    struct storage_ahead *ahead = NULL;
    struct sha256_stream *hash = NULL;
    cadre_status status = storage_ahead_open(object->object, &ahead, error);
    if (status == CADRE_OK) {
        status = sha256_open(&hash, error);
    }
    if (status == CADRE_OK) {
        status = read_pieces(object, ahead, fd, hash, error);
    }
    if (status == CADRE_OK) {
        status = sha256_finish(hash, ret_hash, error);
    }
    sha256_close(hash);
    storage_ahead_close(ahead);
    return status;
}

/* Its content is in the cache then, under its hash. */
static cadre_status read_to_cache(struct object_fetch *object, struct cadre_error *error)
{
    struct sha256 hash;
    CADRE_CLOSE_AT_EXIT int fd =
        open(object->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot make %s", object->temporary);
    }
    CADRE_TRY(read_object(object, fd, &hash, error));
    memcpy(object->sha256, hash.bytes, sizeof object->sha256);
    CADRE_FREE_AT_EXIT char *path = cache_path(object->daemon, object->sha256);
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path");
    }
    object->was_here = access(path, F_OK) == 0;
    if (rename(object->temporary, path) != 0) {
        return cadre_error_errno(error, errno, "cannot keep it on this host");
    }
    if (object->index_path != NULL) {
        object_index_keep(object->index_path, object->sha256);
    }
    return CADRE_OK;
}

static void read_in_thread(void *user)
{
    struct object_fetch *object = user;
    if (read_to_cache(object, &object->error) != CADRE_OK) {
        (void)unlink(object->temporary);
    }
}

/* ---- on the loop ---- */

static void object_look(struct object_fetch *object);

/* Another task here that reads the same. */
static bool is_read_by_other(const struct object_fetch *object)
{
    for (const struct task_files *task = object->daemon->tasks; task != NULL; task = task->next) {
        const struct object_fetch *other = task->object;
        if (other != NULL && other != object && other->reads && other->index_path != NULL &&
            object->index_path != NULL && strcmp(other->index_path, object->index_path) == 0) {
            return true;
        }
    }
    return false;
}

/* One that waited looks again: what was read is in the cache, or it reads itself. */
static void wake_waiting(const struct daemon *daemon)
{
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        if (task->object != NULL && task->object->waits && !is_read_by_other(task->object)) {
            task->object->waits = false;
            object_look(task->object);
        }
    }
}

static void object_end(struct object_fetch *object, enum object_end end)
{
    struct task_files *task = object->task;
    struct cadre_error error = object->error;
    if (error.code != CADRE_OK) {
        cadre_error_wrap(&error, error.code, "file %.200s", object->name);
    }
    void (*done)(struct task_files * task) = object->done;
    void (*ended)(struct task_files * task, void (*done)(struct task_files * task),
        enum object_end end, const struct cadre_error *error) = object->ended;
    task->object = NULL;
    fetch_report_end(task);
    object_free(object);
    ended(task, done, end, &error);
}

/* False: it was cancelled, or failed. */
static bool is_active(struct object_fetch *object)
{
    if (object->task == NULL) {
        object_free(object);
        return false;
    }
    if (object->error.code != CADRE_OK) {
        object_end(object, OBJECT_FAILED);
        return false;
    }
    return true;
}

/* ---- which bytes count ---- */

static void compare_settled(struct object_fetch *object, const struct settled_file *settled)
{
    const struct storage_info *info = storage_info_of(object->object);
    struct sha256 hashes[2];
    char first[SHA256_HEX_BYTES];
    char now[SHA256_HEX_BYTES];
    memcpy(hashes[0].bytes, settled->sha256, SHA256_BYTES);
    memcpy(hashes[1].bytes, object->sha256, SHA256_BYTES);
    if (sha256_equal(&hashes[0], &hashes[1]) && settled->size_bytes == info->bytes) {
        return;
    }
    sha256_hex(&hashes[0], first);
    sha256_hex(&hashes[1], now);
    cadre_error_set(&object->error, CADRE_DATA_LOSS,
        "%.*s is not what it was when this job's tasks fetched it first (%" PRIu64
        " bytes with SHA-256 %.*s... then, now %" PRIu64
        " with %.*s...): put the object back, or submit the job again",
        (int)object_url_shown(object->url), object->url, settled->size_bytes, HEX_SHOWN, first,
        info->bytes, HEX_SHOWN, now);
}

static void on_settled(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    struct object_fetch *object = user;
    struct settled_file settled;
    if (object->task == NULL) {
        return;
    }
    wire_arena_reset(object->daemon->arena);
    if (wire_unpack_settled_file(data, length, object->daemon->arena, &settled, &object->error) ==
        CADRE_OK) {
        compare_settled(object, &settled);
    }
}

static void on_settle_status(
    struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct object_fetch *object = user;
    object->call = NULL;
    if (object->task != NULL && object->error.code == CADRE_OK && status == CADRE_UNAVAILABLE) {
        object_end(object, OBJECT_UNLINKED);
        return;
    }
    if (status != CADRE_OK && object->error.code == CADRE_OK) {
        cadre_error_set(
            &object->error, status, "the coordinator does not settle its bytes: %s", text);
    }
    if (is_active(object)) {
        object_end(object, OBJECT_FETCHED);
    }
}

static const struct rpc_client_ops settle_ops = {
    .on_message = on_settled, .on_status = on_settle_status};

/* From now on the task has a file of this hash, and the cache keeps its content. */
static cadre_status note_fetched(struct object_fetch *object, struct cadre_error *error)
{
    struct task_files *task = object->task;
    const struct job_spec *spec = task->spec;
    if (task->objects == NULL) {
        task->objects = calloc(spec->file_count, sizeof *task->objects);
        if (task->objects == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "the worker has no memory for the files of another task");
        }
        memcpy(task->objects, spec->files, spec->file_count * sizeof *task->objects);
    }
    struct job_file *file = &task->objects[object->file - 1];
    memcpy(file->sha256, object->sha256, sizeof file->sha256);
    file->size_bytes = storage_info_of(object->object)->bytes;
    return CADRE_OK;
}

static cadre_status begin_settle(struct object_fetch *object, struct cadre_error *error)
{
    struct daemon *daemon = object->daemon;
    const struct storage_info *info = storage_info_of(object->object);
    struct settle_file_request request = {.task = object->task->ref,
        .file = (uint32_t)(object->file - 1),
        .found = {.size_bytes = info->bytes, .version = info->version}};
    memcpy(request.found.sha256, object->sha256, sizeof request.found.sha256);
    wire_buffer_clear(&daemon->packed);
    CADRE_TRY(wire_pack_settle_file_request(&request, &daemon->packed, error));
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_SETTLE_FILE, .ops = &settle_ops, .user = object};
    CADRE_TRY(rpc_channel_call(daemon->channel, &options, &object->call, error));
    if (rpc_call_send(object->call, daemon->packed.bytes, daemon->packed.size, error) != CADRE_OK) {
        rpc_call_cancel(object->call); /* the call's end continues */
        *error = (struct cadre_error){0};
    }
    return CADRE_OK;
}

static void object_settle(struct object_fetch *object)
{
    if (begin_settle(object, &object->error) != CADRE_OK) {
        object_end(object, OBJECT_FAILED);
    }
}

/* ---- the bytes ---- */

static void after_read(void *user)
{
    struct object_fetch *object = user;
    struct daemon *daemon = object->daemon;
    bool is_here = object->error.code == CADRE_OK;
    object->reads = false;
    if (is_here && object->task != NULL) {
        (void)note_fetched(object, &object->error);
    }
    if (is_here) {
        cache_added(daemon, storage_info_of(object->object)->bytes, object->was_here);
    }
    if (is_active(object)) {
        object_settle(object);
    }
    wake_waiting(daemon);
}

static void object_read(struct object_fetch *object)
{
    struct daemon *daemon = object->daemon;
    if (asprintf(&object->temporary, "%s/" FETCH_PREFIX "%" PRIu64, daemon->blob_dir,
            ++daemon->temporary_last) < 0) {
        object->temporary = NULL;
        cadre_error_set(
            &object->error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a file");
        object_end(object, OBJECT_FAILED);
        return;
    }
    atomic_store(&object->counts.whole_bytes, storage_info_of(object->object)->bytes);
    fetch_report_end(object->task);
    fetch_report_begin(object->task, FETCH_FILES, &object->counts);
    object->reads = true;
    file_work_start(&object->work, &daemon->store_pool, read_in_thread, after_read, object);
}

static void after_look(void *user)
{
    struct object_fetch *object = user;
    if (!is_active(object)) {
        return;
    }
    if (object->is_cached) {
        object->daemon->counts.cache_hits++;
        (void)note_fetched(object, &object->error);
        if (is_active(object)) {
            object_settle(object);
        }
    } else if (is_read_by_other(object)) {
        object->waits = true;
    } else {
        object_read(object);
    }
}

static void object_look(struct object_fetch *object)
{
    storage_close(object->object);
    free(object->index_path);
    object->object = NULL;
    object->index_path = NULL;
    file_work_start(&object->work, &object->daemon->store_pool, look_in_thread, after_look, object);
}

/* ---- for fetch.c ---- */

static cadre_status object_open(
    struct object_fetch *object, const struct job_file *file, struct cadre_error *error)
{
    object->name = strdup(file->name);
    object->url = strdup(file->url);
    object->version = strdup(file->version);
    object->size_bytes = file->size_bytes;
    if (object->name == NULL || object->url == NULL || object->version == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a file");
    }
    return job_storage_open(&object->storage, object->task->spec, &object->task->user, error);
}

void object_fetch_start(struct task_files *task, size_t file, void (*done)(struct task_files *task),
    void (*ended)(struct task_files *task, void (*done)(struct task_files *task),
        enum object_end end, const struct cadre_error *error))
{
    struct cadre_error error = {0};
    struct object_fetch *object = calloc(1, sizeof *object);
    if (object == NULL) {
        cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a file");
        ended(task, done, OBJECT_FAILED, &error);
        return;
    }
    object->task = task;
    object->daemon = task->daemon;
    object->file = file;
    object->done = done;
    object->ended = ended;
    task->object = object;
    /* That of the spec: what an earlier look found may not be there any more. */
    if (object_open(object, &task->spec->files[file - 1], &object->error) != CADRE_OK) {
        object_end(object, OBJECT_FAILED);
        return;
    }
    object_look(object);
}

void object_fetch_cancel(struct task_files *task)
{
    struct object_fetch *object = task->object;
    if (object == NULL) {
        return;
    }
    task->object = NULL;
    fetch_report_end(task);
    object->task = NULL;
    if (object->call != NULL) {
        rpc_call_cancel(object->call); /* its end frees it */
    } else if (object->work.running) {
        job_storage_stop(&object->storage); /* the thread's end frees it */
    } else {
        object_free(object);
    }
}
