/* SPDX-License-Identifier: Apache-2.0
 * Sends the files in a task's output folder to the coordinator, one by one, by Agents.PutOutput;
 * then, when its log and its newest checkpoint were sent too, the task is collected. Only
 * regular files are sent; a symbolic link is never followed. Files of a published checkpoint are
 * only referred to, unless the coordinator does not keep it. Those of a job with an outputs_folder
 * are written there instead (object_put.c); what cannot be is sent to the coordinator after all. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/wire/methods.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/task_files.h"

#define CHUNK_BYTES ((size_t)512 * 1024)

/* Each try lasts a minute when the store does not answer: for a day what a task left stays here.
 * Its job ends meanwhile (--collect-timeout of the coordinator). */
#define STORE_TRIES_MAX 1440

struct upload {
    struct task_files *task; /* NULL: cancelled, the end of the work or of the call frees this */
    struct rpc_call *call;   /* NULL: not begun, or ended */
    struct file_work work;   /* opens the file, reads the next chunk */
    char *folder;
    char *name;
    int fd;
    struct stat file;
    uint64_t left_bytes;
    ssize_t got; /* of the chunk; -1: it could not be read */
    struct cadre_error error;
    bool begun;
    bool ended; /* while a thread was at work, with: */
    cadre_status end_status;
    char end_text[LIMIT_TEXT_BYTES];
    const uint8_t *checkpoint; /* the file is of this checkpoint: its manifest's hash, the task's
                                * memory */
    uint8_t chunk[CHUNK_BYTES];
};

static void upload_free(struct upload *upload)
{
    if (upload->fd >= 0) {
        close(upload->fd);
    }
    free(upload->folder);
    free(upload->name);
    free(upload);
}

/* ---- in a thread ---- */

static void read_chunk(void *user)
{
    struct upload *upload = user;
    if (!upload->begun) {
        if (open_beneath(upload->folder, upload->name, &upload->fd, &upload->file,
                &upload->error) != CADRE_OK) {
            return;
        }
        upload->left_bytes = (uint64_t)upload->file.st_size;
    }
    size_t want = upload->left_bytes < CHUNK_BYTES ? (size_t)upload->left_bytes : CHUNK_BYTES;
    upload->got = want > 0 ? read(upload->fd, upload->chunk, want) : 0;
    if (upload->got == 0 && want > 0) {
        upload->got = -1;
    }
}

/* ---- one file after the other ---- */

static void send_chunk(struct upload *upload, bool header)
{
    struct task_files *task = upload->task;
    struct daemon *daemon = task->daemon;
    struct cadre_error error = {0};
    bool refers = upload->checkpoint != NULL;
    if (upload->got < 0 && !refers) {
        rpc_call_abort(upload->call, CADRE_DATA_LOSS, "the file changed while it was sent");
        return;
    }
    size_t got = refers ? 0 : (size_t)upload->got;
    struct output_chunk chunk = {.has_header = header,
        .task = task->ref,
        .path = upload->name,
        .size_bytes = upload->left_bytes,
        .refers = refers,
        .bytes = upload->chunk,
        .byte_count = got};
    if (refers) {
        memcpy(chunk.checkpoint, upload->checkpoint, sizeof chunk.checkpoint);
    }
    upload->left_bytes -= refers ? upload->left_bytes : got;
    task->outputs->sent_bytes += got;
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

static void after_read(void *user);

static void on_drained(struct rpc_call *call, void *user)
{
    (void)call;
    struct upload *upload = user;
    if (upload->task != NULL && upload->left_bytes > 0 && !upload->work.running) {
        file_work_start(
            &upload->work, &upload->task->daemon->file_pool, read_chunk, after_read, upload);
    }
}

static void end_upload(struct upload *upload, cadre_status status, const char *text)
{
    struct task_files *task = upload->task;
    bool refused = upload->checkpoint != NULL && status != CADRE_OK;
    if (task != NULL) {
        task->upload = NULL;
    }
    if (task != NULL && status == CADRE_UNAVAILABLE) {
        retry_arm(task->daemon); /* sent again when there is room, or by the next link */
    } else if (task != NULL) {
        task->outputs->refused = refused;
        if (!refused) {
            if (status != CADRE_OK) {
                output_list_note(task->outputs, status, text);
            }
            task->outputs->next++;
        }
    }
    upload_free(upload);
    if (task != NULL && status != CADRE_UNAVAILABLE) {
        outputs_resume(task);
    }
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct upload *upload = user;
    upload->call = NULL;
    if (upload->work.running) {
        upload->ended = true;
        upload->end_status = status;
        snprintf(upload->end_text, sizeof upload->end_text, "%s", text);
    } else {
        end_upload(upload, status, text);
    }
}

static const struct rpc_client_ops upload_ops = {.on_drained = on_drained, .on_status = on_status};

static cadre_status begin_call(struct upload *upload, struct cadre_error *error)
{
    struct task_files *task = upload->task;
    upload->begun = true;
    upload->checkpoint =
        task->outputs->refused ? NULL : published_find(task->published, &upload->file);
    struct rpc_call_options options = {.path = METHOD_AGENTS_PUT_OUTPUT,
        .client_streams = true,
        .ops = &upload_ops,
        .user = upload};
    return rpc_channel_call(task->daemon->channel, &options, &upload->call, error);
}

static void after_read(void *user)
{
    struct upload *upload = user;
    bool first = !upload->begun;
    if (upload->ended) {
        end_upload(upload, upload->end_status, upload->end_text);
        return;
    }
    if (upload->task == NULL) {
        if (upload->call == NULL) {
            upload_free(upload);
        } /* else the call's end does it */
        return;
    }
    if (upload->error.code != CADRE_OK ||
        (first && begin_call(upload, &upload->error) != CADRE_OK)) {
        upload->checkpoint = NULL;
        end_upload(upload, upload->error.code, upload->error.text);
        return;
    }
    send_chunk(upload, first);
}

static void open_upload(struct task_files *task)
{
    struct output_list *list = task->outputs;
    struct upload *upload = malloc(sizeof *upload);
    char *name = strdup(list->names[list->next]);
    char *folder = strdup(list->folder);
    if (upload == NULL || name == NULL || folder == NULL) {
        free(upload);
        free(name);
        free(folder);
        output_list_note(list, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to send a file");
        list->refused = false;
        list->next++;
        return;
    }
    memset(upload, 0, offsetof(struct upload, chunk));
    upload->task = task;
    upload->folder = folder;
    upload->name = name;
    upload->fd = -1;
    task->upload = upload;
    file_work_start(&upload->work, &task->daemon->file_pool, read_chunk, after_read, upload);
}

/* ---- to an object store ---- */

/* Nothing is lost: from this file on they go to the coordinator. */
static void give_up_store(struct task_files *task, const struct cadre_error *error)
{
    struct output_list *list = task->outputs;
    struct cadre_error note;
    cadre_error_set(&note, error->code,
        "from %.80s on it is at the coordinator (cadre get %" PRIu64 "), because %.300s",
        list->names[list->next], task->ref.job.n, error->text);
    log_event(LOG_LEVEL_WARNING, "tasks",
        "what a task left cannot be written to its job's object store: the coordinator gets it",
        LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
        LOG_STR("file", list->names[list->next]), LOG_STR("reason", error->text));
    output_list_note(list, error->code, note.text);
    list->to_store = false;
}

static void after_store(struct task_files *task, const struct cadre_error *error, bool is_file)
{
    struct output_list *list = task->outputs;
    list->writing = false;
    if (error->code == CADRE_UNAVAILABLE && ++list->tries < STORE_TRIES_MAX) {
        if (list->tries == 1) {
            log_event(LOG_LEVEL_WARNING, "tasks",
                "what a task left waits for an object store that does not answer",
                LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
                LOG_STR("file", list->names[list->next]), LOG_STR("reason", error->text));
        }
        retry_arm(task->daemon);
        return;
    }
    if (error->code != CADRE_OK && !is_file) {
        give_up_store(task, error);
    } else {
        if (error->code != CADRE_OK) {
            output_list_note(list, error->code, error->text);
        }
        list->tries = 0;
        list->next++;
    }
    outputs_resume(task);
}

static void open_next(struct task_files *task)
{
    struct output_list *list = task->outputs;
    if (list->to_store) {
        list->writing = true;
        object_put_start(task, list->names[list->next], after_store);
    } else {
        open_upload(task);
    }
}

static void daemon_outputs_finish(struct task_files *task)
{
    struct output_list *list = task->outputs;
    object_put_cancel(task); /* nothing is on its way; it closes the connections */
    task->outputs = NULL;
    task->collecting = false;
    if (list->code != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "tasks", "not all that a task left was collected",
            LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
            LOG_STR("reason", list->text));
    }
    log_event(LOG_LEVEL_DEBUG, "tasks", "a task's outputs are at the coordinator",
        LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
        LOG_U64("files", list->count), LOG_U64("bytes_sent", list->sent_bytes));
    agent_task_collected(task->daemon->agent, task->ref, list->code, list->text);
    output_list_free(list);
}

void outputs_resume(struct task_files *task)
{
    struct output_list *list = task->outputs;
    if (list == NULL || list->work.running || list->writing) {
        return;
    }
    while (task->upload == NULL && list->next < list->count && task->daemon->linked) {
        open_next(task);
        if (task->outputs != list || list->writing) {
            return; /* it has gone on in there, or is on its way */
        }
    }
    bool remaining_present = tasks_log_is_stored(task) && task->publish == NULL;
    if (task->upload == NULL && list->next == list->count && remaining_present) {
        daemon_outputs_finish(task);
    }
}

static void daemon_outputs_fill(void *user)
{
    output_list_fill(user);
}

static void after_fill(void *user)
{
    struct output_list *list = user;
    if (list->task == NULL) {
        output_list_free(list);
    } else {
        outputs_resume(list->task);
    }
}

void outputs_start(struct task_files *task)
{
    task->collecting = true;
    task->outputs = output_list_new(task, task->folder);
    if (task->outputs != NULL) {
        task->outputs->to_store = object_put_is_wanted(task);
    } else {
        task->collecting = false;
        agent_task_collected(task->daemon->agent, task->ref, CADRE_RESOURCE_EXHAUSTED,
            "the worker has no memory to collect what the task left");
        return;
    }
    file_work_start(&task->outputs->work, &task->daemon->file_pool, daemon_outputs_fill, after_fill,
        task->outputs);
}

void outputs_cancel(struct task_files *task)
{
    struct upload *upload = task->upload;
    struct output_list *list = task->outputs;
    task->upload = NULL;
    task->outputs = NULL;
    object_put_cancel(task);
    if (upload != NULL) {
        upload->task = NULL;
        if (upload->call != NULL) {
            rpc_call_cancel(upload->call);
        } /* else a thread is at work, and its end frees it */
    }
    if (list != NULL && list->work.running) {
        list->task = NULL;
    } else {
        output_list_free(list);
    }
}
