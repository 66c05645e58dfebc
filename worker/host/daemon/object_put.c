/* SPDX-License-Identifier: Apache-2.0
 * Writes files of a task's output folder to an object store, with the credentials of its job, one
 * at a time: a larger one in parts, several of which are on their way. Nothing is seen of a file
 * before it is whole. Uploads that an earlier daemon left there half-done are removed first. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/storage/writer.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/objects/job_storage.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/task_files.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define CHECK_NAME  "writable" /* of an object that is begun, and given up */

struct object_put {
    struct task_files *task; /* NULL: cancelled, the end of the work frees this */
    struct daemon *daemon;
    struct job_storage storage;
    struct file_work work;
    char *folder; /* here */
    char *target; /* there; what belongs to this task begins so */
    char *name;   /* of the file; NULL: whether the job may write there is tried */
    bool cleared; /* what an earlier daemon left there half-done */
    bool is_file;
    struct cadre_error error;
    void (*checked)(struct task_files *task, const struct cadre_error *error);
    void (*ended)(struct task_files *task, const struct cadre_error *error, bool is_file);
};

static void put_free(struct object_put *put)
{
    job_storage_close(&put->storage);
    free(put->folder);
    free(put->target);
    free(put->name);
    free(put);
}

bool object_put_is_wanted(const struct task_files *task)
{
    return task->spec->outputs_folder != NULL && task->spec->outputs_folder[0] != '\0';
}

/* "s3://bucket/key/<job>/<slot>"; NULL: no memory. */
static char *object_put_target(const struct task_files *task)
{
    char name[64];
    snprintf(name, sizeof name, "%" PRIu64 "/%" PRIu32, task->ref.job.n, task->ref.slot);
    return storage_join(task->spec->outputs_folder, name);
}

/* ---- in a thread ---- */

/* Rights to list uploads may be missing: then those that a killed daemon left stay. */
static void clear_uploads(struct object_put *put)
{
    CADRE_FREE_AT_EXIT char *start = NULL;
    uint32_t count = 0;
    if (asprintf(&start, "%s/", put->target) < 0) {
        start = NULL;
        return;
    }
    (void)storage_uploads_clear(put->storage.client, start, INT64_MAX, &count, NULL);
    put->cleared = true;
}

static cadre_status copy_pieces(struct object_put *put, int fd, uint64_t left,
    struct storage_writer *writer, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *piece = malloc(PIECE_BYTES);
    if (piece == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to write an object");
    }
    while (left > 0) {
        ssize_t got = read(fd, piece, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            put->is_file = true;
            return cadre_error_set(
                error, CADRE_DATA_LOSS, "file %s changed while it was sent", put->name);
        }
        CADRE_TRY(storage_writer_add(writer, piece, (size_t)got, error));
        left -= (uint64_t)got;
    }
    return CADRE_OK;
}

static cadre_status put_file(struct object_put *put, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    struct stat status;
    put->is_file = true;
    CADRE_TRY(open_beneath(put->folder, put->name, &fd, &status, error));
    put->is_file = false;
    CADRE_FREE_AT_EXIT char *path = storage_join(put->target, put->name);
    if (path == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to write an object");
    }
    struct storage_writer *writer = NULL;
    CADRE_TRY(storage_writer_open(put->storage.client, path, &writer, error));
    cadre_status code = copy_pieces(put, fd, (uint64_t)status.st_size, writer, error);
    if (code != CADRE_OK) {
        storage_writer_abort(writer);
        return code;
    }
    return storage_writer_finish(writer, error);
}

/* Beginning an upload takes the right to write, and shows nothing. */
static cadre_status try_target(struct object_put *put, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = storage_join(put->target, CHECK_NAME);
    struct storage_upload *upload = NULL;
    if (path == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to write an object");
    }
    CADRE_TRY(storage_upload_begin(put->storage.client, path, &upload, error));
    storage_upload_abort(upload);
    return CADRE_OK;
}

static void put_in_thread(void *user)
{
    struct object_put *put = user;
    put->error = (struct cadre_error){0};
    if (put->name == NULL) {
        (void)try_target(put, &put->error);
        return;
    }
    if (!put->cleared) {
        clear_uploads(put);
    }
    (void)put_file(put, &put->error);
}

/* ---- on the loop ---- */

static void after_put(void *user)
{
    struct object_put *put = user;
    struct task_files *task = put->task;
    struct cadre_error error = put->error;
    if (task == NULL) {
        put_free(put);
    } else if (put->name != NULL) {
        free(put->name);
        put->name = NULL;
        put->ended(task, &error, put->is_file);
    } else {
        void (*checked)(struct task_files * task, const struct cadre_error *error) = put->checked;
        task->put = NULL;
        put_free(put);
        if (error.code != CADRE_OK) {
            cadre_error_wrap(&error, error.code, "what the task leaves could not be written");
        }
        checked(task, &error);
    }
}

/* One for all files, because it knows the store and its connections then. */
static cadre_status put_open(struct task_files *task, struct cadre_error *error)
{
    if (task->put != NULL) {
        return CADRE_OK;
    }
    struct object_put *put = calloc(1, sizeof *put);
    if (put == NULL || asprintf(&put->folder, "%s/out", task->folder) < 0) {
        free(put);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to write an object");
    }
    put->task = task;
    put->daemon = task->daemon;
    put->target = object_put_target(task);
    if (put->target == NULL) {
        cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to write an object");
    } else if (job_storage_open(&put->storage, task->spec, &task->user, error) == CADRE_OK) {
        task->put = put;
        return CADRE_OK;
    }
    put_free(put);
    return error->code;
}

void object_put_check(struct task_files *task,
    void (*ended)(struct task_files *task, const struct cadre_error *error))
{
    struct cadre_error error = {0};
    if (put_open(task, &error) != CADRE_OK) {
        ended(task, &error);
        return;
    }
    task->put->checked = ended;
    file_work_start(
        &task->put->work, &task->daemon->store_pool, put_in_thread, after_put, task->put);
}

void object_put_start(struct task_files *task, const char *name,
    void (*ended)(struct task_files *task, const struct cadre_error *error, bool is_file))
{
    struct cadre_error error = {0};
    char *copy = strdup(name);
    if (copy == NULL || put_open(task, &error) != CADRE_OK) {
        if (copy == NULL) {
            cadre_error_set(
                &error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to write an object");
        }
        free(copy);
        ended(task, &error, false);
        return;
    }
    task->put->name = copy;
    task->put->ended = ended;
    file_work_start(
        &task->put->work, &task->daemon->store_pool, put_in_thread, after_put, task->put);
}

void object_put_cancel(struct task_files *task)
{
    struct object_put *put = task->put;
    if (put == NULL) {
        return;
    }
    task->put = NULL;
    put->task = NULL;
    if (put->work.running) {
        job_storage_stop(&put->storage); /* the thread's end frees it */
    } else {
        put_free(put);
    }
}
