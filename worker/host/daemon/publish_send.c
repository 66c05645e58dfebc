/* SPDX-License-Identifier: Apache-2.0
 * Sends the contents that the coordinator lacks, several at once, each by a call of its own
 * (Agents.PutBlob). */
#include "worker/host/daemon/publish_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/wire/methods.h"
#include "worker/host/daemon/daemon.h"

/* Equal contents count as one: their states change together. */
static void set_state(struct publish *publish, size_t content, enum publish_content_state state)
{
    const uint8_t *hash = publish_hash(&publish->source, content);
    for (size_t i = 0; i < publish->content_count; i++) {
        if (publish->states[i] != CONTENT_STORED &&
            memcmp(publish_hash(&publish->source, i), hash, LIMIT_SHA256_BYTES) == 0) {
            publish->states[i] = (uint8_t)state;
        }
    }
}

bool publish_send_packed(struct publish *publish, struct rpc_call *call)
{
    struct daemon *daemon = publish->daemon;
    struct cadre_error error = {0};
    cadre_status status = rpc_call_send(call, daemon->packed.bytes, daemon->packed.size, &error);
    if (status != CADRE_OK) {
        rpc_call_abort(call, status, error.text);
    }
    return status == CADRE_OK;
}

static void send_chunk(struct publish_lane *lane)
{
    struct publish *publish = lane->publish;
    struct daemon *daemon = publish->daemon;
    size_t left = lane->size - lane->sent;
    struct blob_chunk chunk = {.has_header = lane->sent == 0,
        .size_bytes = lane->size,
        .bytes = lane->bytes + lane->sent,
        .byte_count = left < LIMIT_BLOB_CHUNK_BYTES ? left : LIMIT_BLOB_CHUNK_BYTES};
    memcpy(chunk.sha256, publish_hash(&publish->source, lane->content), sizeof chunk.sha256);
    wire_buffer_clear(&daemon->packed);
    if (wire_pack_blob_chunk(&chunk, &daemon->packed, &publish->error) != CADRE_OK) {
        rpc_call_cancel(lane->call);
        return;
    }
    lane->sent += chunk.byte_count;
    if (publish_send_packed(publish, lane->call) && lane->sent == lane->size) {
        rpc_call_half_close(lane->call);
    }
}

static void on_drained(struct rpc_call *call, void *user)
{
    (void)call;
    struct publish_lane *lane = user;
    if (lane->publish->task != NULL && lane->sent < lane->size) {
        send_chunk(lane);
    }
}

static void on_put(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    (void)call;
    struct publish_lane *lane = user;
    struct publish *publish = lane->publish;
    lane->call = NULL;
    lane->busy = false;
    if (status == CADRE_OK) {
        publish->sent_bytes += lane->size;
        set_state(publish, lane->content, CONTENT_STORED);
    }
    publish->sent(publish, status, text);
}

static const struct rpc_client_ops put_ops = {.on_drained = on_drained, .on_status = on_put};

/* A failure of this host: the publishing ends. */
static void publish_send_fail(struct publish *publish, cadre_status status, const char *text)
{
    cadre_error_set(&publish->error, status, "%s", text);
    publish->sent(publish, status, publish->error.text);
}

/* False: it could not begin, and the publishing has ended. */
static bool publish_send_put(struct publish_lane *lane, const uint8_t *bytes, size_t size)
{
    struct publish *publish = lane->publish;
    struct cadre_error error = {0};
    lane->bytes = bytes;
    lane->size = size;
    lane->sent = 0;
    struct rpc_call_options options = {
        .path = METHOD_AGENTS_PUT_BLOB, .client_streams = true, .ops = &put_ops, .user = lane};
    if (rpc_channel_call(publish->daemon->channel, &options, &lane->call, &error) != CADRE_OK) {
        lane->call = NULL;
        publish_send_fail(publish, error.code, error.text);
        return false;
    }
    send_chunk(lane);
    return true;
}

static void read_in_thread(void *user)
{
    struct publish_lane *lane = user;
    const struct publish_source *source = &lane->publish->source;
    const struct checkpoint_block *block = &source->content.blocks[lane->content];
    do {
        lane->got = pread(source->fd, lane->block, block->bytes, (off_t)block->offset);
    } while (lane->got < 0 && errno == EINTR);
}

static void after_read(void *user)
{
    struct publish_lane *lane = user;
    struct publish *publish = lane->publish;
    ssize_t got = lane->got;
    if (publish->task == NULL) {
        publish->sent(publish, CADRE_CANCELLED, "");
    } else if (got < 0 || (uint64_t)got != publish->source.content.blocks[lane->content].bytes) {
        publish_send_fail(
            publish, CADRE_DATA_LOSS, "the checkpoint's file became shorter while it was read");
    } else if (publish->waits || !publish->daemon->linked) {
        lane->busy = false;
        publish->sent(publish, CADRE_UNAVAILABLE, "");
    } else {
        (void)publish_send_put(lane, lane->block, (size_t)got);
    }
}

/* False as of publish_send_put(). */
static bool read_block(struct publish_lane *lane)
{
    struct publish *publish = lane->publish;
    if (lane->block == NULL) {
        lane->block = malloc(LIMIT_CHECKPOINT_BLOCK_BYTES);
    }
    if (lane->block == NULL) {
        publish_send_fail(
            publish, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory to send a checkpoint");
        return false;
    }
    file_work_start(&lane->read, &publish->daemon->file_pool, read_in_thread, after_read, lane);
    return true;
}

static struct publish_lane *free_lane(struct publish *publish)
{
    for (size_t i = 0; i < PUBLISH_LANES; i++) {
        if (!publish->lanes[i].busy) {
            return &publish->lanes[i];
        }
    }
    return NULL;
}

/* The next content that may be sent; `content_count`: none now. */
static size_t next_missing(const struct publish *publish)
{
    size_t blocks = publish->source.content.block_count;
    size_t at = 0;
    while (at < blocks && publish->states[at] != CONTENT_MISSING) {
        at++;
    }
    bool manifest_may = publish->in_flight == 0 && publish->states[blocks] == CONTENT_MISSING;
    return at < blocks || manifest_may ? at : publish->content_count;
}

bool publish_send_some(struct publish *publish,
    void (*sent)(struct publish *publish, cadre_status status, const char *text))
{
    publish->sent = sent;
    struct publish_lane *lane;
    size_t at;
    while ((at = next_missing(publish)) < publish->content_count &&
           (lane = free_lane(publish)) != NULL) {
        lane->publish = publish;
        lane->busy = true;
        lane->content = at;
        publish->in_flight++;
        set_state(publish, at, CONTENT_SENDING);
        bool begun = at < publish->source.content.block_count
                         ? read_block(lane)
                         : publish_send_put(lane, (const uint8_t *)publish->source.manifest,
                               (size_t)publish->source.manifest_bytes);
        if (!begun) {
            return true;
        }
    }
    return publish->in_flight > 0;
}
