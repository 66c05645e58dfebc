/* SPDX-License-Identifier: Apache-2.0
 * The checkpoint that a task goes on from is at hand before the task starts: its manifest and its
 * blocks are fetched by Agents.GetBlob, each is checked against its hash, and the file is put
 * together in <task>/restore/. A content that was cut short by a broken link is fetched again from
 * its beginning. Of several tasks of a job that start here, one fetches and the others link to its
 * files. One in a shared folder stays where it is. */
#include <dirent.h>
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
#include "common/checkpoint/content.h"
#include "common/wire/methods.h"
#include "worker/daemon/daemon.h"

#define MANIFEST_NAME "checkpoint.json"

struct restore {
    struct task_files *task; /* NULL: cancelled, the call's end frees this */
    char *folder;
    bool leads; /* it fetches; else it waits for one that does */
    struct checkpoint_content content;
    bool has_manifest;
    size_t next;           /* block to be fetched */
    int fd;                /* of the file that is put together */
    struct rpc_call *call; /* of the content in hand, and of that: */
    struct sha256_stream *hash;
    uint64_t got_bytes;
    struct wire_buffer manifest; /* its bytes, as they come */
    struct cadre_error error;    /* ours, when code is set */
};

static const struct checkpoint_ref *checkpoint_of(const struct restore *restore)
{
    return &restore->task->start->checkpoint;
}

static void restore_free(struct restore *restore)
{
    if (restore->fd >= 0) {
        close(restore->fd);
    }
    sha256_close(restore->hash);
    checkpoint_content_free(&restore->content);
    wire_buffer_free(&restore->manifest);
    free(restore->folder);
    free(restore);
}

static void go_on(struct restore *restore);

/* One that fetched is through with it, or not there any more. */
static void wake_others(const struct daemon *daemon)
{
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        if (task->restore != NULL && !task->restore->leads) {
            go_on(task->restore);
        }
    }
}

static void give_up(struct restore *restore, const struct cadre_error *error)
{
    struct task_files *task = restore->task;
    char text[LIMIT_TEXT_BYTES];
    snprintf(text, sizeof text, "the checkpoint of step %" PRIu64 " cannot be had: %.400s",
        task->start->checkpoint.position, error->text);
    task->restore = NULL;
    restore_free(restore);
    wake_others(task->daemon);
    tasks_fail(task, text);
}

/* ---- the content in hand: the manifest, then each block ---- */

static const uint8_t *wanted_hash(const struct restore *restore)
{
    return restore->has_manifest ? restore->content.blocks[restore->next].sha256
                                 : checkpoint_of(restore)->manifest_sha256;
}

static uint64_t wanted_bytes(const struct restore *restore)
{
    return restore->has_manifest ? restore->content.blocks[restore->next].bytes
                                 : checkpoint_of(restore)->manifest_bytes;
}

static cadre_status keep_bytes(struct restore *restore, const uint8_t *bytes, size_t size)
{
    if (size > wanted_bytes(restore) - restore->got_bytes) {
        return cadre_error_set(&restore->error, CADRE_DATA_LOSS,
            "the coordinator sent more than the %" PRIu64 " bytes that a content of it has",
            wanted_bytes(restore));
    }
    CADRE_TRY(sha256_add(restore->hash, bytes, size, &restore->error));
    if (!restore->has_manifest) {
        if (!wire_buffer_reserve(&restore->manifest, size)) {
            return cadre_error_set(
                &restore->error, CADRE_RESOURCE_EXHAUSTED, "no memory for its manifest");
        }
        memcpy(restore->manifest.bytes + restore->manifest.size, bytes, size);
        restore->manifest.size += size;
        restore->got_bytes += size;
        return CADRE_OK;
    }
    uint64_t offset = restore->content.blocks[restore->next].offset;
    while (size > 0) {
        ssize_t put = pwrite(restore->fd, bytes, size, (off_t)(offset + restore->got_bytes));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return cadre_error_errno(
                &restore->error, put < 0 ? errno : EIO, "cannot write it on this host");
        }
        bytes += put;
        size -= (size_t)put;
        restore->got_bytes += (uint64_t)put;
    }
    return CADRE_OK;
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct restore *restore = user;
    if (restore->task == NULL || restore->error.code != CADRE_OK) {
        return;
    }
    struct daemon *daemon = restore->task->daemon;
    struct blob_chunk chunk;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_blob_chunk(data, length, daemon->arena, &chunk, &restore->error);
    if (status == CADRE_OK) {
        status = keep_bytes(restore, chunk.bytes, chunk.byte_count);
    }
    if (status != CADRE_OK) {
        rpc_call_cancel(call);
    }
}

static cadre_status check(struct restore *restore, struct cadre_error *error)
{
    struct sha256 made;
    CADRE_TRY(sha256_finish(restore->hash, &made, error));
    if (restore->got_bytes != wanted_bytes(restore) ||
        memcmp(made.bytes, wanted_hash(restore), sizeof made.bytes) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "a content of it came from the coordinator otherwise than its hash says");
    }
    return CADRE_OK;
}

/* ---- from one to the next ---- */

static cadre_status take_manifest(struct restore *restore, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    CADRE_TRY(checkpoint_content_read(
        (const char *)restore->manifest.bytes, restore->manifest.size, &restore->content, error));
    if (restore->content.position != checkpoint_of(restore)->position) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "its manifest is of step %" PRIu64, restore->content.position);
    }
    if (strcmp(restore->content.file_name, MANIFEST_NAME) == 0 ||
        asprintf(&path, "%s/%s", restore->folder, restore->content.file_name) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "its file cannot be called %s on this host", restore->content.file_name);
    }
    restore->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (restore->fd < 0 || fchmod(restore->fd, 0644) != 0) { /* whatever the umask */
        return cadre_error_errno(error, errno, "cannot make %s", path);
    }
    restore->has_manifest = true;
    return CADRE_OK;
}

static cadre_status write_manifest(struct restore *restore, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/" MANIFEST_NAME, restore->folder) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for its path");
    }
    CADRE_TRY(
        file_write_atomic(path, restore->manifest.bytes, restore->manifest.size, 0644, error));
    return chmod(path, 0644) == 0 ? CADRE_OK
                                  : cadre_error_errno(error, errno, "cannot open %s to all", path);
}

/* Everything is there. The task's user may read it, by its group, and not change it. */
static cadre_status complete(struct restore *restore, struct cadre_error *error)
{
    struct task_files *task = restore->task;
    const struct daemon *daemon = task->daemon;
    if (daemon->change_user && (lchown(restore->folder, (uid_t)-1, daemon->gid) != 0 ||
                                   chmod(restore->folder, 0750) != 0)) {
        return cadre_error_errno(error, errno, "cannot open it to the task's user");
    }
    if (asprintf(&task->restore_path, "%s/" MANIFEST_NAME, restore->folder) < 0) {
        task->restore_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for its path");
    }
    task->restore = NULL;
    restore_free(restore);
    place_start(task);
    wake_others(daemon);
    return CADRE_OK;
}

/* ---- from another task of the job ---- */

/* One that fetches the same checkpoint, or (complete) that has it. */
static const struct task_files *find_other(const struct task_files *task, bool complete)
{
    const struct checkpoint_ref *wanted = &task->start->checkpoint;
    const struct task_files *other = task->daemon->tasks;
    for (; other != NULL; other = other->next) {
        const struct agent_start *start = other->start;
        bool same = other != task && start->restores && !start->checkpoint.shared &&
                    other->ref.job.n == task->ref.job.n &&
                    memcmp(start->checkpoint.manifest_sha256, wanted->manifest_sha256,
                        LIMIT_SHA256_BYTES) == 0;
        bool has_it = other->restore_path != NULL;
        bool fetches = other->restore != NULL && other->restore->leads;
        if (same && (complete ? has_it : fetches)) {
            return other;
        }
    }
    return NULL;
}

static bool link_files(const struct task_files *from, const char *to)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/restore", from->folder) < 0) {
        path = NULL;
        return false;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *source = opendir(path);
    CADRE_CLOSE_AT_EXIT int target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *entry;
    bool linked = source != NULL && target >= 0;
    while (linked && (entry = readdir(source)) != NULL) {
        linked = entry->d_name[0] == '.' ||
                 linkat(dirfd(source), entry->d_name, target, entry->d_name, 0) == 0;
    }
    return linked;
}

/* False: there is nobody to take it from, so it has to be fetched. */
static bool take_from_other(struct restore *restore, bool *ret_complete)
{
    const struct task_files *other = find_other(restore->task, true);
    *ret_complete = other != NULL && link_files(other, restore->folder);
    if (*ret_complete) {
        return true;
    }
    if (other != NULL) { /* some of its files may be here */
        (void)tree_remove(restore->folder, NULL);
        (void)folder_make(restore->folder, 0700, NULL);
    }
    return find_other(restore->task, false) != NULL;
}

/* ---- what comes next ---- */

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct restore *restore = user;
    if (restore->task == NULL) {
        restore_free(restore);
        return;
    }
    restore->call = NULL;
    struct cadre_error error = restore->error;
    if (error.code != CADRE_OK) {
        status = error.code;
    } else if (status == CADRE_OK) {
        status = check(restore, &error);
    } else if (status == CADRE_UNAVAILABLE) {
        return; /* the next link goes on: restore_resume */
    } else {
        cadre_error_set(&error, status, "%s", text);
    }
    if (status == CADRE_OK && !restore->has_manifest) {
        status = take_manifest(restore, &error);
    } else if (status == CADRE_OK) {
        restore->next++;
    }
    if (status != CADRE_OK) {
        give_up(restore, &error);
    } else {
        go_on(restore);
    }
}

static const struct rpc_client_ops restore_ops = {.on_message = on_message, .on_status = on_status};

static cadre_status ask(struct restore *restore, struct cadre_error *error)
{
    struct daemon *daemon = restore->task->daemon;
    struct get_blob_request request;
    memcpy(request.sha256, wanted_hash(restore), sizeof request.sha256);
    sha256_close(restore->hash);
    restore->hash = NULL;
    restore->got_bytes = 0;
    if (!restore->has_manifest) {
        wire_buffer_clear(&restore->manifest);
    }
    CADRE_TRY(sha256_open(&restore->hash, error));
    wire_buffer_clear(&daemon->packed);
    CADRE_TRY(wire_pack_get_blob_request(&request, &daemon->packed, error));
    struct rpc_call_options options = {.path = METHOD_AGENTS_GET_BLOB,
        .server_streams = true,
        .ops = &restore_ops,
        .user = restore};
    CADRE_TRY(rpc_channel_call(daemon->channel, &options, &restore->call, error));
    if (rpc_call_send(restore->call, daemon->packed.bytes, daemon->packed.size, error) !=
        CADRE_OK) {
        rpc_call_cancel(restore->call); /* its end tells */
    }
    return CADRE_OK;
}

static void go_on(struct restore *restore)
{
    struct cadre_error error = {0};
    bool all_there = restore->has_manifest && restore->next == restore->content.block_count;
    if (!restore->leads && take_from_other(restore, &all_there) && !all_there) {
        return; /* wake_others */
    }
    cadre_status status = CADRE_OK;
    if (!all_there) {
        restore->leads = true;
        status = ask(restore, &error);
    } else if (restore->leads) {
        status = write_manifest(restore, &error);
    }
    if (status == CADRE_OK && all_there) {
        status = complete(restore, &error);
    }
    if (status != CADRE_OK) {
        give_up(restore, &error);
    }
}

/* ---- what tasks.c and fetch.c call ---- */

static cadre_status open_restore(struct task_files *task, struct cadre_error *error)
{
    struct restore *restore = calloc(1, sizeof *restore);
    if (restore == NULL || asprintf(&restore->folder, "%s/restore", task->folder) < 0) {
        free(restore);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to fetch a checkpoint");
    }
    restore->task = task;
    restore->fd = -1;
    task->restore = restore;
    if (checkpoint_of(restore)->manifest_bytes > LIMIT_MANIFEST_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a manifest of %" PRIu64 " bytes is over the limit of %d",
            checkpoint_of(restore)->manifest_bytes, LIMIT_MANIFEST_BYTES);
    }
    return folder_make(restore->folder, 0700, error);
}

static cadre_status find_shared(struct task_files *task, struct cadre_error *error)
{
    const char *path = task->start->checkpoint.path;
    const char *folder = task->start->spec.checkpoint_folder;
    int length = path[0] == '/' ? asprintf(&task->restore_path, "%s", path)
                                : asprintf(&task->restore_path, "%s/%s", folder, path);
    if (length < 0) {
        task->restore_path = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory for another task");
    }
    return CADRE_OK;
}

static void fetch_checkpoint(struct task_files *task)
{
    struct cadre_error error = {0};
    if (open_restore(task, &error) == CADRE_OK) {
        go_on(task->restore);
    } else if (task->restore != NULL) {
        give_up(task->restore, &error);
    } else {
        tasks_fail(task, error.text);
    }
}

void restore_start(struct task_files *task)
{
    const struct agent_start *start = task->start;
    struct cadre_error error = {0};
    if (start->restores && !start->checkpoint.shared) {
        fetch_checkpoint(task);
    } else if (start->restores && find_shared(task, &error) != CADRE_OK) {
        tasks_fail(task, error.text);
    } else {
        place_start(task);
    }
}

void restore_resume(struct task_files *task)
{
    if (task->restore->call == NULL) {
        go_on(task->restore);
    }
}

void restore_cancel(struct task_files *task)
{
    struct restore *restore = task->restore;
    if (restore == NULL) {
        return;
    }
    task->restore = NULL;
    restore->task = NULL;
    if (restore->call != NULL) {
        rpc_call_cancel(restore->call);
    } else {
        restore_free(restore);
    }
    wake_others(task->daemon);
}
