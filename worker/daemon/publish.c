/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint can be read without this host once its contents are at the coordinator: it is asked
 * which of them it lacks (Agents.MissingBlobs), those are sent (Agents.PutBlob), the manifest last.
 * Files are read in threads of the pool. When the link breaks, the next one begins by asking again:
 * what arrived is not sent twice. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/methods.h"
#include "worker/daemon/daemon.h"
#include "worker/daemon/publish.h"

/* Hashes in one question. */
#define ASKED_MAX 1024

struct publish {
    struct task_files *task; /* NULL: cancelled; the end of what is in hand frees this */
    struct daemon *daemon;
    uint64_t position;
    struct publish_source source;
    bool loaded;
    size_t content_count; /* the blocks, then the manifest */
    size_t asked;         /* contents of which it is known whether they are missing */
    size_t asking;        /* in the question in hand */
    bool *missing;        /* of each */
    size_t sending;       /* the content in hand */
    const uint8_t *bytes; /* of it: the manifest's, or in `block` */
    size_t size;
    size_t sent;
    uint8_t *block;
    uint64_t sent_bytes; /* of all contents, for the log */
    struct cadre_error error;
    /* in hand; at most one of them: */
    struct rpc_call *call;
    bool in_thread;
    uv_work_t work;
    uv_fs_t read;
};

static const uint8_t *hash_of(const struct publish *publish, size_t i)
{
    return i < publish->source.content.block_count ? publish->source.content.blocks[i].sha256
                                                   : publish->source.manifest_sha256;
}

static void publish_free(struct publish *publish)
{
    publish_source_free(&publish->source);
    free(publish->missing);
    free(publish->block);
    free(publish);
}

/* Whether somebody still wants what has just ended; else its memory goes. */
static bool is_wanted(struct publish *publish)
{
    if (publish->task == NULL) {
        publish_free(publish);
        return false;
    }
    return true;
}

static void end(struct publish *publish, cadre_status status, const char *text)
{
    struct task_files *task = publish->task;
    struct daemon *daemon = publish->daemon;
    if (status == CADRE_OK) {
        log_event(LOG_LEVEL_INFO, "tasks", "a checkpoint is at the coordinator",
            LOG_U64("job", task->ref.job.n), LOG_U64("step", publish->position),
            LOG_U64("bytes", publish->source.content.file_bytes),
            LOG_U64("bytes_sent", publish->sent_bytes));
    } else {
        log_event(LOG_LEVEL_WARNING, "tasks", "a checkpoint is not published",
            LOG_U64("job", task->ref.job.n), LOG_U64("step", publish->position),
            LOG_STR("reason", text));
    }
    char kept[LIMIT_TEXT_BYTES];
    snprintf(kept, sizeof kept, "%s", text);
    task->publish = NULL;
    publish_free(publish);
    agent_task_published(daemon->agent, task->ref, status, kept);
    if (task->collecting) {
        outputs_resume(task);
    }
}

static void go_on(struct publish *publish);

/* ---- reading the manifest ---- */

static void load_in_thread(uv_work_t *work)
{
    struct publish *publish = work->data;
    (void)publish_load(&publish->source, &publish->error);
}

static void after_load(uv_work_t *work, int status)
{
    (void)status;
    struct publish *publish = work->data;
    publish->daemon->works--;
    publish->in_thread = false;
    if (!is_wanted(publish)) {
        return;
    }
    publish->content_count = publish->source.content.block_count + 1;
    publish->missing = calloc(publish->content_count, sizeof *publish->missing);
    publish->block = malloc(LIMIT_CHECKPOINT_BLOCK_BYTES);
    if (publish->error.code == CADRE_OK && (publish->missing == NULL || publish->block == NULL)) {
        cadre_error_set(&publish->error, CADRE_RESOURCE_EXHAUSTED,
            "the worker has no memory to send a checkpoint");
    }
    if (publish->error.code != CADRE_OK) {
        end(publish, publish->error.code, publish->error.text);
        return;
    }
    publish->loaded = true;
    go_on(publish);
}

static void load(struct publish *publish)
{
    publish->in_thread = true;
    publish->work.data = publish;
    publish->daemon->works++;
    uv_queue_work(rpc_loop_uv(publish->daemon->loop), &publish->work, load_in_thread, after_load);
}

/* ---- calls ---- */

/* The call in hand is over. UNAVAILABLE waits for the next link, which asks anew. */
static bool call_went_well(struct publish *publish, cadre_status status, const char *text)
{
    publish->call = NULL;
    if (!is_wanted(publish)) {
        return false;
    }
    if (publish->error.code != CADRE_OK) {
        end(publish, publish->error.code, publish->error.text);
        return false;
    }
    if (status == CADRE_UNAVAILABLE) {
        publish->asked = 0;
    } else if (status != CADRE_OK) {
        end(publish, status, text);
    }
    return status == CADRE_OK;
}

/* What lies in daemon->packed goes into the call in hand. False: its end tells why not. */
static bool send_packed(struct publish *publish)
{
    struct daemon *daemon = publish->daemon;
    struct cadre_error error = {0};
    cadre_status status =
        rpc_call_send(publish->call, daemon->packed.bytes, daemon->packed.size, &error);
    if (status != CADRE_OK) {
        rpc_call_abort(publish->call, status, error.text);
    }
    return status == CADRE_OK;
}

static void on_answer(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)call;
    struct publish *publish = user;
    struct blob_list list;
    if (publish->task == NULL) {
        return;
    }
    wire_arena_reset(publish->daemon->arena);
    if (wire_unpack_blob_list(data, length, publish->daemon->arena, &list, &publish->error) !=
        CADRE_OK) {
        return; /* the call's end tells */
    }
    for (size_t i = publish->asked; i < publish->asked + publish->asking; i++) {
        publish->missing[i] = false;
        for (size_t j = 0; j < list.count && !publish->missing[i]; j++) {
            publish->missing[i] =
                memcmp(hash_of(publish, i), list.sha256[j], LIMIT_SHA256_BYTES) == 0;
        }
    }
}

static void on_asked(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct publish *publish = user;
    if (call_went_well(publish, status, text)) {
        publish->asked += publish->asking;
        go_on(publish);
    }
}

static const struct rpc_client_ops ask_ops = {.on_message = on_answer, .on_status = on_asked};

static cadre_status ask(struct publish *publish, struct cadre_error *error)
{
    struct daemon *daemon = publish->daemon;
    uint8_t hashes[ASKED_MAX][LIMIT_SHA256_BYTES];
    size_t left = publish->content_count - publish->asked;
    publish->asking = left < ASKED_MAX ? left : ASKED_MAX;
    for (size_t i = 0; i < publish->asking; i++) {
        memcpy(hashes[i], hash_of(publish, publish->asked + i), LIMIT_SHA256_BYTES);
    }
    struct blob_list list = {
        .sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])hashes, .count = publish->asking};
    wire_buffer_clear(&daemon->packed);
    CADRE_TRY(wire_pack_blob_list(&list, &daemon->packed, error));
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_MISSING_BLOBS, .ops = &ask_ops, .user = publish};
    CADRE_TRY(rpc_channel_call(daemon->channel, &options, &publish->call, error));
    (void)send_packed(publish);
    return CADRE_OK;
}

/* ---- one content ---- */

static void send_chunk(struct publish *publish)
{
    struct daemon *daemon = publish->daemon;
    size_t left = publish->size - publish->sent;
    struct blob_chunk chunk = {.has_header = publish->sent == 0,
        .size_bytes = publish->size,
        .bytes = publish->bytes + publish->sent,
        .byte_count = left < LIMIT_BLOB_CHUNK_BYTES ? left : LIMIT_BLOB_CHUNK_BYTES};
    memcpy(chunk.sha256, hash_of(publish, publish->sending), sizeof chunk.sha256);
    wire_buffer_clear(&daemon->packed);
    if (wire_pack_blob_chunk(&chunk, &daemon->packed, &publish->error) != CADRE_OK) {
        rpc_call_cancel(publish->call);
        return;
    }
    publish->sent += chunk.byte_count;
    if (send_packed(publish) && publish->sent == publish->size) {
        rpc_call_half_close(publish->call);
    }
}

static void on_drained(struct rpc_call *call, void *user)
{
    (void)call;
    struct publish *publish = user;
    if (publish->task != NULL && publish->sent < publish->size) {
        send_chunk(publish);
    }
}

static void on_put(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct publish *publish = user;
    if (!call_went_well(publish, status, text)) {
        return;
    }
    publish->sent_bytes += publish->size;
    const uint8_t *hash = hash_of(publish, publish->sending);
    for (size_t i = 0; i < publish->content_count; i++) { /* equal blocks are one content */
        publish->missing[i] =
            publish->missing[i] && memcmp(hash_of(publish, i), hash, LIMIT_SHA256_BYTES) != 0;
    }
    go_on(publish);
}

static const struct rpc_client_ops put_ops = {.on_drained = on_drained, .on_status = on_put};

static void put(struct publish *publish, const uint8_t *bytes, size_t size)
{
    struct cadre_error error = {0};
    publish->bytes = bytes;
    publish->size = size;
    publish->sent = 0;
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_PUT_BLOB, .client_streams = true, .ops = &put_ops, .user = publish};
    if (rpc_channel_call(publish->daemon->channel, &options, &publish->call, &error) != CADRE_OK) {
        publish->call = NULL;
        end(publish, error.code, error.text);
        return;
    }
    send_chunk(publish);
}

static void after_read(uv_fs_t *request)
{
    struct publish *publish = request->data;
    ssize_t got = request->result;
    uv_fs_req_cleanup(request);
    publish->daemon->works--;
    publish->in_thread = false;
    if (!is_wanted(publish)) {
        return;
    }
    uint64_t wanted = publish->source.content.blocks[publish->sending].bytes;
    if (got < 0 || (uint64_t)got != wanted) {
        end(publish, CADRE_DATA_LOSS, "the checkpoint's file became shorter while it was read");
    } else if (publish->daemon->linked) {
        put(publish, publish->block, (size_t)got);
    } else {
        publish->asked = 0;
    }
}

static void send_next(struct publish *publish)
{
    const struct checkpoint_content *content = &publish->source.content;
    if (publish->sending == content->block_count) {
        put(publish, (const uint8_t *)publish->source.manifest,
            (size_t)publish->source.manifest_bytes);
        return;
    }
    const struct checkpoint_block *block = &content->blocks[publish->sending];
    uv_buf_t buffer = uv_buf_init((char *)publish->block, (unsigned)block->bytes);
    publish->read.data = publish;
    publish->in_thread = true;
    publish->daemon->works++;
    uv_fs_read(rpc_loop_uv(publish->daemon->loop), &publish->read, publish->source.fd, &buffer, 1,
        (int64_t)block->offset, after_read);
}

/* Nothing is in hand: what comes next? */
static void go_on(struct publish *publish)
{
    struct cadre_error error = {0};
    if (!publish->daemon->linked) {
        publish->asked = 0;
        return;
    }
    if (publish->asked < publish->content_count) {
        if (ask(publish, &error) != CADRE_OK) {
            end(publish, error.code, error.text);
        }
        return;
    }
    publish->sending = 0;
    while (publish->sending < publish->content_count && !publish->missing[publish->sending]) {
        publish->sending++;
    }
    if (publish->sending < publish->content_count) {
        send_next(publish);
    } else {
        end(publish, CADRE_OK, "");
    }
}

/* ---- what tasks.c calls ---- */

void publish_start(struct task_files *task, const struct task_part *part)
{
    publish_cancel(task); /* the newest one counts */
    struct publish *publish = calloc(1, sizeof *publish);
    if (publish != NULL) {
        *publish = (struct publish){.task = task,
            .daemon = task->daemon,
            .position = part->position,
            .source = {.path = strdup(part->path), .manifest_bytes = part->size_bytes, .fd = -1}};
        memcpy(publish->source.manifest_sha256, part->sha256, LIMIT_SHA256_BYTES);
        if (asprintf(&publish->source.folder, "%s/out", task->folder) < 0) {
            publish->source.folder = NULL;
        }
    }
    if (publish == NULL || publish->source.path == NULL || publish->source.folder == NULL) {
        if (publish != NULL) {
            publish_free(publish);
        }
        agent_task_published(task->daemon->agent, task->ref, CADRE_RESOURCE_EXHAUSTED,
            "the worker has no memory to send a checkpoint");
        return;
    }
    task->publish = publish;
    load(publish);
}

void publish_resume(struct task_files *task)
{
    struct publish *publish = task->publish;
    if (publish->loaded && publish->call == NULL && !publish->in_thread) {
        publish->asked = 0;
        go_on(publish);
    }
}

void publish_cancel(struct task_files *task)
{
    struct publish *publish = task->publish;
    if (publish == NULL) {
        return;
    }
    task->publish = NULL;
    publish->task = NULL;
    if (publish->call != NULL) {
        rpc_call_cancel(publish->call);
    } else if (!publish->in_thread) {
        publish_free(publish);
    }
}
