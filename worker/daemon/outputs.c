/* SPDX-License-Identifier: Apache-2.0
 * What a task left in its output folder goes to the coordinator, file by file, by Agents.PutOutput;
 * then, when its log and its newest checkpoint are there too, the task is collected. Only regular
 * files travel; a symbolic link is never followed. Files of a published checkpoint are only
 * referred to, unless the coordinator does not keep it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/wire/methods.h"
#include "worker/daemon/below.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/published.h"

#define CHUNK_BYTES ((size_t)512 * 1024)

struct output_list {
    char **names; /* below the output folder */
    size_t count;
    size_t capacity;
    size_t next;  /* to be sent */
    bool refused; /* the coordinator wants the bytes of the next one */
    uint64_t sent_bytes;
    cadre_status code; /* the first failure */
    char text[LIMIT_TEXT_BYTES];
};

struct upload {
    struct task_files *task; /* NULL: cancelled, the call's end frees this */
    struct rpc_call *call;
    int fd;
    uint64_t left_bytes;
    const uint8_t *checkpoint; /* it is referred to: its manifest's hash, the task's */
    uint8_t chunk[CHUNK_BYTES];
};

static void note_failure(struct output_list *list, cadre_status code, const char *text)
{
    if (list->code == CADRE_OK) {
        list->code = code;
        snprintf(list->text, sizeof list->text, "%s", text);
    }
}

/* ---- which files ---- */

static bool add(struct output_list *list, const char *name)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : 32;
        char **grown = realloc(list->names, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        list->names = grown;
        list->capacity = capacity;
    }
    list->names[list->count] = strdup(name);
    return list->names[list->count] != NULL && ++list->count > 0;
}

static void walk(struct output_list *list, int folder_fd, const char *below)
{
    DIR *folder = folder_fd >= 0 ? fdopendir(folder_fd) : NULL;
    if (folder == NULL) {
        if (folder_fd >= 0) {
            close(folder_fd);
        }
        note_failure(list, CADRE_PERMISSION_DENIED, "a folder that the task left cannot be read");
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[LIMIT_FILE_NAME_BYTES];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int length = snprintf(
            name, sizeof name, "%s%s%s", below, below[0] != '\0' ? "/" : "", entry->d_name);
        if (length < 0 || (size_t)length >= sizeof name ||
            file_name_check(name, NULL) != CADRE_OK) {
            note_failure(list, CADRE_INVALID_ARGUMENT,
                "a file that the task left has a name that cannot travel (too long or not plain "
                "text): it is dropped");
            continue;
        }
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            walk(list,
                openat(
                    dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                name);
        } else if (S_ISREG(status.st_mode) && !add(list, name)) {
            note_failure(list, CADRE_RESOURCE_EXHAUSTED,
                "the worker has no memory to list what the task left");
        }
    }
    closedir(folder);
}

/* ---- one file after the other ---- */

static void send_chunk(struct upload *upload, bool header, const char *name)
{
    struct task_files *task = upload->task;
    struct daemon *daemon = task->daemon;
    struct cadre_error error = {0};
    size_t want = upload->left_bytes < CHUNK_BYTES ? (size_t)upload->left_bytes : CHUNK_BYTES;
    bool refers = upload->checkpoint != NULL;
    want = refers ? 0 : want;
    ssize_t got = want > 0 ? read(upload->fd, upload->chunk, want) : 0;
    if (got < 0 || (got == 0 && want > 0)) {
        rpc_call_abort(upload->call, CADRE_DATA_LOSS, "the file changed while it was sent");
        return;
    }
    struct output_chunk chunk = {.has_header = header,
        .task = task->ref,
        .path = name,
        .size_bytes = upload->left_bytes,
        .refers = refers,
        .bytes = upload->chunk,
        .byte_count = (size_t)got};
    if (refers) {
        memcpy(chunk.checkpoint, upload->checkpoint, sizeof chunk.checkpoint);
    }
    upload->left_bytes -= refers ? upload->left_bytes : (uint64_t)got;
    task->outputs->sent_bytes += (uint64_t)got;
    wire_buffer_clear(&daemon->packed);
    cadre_status status = wire_pack_output_chunk(&chunk, &daemon->packed, &error);
    if (status == CADRE_OK) {
        status = rpc_call_send(upload->call, daemon->packed.bytes, daemon->packed.size, &error);
    }
    if (status != CADRE_OK) {
        rpc_call_abort(upload->call, status, error.text);
    } else if (upload->left_bytes == 0) {
        rpc_call_half_close(upload->call);
    }
}

static void on_drained(struct rpc_call *call, void *user)
{
    (void)call;
    struct upload *upload = user;
    if (upload->task != NULL && upload->left_bytes > 0) {
        send_chunk(upload, false, "");
    }
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct upload *upload = user;
    struct task_files *task = upload->task;
    bool refused = upload->checkpoint != NULL && status != CADRE_OK;
    close(upload->fd);
    free(upload);
    if (task == NULL) {
        return;
    }
    task->upload = NULL;
    if (status == CADRE_UNAVAILABLE) {
        later_arm(task->daemon); /* sent again when there is room, or by the next link */
        return;
    }
    task->outputs->refused = refused;
    if (!refused) {
        if (status != CADRE_OK) {
            note_failure(task->outputs, status, text);
        }
        task->outputs->next++;
    }
    outputs_resume(task);
}

static const struct rpc_client_ops upload_ops = {.on_drained = on_drained, .on_status = on_status};

static cadre_status open_upload(
    struct task_files *task, const char *name, struct cadre_error *error)
{
    struct upload *upload = malloc(sizeof *upload);
    if (upload == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to send %s", name);
    }
    upload->task = task;
    char folder[4096];
    struct stat file;
    snprintf(folder, sizeof folder, "%s/out", task->folder);
    cadre_status status = below_open(folder, name, &upload->fd, &file, error);
    if (status != CADRE_OK) {
        free(upload);
        return status;
    }
    upload->left_bytes = (uint64_t)file.st_size;
    upload->checkpoint = task->outputs->refused ? NULL : published_find(task->published, &file);
    struct rpc_call_options options = {.path = METHOD_AGENTS_PUT_OUTPUT,
        .client_streams = true,
        .ops = &upload_ops,
        .user = upload};
    status = rpc_channel_call(task->daemon->channel, &options, &upload->call, error);
    if (status != CADRE_OK) {
        close(upload->fd);
        free(upload);
        return status;
    }
    task->upload = upload;
    send_chunk(upload, true, name);
    return CADRE_OK;
}

static void list_free(struct output_list *list)
{
    if (list == NULL) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
    }
    free(list->names);
    free(list);
}

static void finish(struct task_files *task)
{
    struct output_list *list = task->outputs;
    task->outputs = NULL;
    task->collecting = false;
    if (list->code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "tasks", "not all that a task left was collected",
            LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
            LOG_STR("reason", list->text));
    }
    log_event(LOG_LEVEL_DEBUG, "tasks", "what a task left is at the coordinator",
        LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
        LOG_U64("files", list->count), LOG_U64("bytes_sent", list->sent_bytes));
    agent_task_collected(task->daemon->agent, task->ref, list->code, list->text);
    list_free(list);
}

void outputs_resume(struct task_files *task)
{
    struct output_list *list = task->outputs;
    while (
        list != NULL && task->upload == NULL && list->next < list->count && task->daemon->linked) {
        struct cadre_error error = {0};
        if (open_upload(task, list->names[list->next], &error) != CADRE_OK) {
            note_failure(list, error.code, error.text);
            list->refused = false;
            list->next++;
        }
    }
    bool rest_there = task->log_acked >= task->log_bytes && task->publish == NULL;
    if (list != NULL && task->upload == NULL && list->next == list->count && rest_there) {
        finish(task);
    }
}

void outputs_start(struct task_files *task)
{
    task->outputs = calloc(1, sizeof *task->outputs);
    if (task->outputs == NULL) {
        task->collecting = false;
        agent_task_collected(task->daemon->agent, task->ref, CADRE_RESOURCE_EXHAUSTED,
            "the worker has no memory to collect what the task left");
        return;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/out", task->folder);
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        walk(task->outputs, folder, "");
    }
    outputs_resume(task);
}

void outputs_cancel(struct task_files *task)
{
    if (task->upload != NULL) {
        task->upload->task = NULL;
        rpc_call_cancel(task->upload->call);
        task->upload = NULL;
    }
    list_free(task->outputs);
    task->outputs = NULL;
}
