/* SPDX-License-Identifier: Apache-2.0
 * Fetches the contents of a task's files: from the cache of this host, else from the coordinator
 * by Agents.GetBlob; objects are fetched by object_fetch.c. A content is written to a temporary
 * file, checked against its hash, then renamed. It is checked again when it is copied for a task
 * (content.c) and while the task runs (cache_check.c). Threads of the pool work on the files, one
 * piece at a time: the call is not read on while a chunk is written. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/wire/methods.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/fetch_report.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/task_files.h"

struct fetch {
    struct task_files *task; /* NULL: cancelled, the end of the work or of the call frees this */
    struct daemon *daemon;
    struct rpc_call *call; /* NULL: not begun, or ended */
    struct file_work work;
    char name[LIMIT_FILE_NAME_BYTES]; /* of the file; what follows is copied, too */
    uint8_t sha256[LIMIT_SHA256_BYTES];
    uint64_t size_bytes;
    void (*done)(struct task_files *task);
    bool renews;    /* for the cache, while the task runs */
    bool is_cached; /* it was there */
    bool was_here;  /* another task fetched it at the same time */
    bool ended;     /* the call, while a thread was at work, with: */
    cadre_status end_status;
    char end_text[LIMIT_TEXT_BYTES];
    char *path; /* in the cache */
    char *temporary;
    int fd;
    struct sha256_stream *hash;
    uint8_t *chunk; /* that is being written */
    size_t chunk_bytes;
    size_t chunk_capacity;
    uint64_t came_bytes;      /* that the task's counts have */
    struct cadre_error error; /* ours, when code is set */
};

static void fetch_free(struct fetch *fetch)
{
    sha256_close(fetch->hash);
    free(fetch->chunk);
    free(fetch->temporary);
    free(fetch->path);
    free(fetch);
}

/* ---- in a thread ---- */

static void fetch_look(void *user)
{
    struct fetch *fetch = user;
    struct stat status;
    fetch->is_cached = !fetch->renews && stat(fetch->path, &status) == 0 &&
                       (uint64_t)status.st_size == fetch->size_bytes;
    if (fetch->is_cached) {
        cache_used(fetch->path);
        return;
    }
    fetch->fd = open(fetch->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fetch->fd < 0) {
        cadre_error_errno(&fetch->error, errno, "cannot make %s", fetch->temporary);
    }
}

static void write_chunk(void *user)
{
    struct fetch *fetch = user;
    if (sha256_add(fetch->hash, fetch->chunk, fetch->chunk_bytes, &fetch->error) == CADRE_OK) {
        (void)file_write_all(
            fetch->fd, fetch->temporary, fetch->chunk, fetch->chunk_bytes, &fetch->error);
    }
}

static void fetch_keep(void *user)
{
    struct fetch *fetch = user;
    struct sha256 made;
    if (sha256_finish(fetch->hash, &made, &fetch->error) != CADRE_OK) {
        return;
    }
    if (memcmp(made.bytes, fetch->sha256, sizeof made.bytes) != 0) {
        cadre_error_set(&fetch->error, CADRE_DATA_LOSS,
            "file %s came damaged from the coordinator: its bytes do not have its hash",
            fetch->name);
        return;
    }
    fetch->was_here = access(fetch->path, F_OK) == 0;
    if (rename(fetch->temporary, fetch->path) != 0) {
        cadre_error_errno(&fetch->error, errno, "cannot keep file %s on this host", fetch->name);
        return;
    }
    close(fetch->fd);
    fetch->fd = -1;
}

/* Removes an incomplete file. */
static void fetch_drop(void *user)
{
    struct fetch *fetch = user;
    close(fetch->fd);
    unlink(fetch->temporary);
    fetch->fd = -1;
}

/* ---- on the loop ---- */

static void after_drop(void *user)
{
    fetch_free(user);
}

static void fetch_dispose(struct fetch *fetch)
{
    if (fetch->fd < 0) {
        fetch_free(fetch);
    } else if (fetch->daemon->closes) {
        fetch_drop(fetch); /* no thread or call uses the fetch any more */
        fetch_free(fetch);
    } else {
        file_work_start(&fetch->work, &fetch->daemon->file_pool, fetch_drop, after_drop, fetch);
    }
}

/* If it is not here again, the next task that takes it fetches it. */
static void log_renewed(
    const struct task_files *task, const char *name, cadre_status status, const char *reason)
{
    if (status == CADRE_OK) {
        log_event(LOG_LEVEL_INFO, "cache", "a content was fetched again from the coordinator",
            LOG_U64("job", task->ref.job.n), LOG_STR("file", name));
    } else {
        log_event(LOG_LEVEL_WARNING, "cache",
            "a content could not be fetched again: the next task that takes it tries again",
            LOG_U64("job", task->ref.job.n), LOG_STR("file", name), LOG_STR("reason", reason));
    }
}

static void fetch_finish(struct fetch *fetch, cadre_status status, const char *text)
{
    struct task_files *task = fetch->task;
    struct cadre_error error;
    cadre_error_set(&error, status, "%s", text); /* the text may be the fetch's */
    if (task != NULL) {
        task->fetch = NULL;
    }
    if (task != NULL && fetch->renews) {
        log_renewed(task, fetch->name, status, text);
    }
    void (*done)(struct task_files * task) = fetch->done;
    bool goes_on = task != NULL && !fetch->renews;
    if (goes_on && status != CADRE_OK) { /* it begins again */
        atomic_fetch_sub(&task->file_counts.done_bytes, fetch->came_bytes);
    }
    fetch_dispose(fetch);
    if (goes_on && status == CADRE_OK) {
        task->next_file++;
        fetch_files(task, done);
    } else if (goes_on && status != CADRE_UNAVAILABLE) {
        fetch_report_end(task);
        retry_start(task, &error);
    } else if (goes_on) {
        retry_when_linked(task->daemon); /* fetch_files() again */
    }
}

static void after_store(void *user)
{
    struct fetch *fetch = user;
    if (fetch->error.code == CADRE_OK) {
        cache_added(fetch->daemon, fetch->size_bytes, fetch->was_here);
    }
    fetch_finish(fetch, fetch->error.code, fetch->error.text);
}

/* The call is over, and no thread is at work. */
static void fetch_end(struct fetch *fetch, cadre_status status, const char *text)
{
    if (fetch->task == NULL) {
        fetch_dispose(fetch);
    } else if (fetch->error.code != CADRE_OK) {
        fetch_finish(fetch, fetch->error.code, fetch->error.text);
    } else if (status == CADRE_OK) {
        file_work_start(&fetch->work, &fetch->daemon->file_pool, fetch_keep, after_store, fetch);
    } else {
        struct cadre_error error;
        cadre_error_set(
            &error, status, "file %s does not come from the coordinator: %s", fetch->name, text);
        fetch_finish(fetch, status, error.text);
    }
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct fetch *fetch = user;
    fetch->call = NULL;
    if (fetch->work.running) {
        fetch->ended = true;
        fetch->end_status = status;
        snprintf(fetch->end_text, sizeof fetch->end_text, "%s", text);
    } else {
        fetch_end(fetch, status, text);
    }
}

static void after_write(void *user)
{
    struct fetch *fetch = user;
    if (fetch->ended) {
        fetch_end(fetch, fetch->end_status, fetch->end_text);
    } else if (fetch->error.code != CADRE_OK) {
        rpc_call_cancel(fetch->call);
    } else {
        rpc_call_resume(fetch->call);
    }
}

/* The chunk is valid only during the message, so it is copied. */
static cadre_status on_chunk(struct fetch *fetch, const struct blob_chunk *chunk)
{
    if (chunk->byte_count > fetch->chunk_capacity) {
        uint8_t *grown = realloc(fetch->chunk, chunk->byte_count);
        if (grown == NULL) {
            return cadre_error_set(&fetch->error, CADRE_RESOURCE_EXHAUSTED,
                "the worker has no memory to fetch file %s", fetch->name);
        }
        fetch->chunk = grown;
        fetch->chunk_capacity = chunk->byte_count;
    }
    if (chunk->byte_count > 0) {
        memcpy(fetch->chunk, chunk->bytes, chunk->byte_count);
    }
    fetch->chunk_bytes = chunk->byte_count;
    return CADRE_OK;
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct fetch *fetch = user;
    if (fetch->task == NULL || fetch->error.code != CADRE_OK) {
        return;
    }
    struct blob_chunk chunk;
    wire_arena_reset(fetch->daemon->arena);
    if (wire_unpack_blob_chunk(data, length, fetch->daemon->arena, &chunk, &fetch->error) !=
            CADRE_OK ||
        on_chunk(fetch, &chunk) != CADRE_OK) {
        rpc_call_cancel(call);
    } else if (fetch->chunk_bytes > 0) {
        fetch->came_bytes += fetch->chunk_bytes;
        atomic_fetch_add(&fetch->task->file_counts.done_bytes, fetch->chunk_bytes);
        rpc_call_pause(call);
        file_work_start(&fetch->work, &fetch->daemon->file_pool, write_chunk, after_write, fetch);
    }
}

static const struct rpc_client_ops fetch_ops = {.on_message = on_message, .on_status = on_status};

static cadre_status begin_call(struct fetch *fetch, struct cadre_error *error)
{
    struct daemon *daemon = fetch->daemon;
    CADRE_TRY(sha256_open(&fetch->hash, error));
    struct get_blob_request request;
    memcpy(request.sha256, fetch->sha256, sizeof request.sha256);
    wire_buffer_clear(&daemon->packed);
    CADRE_TRY(wire_pack_get_blob_request(&request, &daemon->packed, error));
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_GET_BLOB, .server_streams = true, .ops = &fetch_ops, .user = fetch};
    CADRE_TRY(rpc_channel_call(daemon->channel, &options, &fetch->call, error));
    if (rpc_call_send(fetch->call, daemon->packed.bytes, daemon->packed.size, error) != CADRE_OK) {
        rpc_call_cancel(fetch->call); /* the call's end continues */
        error->code = CADRE_OK;
    }
    return CADRE_OK;
}

static void after_look(void *user)
{
    struct fetch *fetch = user;
    if (fetch->task == NULL) {
        fetch_dispose(fetch);
    } else if (fetch->is_cached) {
        fetch->daemon->counts.cache_hits++;
        fetch_finish(fetch, CADRE_OK, "");
    } else if (fetch->error.code != CADRE_OK || begin_call(fetch, &fetch->error) != CADRE_OK) {
        fetch_finish(fetch, fetch->error.code, fetch->error.text);
    }
}

/* `done` NULL: for the cache alone, while the task runs. */
static cadre_status fetch_file(struct task_files *task, const struct job_file *file,
    void (*done)(struct task_files *task), struct cadre_error *error)
{
    struct daemon *daemon = task->daemon;
    struct fetch *fetch = calloc(1, sizeof *fetch);
    char *path = cache_path(daemon, file->sha256);
    char *temporary = NULL;
    if (asprintf(&temporary, "%s/" FETCH_PREFIX "%" PRIu64, daemon->blob_dir,
            ++daemon->temporary_last) < 0) {
        temporary = NULL;
    }
    if (fetch == NULL || path == NULL || temporary == NULL) {
        free(fetch);
        free(path);
        free(temporary);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a file");
    }
    *fetch = (struct fetch){.task = task,
        .daemon = daemon,
        .size_bytes = file->size_bytes,
        .done = done,
        .renews = done == NULL,
        .path = path,
        .temporary = temporary,
        .fd = -1};
    snprintf(fetch->name, sizeof fetch->name, "%s", file->name);
    memcpy(fetch->sha256, file->sha256, sizeof fetch->sha256);
    task->fetch = fetch;
    file_work_start(&fetch->work, &daemon->file_pool, fetch_look, after_look, fetch);
    return CADRE_OK;
}

/* What is not here yet: the files to come, unless they turn out to be cached. */
static void count_files(struct task_files *task)
{
    uint64_t whole = atomic_load(&task->file_counts.done_bytes);
    for (size_t i = task->next_file; i <= task->spec->file_count; i++) {
        whole += tasks_file(task, i)->size_bytes;
    }
    atomic_store(&task->file_counts.whole_bytes, whole);
    fetch_report_begin(task, FETCH_FILES, &task->file_counts);
}

static void after_object(struct task_files *task, void (*done)(struct task_files *task),
    enum object_end end, const struct cadre_error *error)
{
    if (end == OBJECT_FETCHED) {
        task->next_file++;
        fetch_files(task, done);
    } else if (end == OBJECT_UNLINKED) {
        retry_when_linked(task->daemon); /* fetch_files() again */
    } else {
        retry_start(task, error);
    }
}

void fetch_files(struct task_files *task, void (*done)(struct task_files *task))
{
    if (task->next_file > task->spec->file_count) {
        fetch_report_end(task);
        done(task);
        return;
    }
    struct cadre_error error = {0};
    count_files(task);
    if (job_file_is_object(tasks_file(task, task->next_file))) {
        object_fetch_start(task, task->next_file, done, after_object);
        return;
    }
    if (fetch_file(task, tasks_file(task, task->next_file), done, &error) != CADRE_OK) {
        retry_start(task, &error);
    }
}

void fetch_renew(struct task_files *task, const struct job_file *file)
{
    struct cadre_error error = {0};
    if (job_file_is_object(file)) {
        return; /* the next task that needs it fetches it */
    }
    if (task->fetch == NULL && fetch_file(task, file, NULL, &error) != CADRE_OK) {
        log_renewed(task, file->name, error.code, error.text);
    }
}

void fetch_cancel(struct task_files *task)
{
    struct fetch *fetch = task->fetch;
    task->fetch = NULL;
    fetch_report_end(task);
    object_fetch_cancel(task);
    if (fetch != NULL) {
        fetch->task = NULL;
        if (fetch->call != NULL) {
            rpc_call_cancel(fetch->call);
        } /* else a thread is at work, and its end frees it */
    }
}
