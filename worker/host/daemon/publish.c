/* SPDX-License-Identifier: Apache-2.0
 * Publishes a checkpoint: sends its contents to the coordinator, so that it can be read without
 * this host. Agents.MissingBlobs returns which ones it lacks, those are sent (publish_send.c),
 * the manifest last. Files are read in threads of the pool. After a broken link it starts with
 * MissingBlobs again: what arrived is not sent twice. */
#include "worker/host/daemon/publish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/methods.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/publish_state.h"
#include "worker/host/daemon/task_files.h"

/* hashes in one request */
#define QUERY_HASHES_MAX 1024

static void publish_free(struct publish *publish)
{
    for (size_t i = 0; i < PUBLISH_LANES; i++) {
        free(publish->lanes[i].block);
    }
    publish_source_free(&publish->source);
    free(publish->states);
    free(publish);
}

/* Detaches the publishing from its task: calls and threads under way end by themselves, and the
 * last of them frees it. */
static void daemon_publish_evict(struct publish *publish)
{
    publish->task->publish = NULL;
    publish->task = NULL;
    if (publish->call != NULL) {
        rpc_call_cancel(publish->call);
    }
    for (size_t i = 0; i < PUBLISH_LANES; i++) {
        if (publish->lanes[i].call != NULL) {
            rpc_call_cancel(publish->lanes[i].call);
        }
    }
    if (publish->in_flight == 0) {
        publish_free(publish);
    }
}

/* One call or thread has ended. False: the publishing was cancelled, and its memory may be
 * freed. */
static bool task_done_in_flight(struct publish *publish)
{
    publish->in_flight--;
    bool wanted = publish->task != NULL;
    if (!wanted && publish->in_flight == 0) {
        publish_free(publish);
    }
    return wanted;
}

static void daemon_publish_end(struct publish *publish, cadre_status status, const char *text)
{
    struct task_files *task = publish->task;
    struct daemon *daemon = publish->daemon;
    if (status == CADRE_OK) {
        log_event(LOG_LEVEL_INFO, "tasks", "a checkpoint is at the coordinator",
            LOG_U64("job", task->ref.job.n), LOG_U64("step", publish->position),
            LOG_U64("bytes", publish->source.content.file_bytes),
            LOG_U64("bytes_sent", publish->sent_bytes));
        task->publish_tries = 0;
        published_add(&task->published, publish->source.manifest_sha256, publish->source.files);
    } else {
        log_event(LOG_LEVEL_WARNING, "tasks",
            "a checkpoint is not published, which is tried again as long as its task runs",
            LOG_U64("job", task->ref.job.n), LOG_U64("step", publish->position),
            LOG_STR("reason", text));
    }
    char kept[LIMIT_TEXT_BYTES];
    snprintf(kept, sizeof kept, "%s", text);
    daemon_publish_evict(publish);
    agent_task_published(daemon->agent, task->ref, status, kept);
    if (task->collecting) {
        outputs_resume(task);
    }
}

/* ---- reading the manifest ---- */

static void publish_next(struct publish *publish);

static void load_in_thread(void *user)
{
    struct publish *publish = user;
    (void)publish_load(&publish->source, &publish->error);
}

static void after_load(void *user)
{
    struct publish *publish = user;
    if (!task_done_in_flight(publish)) {
        return;
    }
    publish->content_count = publish->source.content.block_count + 1;
    publish->states = calloc(publish->content_count, sizeof *publish->states);
    if (publish->error.code == CADRE_OK && publish->states == NULL) {
        cadre_error_set(&publish->error, CADRE_RESOURCE_EXHAUSTED,
            "the worker has no memory to send a checkpoint");
    }
    if (publish->error.code != CADRE_OK) {
        daemon_publish_end(publish, publish->error.code, publish->error.text);
        return;
    }
    publish->loaded = true;
    publish_next(publish);
}

static void daemon_publish_load(struct publish *publish)
{
    publish->in_flight++;
    file_work_start(
        &publish->work, &publish->daemon->file_pool, load_in_thread, after_load, publish);
}

/* ---- calls ---- */

/* A call is over: true when it went well. Else `publish` may not be touched any more. */
static bool call_over(struct publish *publish, cadre_status status, const char *text)
{
    if (!task_done_in_flight(publish)) {
        return false;
    }
    if (publish->error.code != CADRE_OK) {
        daemon_publish_end(publish, publish->error.code, publish->error.text);
        return false;
    }
    if (status == CADRE_UNAVAILABLE ||
        (status == CADRE_RESOURCE_EXHAUSTED && retry_publish(publish->task, text))) {
        if (status == CADRE_UNAVAILABLE) {
            retry_when_linked(publish->daemon);
        }
        publish->waits = true;
        publish_next(publish);
    } else if (status != CADRE_OK) {
        daemon_publish_end(publish, status, text);
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
        return; /* the call's end continues */
    }
    for (size_t i = publish->queried; i < publish->queried + publish->querying; i++) {
        bool missing = false;
        for (size_t j = 0; j < list.count && !missing; j++) {
            missing =
                memcmp(publish_hash(&publish->source, i), list.sha256[j], LIMIT_SHA256_BYTES) == 0;
        }
        publish->states[i] = missing ? CONTENT_MISSING : CONTENT_STORED;
    }
}

static void on_missing_answer(
    struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct publish *publish = user;
    publish->call = NULL;
    if (call_over(publish, status, text)) {
        publish->queried += publish->querying;
        publish_next(publish);
    }
}

static const struct rpc_client_ops ask_ops = {
    .on_message = on_answer, .on_status = on_missing_answer};

static cadre_status daemon_publish_ask(struct publish *publish, struct cadre_error *error)
{
    struct daemon *daemon = publish->daemon;
    uint8_t hashes[QUERY_HASHES_MAX][LIMIT_SHA256_BYTES];
    size_t left = publish->content_count - publish->queried;
    publish->querying = left < QUERY_HASHES_MAX ? left : QUERY_HASHES_MAX;
    for (size_t i = 0; i < publish->querying; i++) {
        memcpy(hashes[i], publish_hash(&publish->source, publish->queried + i), LIMIT_SHA256_BYTES);
    }
    struct blob_list list = {
        .sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])hashes, .count = publish->querying};
    wire_buffer_clear(&daemon->packed);
    CADRE_TRY(wire_pack_blob_list(&list, &daemon->packed, error));
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_MISSING_BLOBS, .ops = &ask_ops, .user = publish};
    CADRE_TRY(rpc_channel_call(daemon->channel, &options, &publish->call, error));
    publish->in_flight++;
    (void)publish_send_packed(publish, publish->call);
    return CADRE_OK;
}

/* After a broken link nothing is begun before all that was under way has ended and the next link
 * is there. */
static bool may_continue(struct publish *publish)
{
    publish->waits = publish->waits || !publish->daemon->linked;
    if (!publish->waits) {
        return true;
    }
    if (publish->in_flight > 0 || !publish->relinked || !publish->daemon->linked) {
        return false;
    }
    publish->waits = false;
    publish->relinked = false;
    publish->queried = 0;
    return true;
}

/* A content was sent, or not. */
static void after_send(struct publish *publish, cadre_status status, const char *text)
{
    if (call_over(publish, status, text)) {
        publish_next(publish);
    }
}

/* Starts the next step: load, query, send, or the end. */
static void publish_next(struct publish *publish)
{
    struct cadre_error error = {0};
    if (!may_continue(publish)) {
        return;
    }
    if (publish->queried < publish->content_count) {
        if (daemon_publish_ask(publish, &error) != CADRE_OK) {
            daemon_publish_end(publish, error.code, error.text);
        }
    } else if (!publish_send_some(publish, after_send)) {
        daemon_publish_end(publish, CADRE_OK, "");
    }
}

/* ---- for tasks.c ---- */

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
    daemon_publish_load(publish);
}

void publish_resume(struct task_files *task)
{
    struct publish *publish = task->publish;
    publish->relinked = true;
    if (publish->loaded && publish->waits) {
        publish_next(publish);
    }
}

void publish_cancel(struct task_files *task)
{
    if (task->publish != NULL) {
        daemon_publish_evict(task->publish);
    }
}
