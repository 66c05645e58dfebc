/* SPDX-License-Identifier: Apache-2.0
 * The contents of a task's files: from the cache of this host, else from the coordinator by
 * Agents.GetBlob. A content is written to a temporary file, checked against its hash, then renamed.
 * What became of it since is asked when it is copied for a task (content.c) and while the task runs
 * (cache_check.c). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/wire/methods.h"
#include "worker/daemon/daemon.h"

struct fetch {
    struct task_files *task; /* NULL: cancelled, the call's end frees this */
    struct rpc_call *call;
    const struct job_file *file;
    bool renews; /* for the cache, while the task runs */
    char *temporary;
    int fd;
    struct sha256_stream *hash;
    struct cadre_error error; /* ours, when code is set */
};

static void fetch_free(struct fetch *fetch)
{
    if (fetch->fd >= 0) {
        close(fetch->fd);
    }
    if (fetch->temporary != NULL) {
        unlink(fetch->temporary);
    }
    sha256_close(fetch->hash);
    free(fetch->temporary);
    free(fetch);
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct fetch *fetch = user;
    if (fetch->task == NULL || fetch->error.code != CADRE_OK) {
        return;
    }
    struct daemon *daemon = fetch->task->daemon;
    struct blob_chunk chunk;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_blob_chunk(data, length, daemon->arena, &chunk, &fetch->error);
    if (status == CADRE_OK) {
        status = sha256_add(fetch->hash, chunk.bytes, chunk.byte_count, &fetch->error);
    }
    if (status == CADRE_OK) {
        status = file_write_all(
            fetch->fd, fetch->temporary, chunk.bytes, chunk.byte_count, &fetch->error);
    }
    if (status != CADRE_OK) {
        rpc_call_cancel(call);
    }
}

static cadre_status keep(struct fetch *fetch, struct cadre_error *error)
{
    struct sha256 made;
    CADRE_TRY(sha256_finish(fetch->hash, &made, error));
    if (memcmp(made.bytes, fetch->file->sha256, sizeof made.bytes) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "file %s came from the coordinator with another content than its hash says",
            fetch->file->name);
    }
    CADRE_FREE_AT_EXIT char *path = place_blob_path(fetch->task->daemon, fetch->file->sha256);
    bool was_here = path != NULL && access(path, F_OK) == 0;
    if (path == NULL || rename(fetch->temporary, path) != 0) {
        return cadre_error_errno(error, path == NULL ? ENOMEM : errno,
            "cannot keep file %s on this host", fetch->file->name);
    }
    free(fetch->temporary);
    fetch->temporary = NULL;
    cache_added(fetch->task->daemon, fetch->file->size_bytes, was_here);
    return CADRE_OK;
}

/* If it is not here again, the next task that takes it fetches it. */
static void tell_renewed(
    const struct task_files *task, const char *name, cadre_status status, const char *reason)
{
    if (status == CADRE_OK) {
        log_event(LOG_LEVEL_INFO, "cache", "a content was fetched anew from the coordinator",
            LOG_U64("job", task->ref.job.n), LOG_STR("file", name));
    } else {
        log_event(LOG_LEVEL_WARNING, "cache",
            "a content could not be fetched anew: the next task that takes it tries again",
            LOG_U64("job", task->ref.job.n), LOG_STR("file", name), LOG_STR("reason", reason));
    }
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct fetch *fetch = user;
    struct task_files *task = fetch->task;
    if (task == NULL) {
        fetch_free(fetch);
        return;
    }
    struct cadre_error error = fetch->error;
    if (error.code != CADRE_OK) {
        status = error.code;
    } else if (status == CADRE_OK) {
        status = keep(fetch, &error);
    } else if (status != CADRE_UNAVAILABLE) {
        cadre_error_set(&error, status, "file %s does not come from the coordinator: %s",
            fetch->file->name, text);
    }
    bool renews = fetch->renews;
    const char *name = fetch->file->name;
    task->fetch = NULL;
    fetch_free(fetch);
    if (renews) {
        tell_renewed(task, name, status, status == CADRE_UNAVAILABLE ? text : error.text);
    } else if (status == CADRE_OK) {
        task->next_file++;
        fetch_next(task);
    } else if (status != CADRE_UNAVAILABLE) {
        later_start(task, &error);
    } /* else the next link goes on: tasks_linked */
}

static const struct rpc_client_ops fetch_ops = {.on_message = on_message, .on_status = on_status};

static cadre_status open_fetch(
    struct task_files *task, struct fetch *fetch, struct cadre_error *error)
{
    struct daemon *daemon = task->daemon;
    if (asprintf(&fetch->temporary, "%s/" FETCH_PREFIX "%" PRIu64, daemon->blob_dir,
            ++daemon->temporary_last) < 0) {
        fetch->temporary = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a file");
    }
    fetch->fd = open(fetch->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fetch->fd < 0) {
        return cadre_error_errno(error, errno, "cannot make %s", fetch->temporary);
    }
    CADRE_TRY(sha256_open(&fetch->hash, error));
    struct get_blob_request request;
    memcpy(request.sha256, fetch->file->sha256, sizeof request.sha256);
    wire_buffer_clear(&daemon->packed);
    CADRE_TRY(wire_pack_get_blob_request(&request, &daemon->packed, error));
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_GET_BLOB, .server_streams = true, .ops = &fetch_ops, .user = fetch};
    CADRE_TRY(rpc_channel_call(daemon->channel, &options, &fetch->call, error));
    cadre_status status =
        rpc_call_send(fetch->call, daemon->packed.bytes, daemon->packed.size, error);
    if (status != CADRE_OK) {
        rpc_call_cancel(fetch->call);
    }
    return CADRE_OK; /* from here on the call's end tells */
}

static bool is_cached(struct daemon *daemon, const struct job_file *file)
{
    CADRE_FREE_AT_EXIT char *path = place_blob_path(daemon, file->sha256);
    struct stat status;
    bool cached =
        path != NULL && stat(path, &status) == 0 && (uint64_t)status.st_size == file->size_bytes;
    if (cached) {
        cache_used(daemon, path);
    }
    return cached;
}

static cadre_status fetch_file(
    struct task_files *task, const struct job_file *file, bool renews, struct cadre_error *error)
{
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (fetch == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a file");
    }
    *fetch = (struct fetch){.task = task, .file = file, .renews = renews, .fd = -1};
    task->fetch = fetch;
    cadre_status status = open_fetch(task, fetch, error);
    if (status != CADRE_OK) {
        task->fetch = NULL;
        fetch_free(fetch);
    }
    return status;
}

void fetch_next(struct task_files *task)
{
    while (task->next_file <= task->spec->file_count &&
           is_cached(task->daemon, tasks_file(task, task->next_file))) {
        task->next_file++;
    }
    if (task->next_file > task->spec->file_count) {
        restore_start(task);
        return;
    }
    struct cadre_error error = {0};
    if (fetch_file(task, tasks_file(task, task->next_file), false, &error) != CADRE_OK) {
        later_start(task, &error);
    }
}

void fetch_renew(struct task_files *task, const struct job_file *file)
{
    struct cadre_error error = {0};
    if (task->fetch == NULL && fetch_file(task, file, true, &error) != CADRE_OK) {
        tell_renewed(task, file->name, error.code, error.text);
    }
}

void fetch_cancel(struct task_files *task)
{
    if (task->fetch != NULL) {
        task->fetch->task = NULL;
        rpc_call_cancel(task->fetch->call);
        task->fetch = NULL;
    }
}
