/* SPDX-License-Identifier: Apache-2.0
 * Fetches one content of a checkpoint after the other, by Agents.GetBlob: the manifest, then
 * each block to its offset in the file. Each is checked against its hash. */
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
#include "common/wire/methods.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/restore_state.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/task_files.h"

static const uint8_t *wanted_hash(const struct restore *restore)
{
    return restore->has_manifest ? restore->content.blocks[restore->next].sha256
                                 : restore_wanted(restore)->manifest_sha256;
}

static uint64_t wanted_bytes(const struct restore *restore)
{
    return restore->has_manifest ? restore->content.blocks[restore->next].bytes
                                 : restore_wanted(restore)->manifest_bytes;
}

/* ---- in a thread ---- */

static void write_chunk(void *user)
{
    struct restore *restore = user;
    const uint8_t *bytes = restore->chunk;
    size_t size = restore->chunk_bytes;
    uint64_t offset = restore->content.blocks[restore->next].offset;
    if (sha256_add(restore->hash, bytes, size, &restore->error) != CADRE_OK) {
        return;
    }
    while (size > 0) {
        ssize_t put = pwrite(restore->fd, bytes, size, (off_t)(offset + restore->got_bytes));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            cadre_error_errno(
                &restore->error, put < 0 ? errno : EIO, "cannot write it on this host");
            return;
        }
        bytes += put;
        size -= (size_t)put;
        restore->got_bytes += (uint64_t)put;
    }
}

static void make_file(void *user)
{
    struct restore *restore = user;
    restore->fd = open(restore->file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (restore->fd < 0 || fchmod(restore->fd, 0644) != 0) { /* whatever the umask */
        cadre_error_errno(&restore->error, errno, "cannot make %s", restore->file);
    }
}

cadre_status restore_write_manifest(const struct restore *restore, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/" RESTORE_MANIFEST, restore->folder) < 0) {
        path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for its path");
    }
    CADRE_TRY(
        file_write_atomic(path, restore->manifest.bytes, restore->manifest.size, 0644, error));
    return chmod(path, 0644) == 0 ? CADRE_OK
                                  : cadre_error_errno(error, errno, "cannot open %s to all", path);
}

/* ---- on the loop ---- */

static void end_content(struct restore *restore, cadre_status status, const char *text);

static void after_write(void *user)
{
    struct restore *restore = user;
    if (restore->ended) {
        restore->ended = false;
        end_content(restore, restore->end_status, restore->end_text);
    } else if (restore->error.code != CADRE_OK) {
        rpc_call_cancel(restore->call);
    } else {
        rpc_call_resume(restore->call);
    }
}

/* The chunk is valid only during the message, so it is copied. */
static cadre_status on_chunk(struct restore *restore, const uint8_t *bytes, size_t size)
{
    if (size > restore->chunk_capacity) {
        uint8_t *grown = realloc(restore->chunk, size);
        if (grown == NULL) {
            return cadre_error_set(
                &restore->error, CADRE_RESOURCE_EXHAUSTED, "no memory for its blocks");
        }
        restore->chunk = grown;
        restore->chunk_capacity = size;
    }
    memcpy(restore->chunk, bytes, size);
    restore->chunk_bytes = size;
    atomic_fetch_add(&restore->counts.done_bytes, size);
    rpc_call_pause(restore->call);
    file_work_start(&restore->work, &restore->daemon->file_pool, write_chunk, after_write, restore);
    return CADRE_OK;
}

static cadre_status append_manifest(struct restore *restore, const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return CADRE_OK; /* a chunk may have a header alone */
    }
    if (size > wanted_bytes(restore) - restore->got_bytes) {
        return cadre_error_set(&restore->error, CADRE_DATA_LOSS,
            "the coordinator sent more than the %" PRIu64 " bytes that a content of it has",
            wanted_bytes(restore));
    }
    if (restore->has_manifest) {
        return on_chunk(restore, bytes, size);
    }
    CADRE_TRY(sha256_add(restore->hash, bytes, size, &restore->error));
    if (!wire_buffer_reserve(&restore->manifest, size)) {
        return cadre_error_set(
            &restore->error, CADRE_RESOURCE_EXHAUSTED, "no memory for its manifest");
    }
    memcpy(restore->manifest.bytes + restore->manifest.size, bytes, size);
    restore->manifest.size += size;
    restore->got_bytes += size;
    return CADRE_OK;
}

static void on_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct restore *restore = user;
    if (restore->task == NULL || restore->error.code != CADRE_OK) {
        return;
    }
    struct daemon *daemon = restore->daemon;
    struct blob_chunk chunk;
    wire_arena_reset(daemon->arena);
    cadre_status status =
        wire_unpack_blob_chunk(data, length, daemon->arena, &chunk, &restore->error);
    if (status == CADRE_OK) {
        status = append_manifest(restore, chunk.bytes, chunk.byte_count);
    }
    if (status != CADRE_OK) {
        rpc_call_cancel(call);
    }
}

static cadre_status restore_fetch_check(struct restore *restore, struct cadre_error *error)
{
    struct sha256 made;
    CADRE_TRY(sha256_finish(restore->hash, &made, error));
    if (restore->got_bytes != wanted_bytes(restore) ||
        memcmp(made.bytes, wanted_hash(restore), sizeof made.bytes) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "a content of it came damaged from the coordinator: its bytes do not have its hash");
    }
    return CADRE_OK;
}

static void after_file(void *user)
{
    struct restore *restore = user;
    restore->has_manifest = restore->error.code == CADRE_OK;
    restore->fetched(restore);
}

static cadre_status parse_manifest(struct restore *restore, struct cadre_error *error)
{
    CADRE_TRY(checkpoint_content_read(
        (const char *)restore->manifest.bytes, restore->manifest.size, &restore->content, error));
    if (restore->content.position != restore_wanted(restore)->position) {
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "its manifest is of step %" PRIu64, restore->content.position);
    }
    if (strcmp(restore->content.file_name, RESTORE_MANIFEST) == 0 ||
        asprintf(&restore->file, "%s/%s", restore->folder, restore->content.file_name) < 0) {
        restore->file = NULL;
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "its file cannot be called %s on this host", restore->content.file_name);
    }
    file_work_start(&restore->work, &restore->daemon->file_pool, make_file, after_file, restore);
    return CADRE_OK;
}

bool restore_is_fetched(const struct restore *restore)
{
    return restore->has_manifest && restore->next == restore->content.block_count;
}

/* A thread makes the manifest's file; then after_file() is called. */
static cadre_status on_content(
    struct restore *restore, cadre_status status, const char *text, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        return cadre_error_set(error, status, "%s", text);
    }
    CADRE_TRY(restore_fetch_check(restore, error));
    if (!restore->has_manifest) {
        return parse_manifest(restore, error);
    }
    restore->next++;
    return CADRE_OK;
}

/* The blocks that are whole; one that was cut short begins again. */
static void count_blocks(struct restore *restore)
{
    uint64_t done = 0;
    for (size_t i = 0; i < restore->next; i++) {
        done += restore->content.blocks[i].bytes;
    }
    atomic_store(&restore->counts.done_bytes, done);
    atomic_store(&restore->counts.whole_bytes, restore->content.file_bytes);
}

/* The call is over, and no thread is at work. */
static void end_content(struct restore *restore, cadre_status status, const char *text)
{
    if (restore->task != NULL && restore->error.code == CADRE_OK) {
        bool block = restore->has_manifest;
        if (status == CADRE_UNAVAILABLE) {
            retry_when_linked(restore->task->daemon);
        }
        if (status == CADRE_UNAVAILABLE ||
            (on_content(restore, status, text, &restore->error) == CADRE_OK && !block)) {
            return; /* the next link goes on, or after_file */
        }
    }
    restore->fetched(restore);
}

static void on_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct restore *restore = user;
    restore->call = NULL;
    if (restore->work.running) {
        restore->ended = true;
        restore->end_status = status;
        snprintf(restore->end_text, sizeof restore->end_text, "%s", text);
    } else {
        end_content(restore, status, text);
    }
}

static const struct rpc_client_ops restore_ops = {.on_message = on_message, .on_status = on_status};

cadre_status restore_fetch(
    struct restore *restore, void (*fetched)(struct restore *restore), struct cadre_error *error)
{
    struct daemon *daemon = restore->task->daemon;
    struct get_blob_request request;
    memcpy(request.sha256, wanted_hash(restore), sizeof request.sha256);
    restore->fetched = fetched;
    sha256_close(restore->hash);
    restore->hash = NULL;
    restore->got_bytes = 0;
    if (!restore->has_manifest) {
        wire_buffer_clear(&restore->manifest);
    }
    count_blocks(restore);
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
        rpc_call_cancel(restore->call); /* the call's end continues */
    }
    return CADRE_OK;
}
