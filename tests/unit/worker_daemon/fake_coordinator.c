/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/worker_daemon/fake_coordinator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/methods.h"
#include "common/wire/wire.h"

#define CHUNK_BYTES ((size_t)300 * 1000) /* a block comes in several */

/* A content that is coming in. */
struct incoming {
    struct blob_chunk head;
    struct wire_buffer bytes;
};

static bool refuses(struct coordinator *coordinator, struct rpc_call *call)
{
    if (coordinator->refusal == CADRE_OK || coordinator->good_calls-- > 0) {
        return false;
    }
    coordinator->good_calls = 0;
    rpc_call_finish(call, coordinator->refusal, "the coordinator refuses it");
    return true;
}

struct blob *coordinator_find(struct coordinator *coordinator, const uint8_t *sha256)
{
    for (size_t i = 0; i < coordinator->blob_count; i++) {
        if (memcmp(coordinator->blobs[i].hash.bytes, sha256, SHA256_BYTES) == 0) {
            return &coordinator->blobs[i];
        }
    }
    return NULL;
}

void coordinator_put(struct coordinator *coordinator, const void *bytes, size_t size)
{
    struct blob blob = {.bytes = malloc(size), .size = size};
    assert_non_null(blob.bytes);
    memcpy(blob.bytes, bytes, size);
    assert_int_equal(sha256_of(bytes, size, &blob.hash, NULL), CADRE_OK);
    assert_true(coordinator->blob_count < BLOBS_MAX);
    coordinator->blobs[coordinator->blob_count++] = blob;
}

void coordinator_lose(struct coordinator *coordinator, const uint8_t *sha256)
{
    struct blob *blob = coordinator_find(coordinator, sha256);
    assert_non_null(blob);
    free(blob->bytes);
    *blob = coordinator->blobs[--coordinator->blob_count];
}

static void reply(struct rpc_call *call, const struct wire_buffer *packed)
{
    struct rpc_buffer answer;
    rpc_buffer_alloc(&answer, packed->size);
    memcpy(answer.data, packed->bytes, packed->size);
    rpc_buffer_commit(&answer, packed->size);
    rpc_call_reply(call, &answer);
    rpc_buffer_free(&answer);
}

static void missing_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct coordinator *coordinator = user;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct wire_buffer packed = {0};
    struct cadre_error error = {0};
    struct blob_list list;
    uint8_t missing[BLOBS_MAX][LIMIT_SHA256_BYTES];
    struct blob_list answer = {.sha256 = (const uint8_t(*)[LIMIT_SHA256_BYTES])missing};
    if (refuses(coordinator, call)) {
        wire_arena_free(arena);
        return;
    }
    coordinator->asks++;
    assert_ok(wire_unpack_blob_list(data, length, arena, &list, &error), &error);
    for (size_t i = 0; i < list.count; i++) {
        if (coordinator_find(coordinator, list.sha256[i]) == NULL) {
            assert_true(answer.count < BLOBS_MAX);
            memcpy(missing[answer.count++], list.sha256[i], LIMIT_SHA256_BYTES);
        }
    }
    assert_ok(wire_pack_blob_list(&answer, &packed, &error), &error);
    reply(call, &packed);
    wire_buffer_free(&packed);
    wire_arena_free(arena);
}

static void put_open(struct rpc_call *call, void *user)
{
    struct coordinator *coordinator = user;
    coordinator->coming++;
    if (coordinator->coming > coordinator->coming_max) {
        coordinator->coming_max = coordinator->coming;
    }
    if (!refuses(coordinator, call)) {
        rpc_call_set_user(call, calloc(1, sizeof(struct incoming)));
    }
}

static void put_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    struct incoming *incoming = rpc_call_user(call);
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct cadre_error error = {0};
    struct blob_chunk chunk;
    if (incoming != NULL) {
        assert_ok(wire_unpack_blob_chunk(data, length, arena, &chunk, &error), &error);
        assert_int_equal(chunk.has_header, incoming->bytes.size == 0);
        if (chunk.has_header) {
            incoming->head = chunk;
        }
        assert_true(wire_buffer_reserve(&incoming->bytes, chunk.byte_count));
        memcpy(incoming->bytes.bytes + incoming->bytes.size, chunk.bytes, chunk.byte_count);
        incoming->bytes.size += chunk.byte_count;
    }
    wire_arena_free(arena);
}

static void put_half_close(struct rpc_call *call, void *user)
{
    struct coordinator *coordinator = user;
    const struct incoming *incoming = rpc_call_user(call);
    if (incoming == NULL) {
        return;
    }
    struct sha256 hash;
    assert_int_equal(incoming->bytes.size, incoming->head.size_bytes);
    assert_int_equal(sha256_of(incoming->bytes.bytes, incoming->bytes.size, &hash, NULL), CADRE_OK);
    if (memcmp(hash.bytes, incoming->head.sha256, sizeof hash.bytes) != 0) {
        rpc_call_finish(call, CADRE_DATA_LOSS, "the content does not have its hash");
        return;
    }
    coordinator->puts++;
    coordinator_put(coordinator, incoming->bytes.bytes, incoming->bytes.size);
    rpc_call_reply(call, &(struct rpc_buffer){0});
}

static void put_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    struct coordinator *coordinator = user;
    struct incoming *incoming = rpc_call_user(call);
    coordinator->coming--;
    if (incoming != NULL) {
        wire_buffer_free(&incoming->bytes);
        free(incoming);
    }
}

static void give(struct coordinator *coordinator, struct rpc_call *call, const struct blob *blob)
{
    struct wire_buffer packed = {0};
    struct cadre_error error = {0};
    struct blob_chunk head = {.has_header = true, .size_bytes = blob->size};
    memcpy(head.sha256, blob->hash.bytes, SHA256_BYTES);
    assert_ok(wire_pack_blob_chunk(&head, &packed, &error), &error); /* alone, as it may be */
    assert_ok(rpc_call_send(call, packed.bytes, packed.size, &error), &error);
    for (size_t at = 0; at < blob->size; at += CHUNK_BYTES) {
        size_t size = blob->size - at < CHUNK_BYTES ? blob->size - at : CHUNK_BYTES;
        struct blob_chunk chunk = {.bytes = blob->bytes + at, .byte_count = size};
        wire_buffer_clear(&packed);
        assert_ok(wire_pack_blob_chunk(&chunk, &packed, &error), &error);
        if (coordinator->corrupts && at == 0) {
            packed.bytes[packed.size - 1] ^= 1;
        }
        assert_ok(rpc_call_send(call, packed.bytes, packed.size, &error), &error);
    }
    wire_buffer_free(&packed);
    rpc_call_finish(call, CADRE_OK, "");
}

static void get_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct coordinator *coordinator = user;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct cadre_error error = {0};
    struct get_blob_request request;
    if (!refuses(coordinator, call)) {
        coordinator->gets++;
        if (coordinator->hangs) {
            wire_arena_free(arena);
            return;
        }
        assert_ok(wire_unpack_get_blob_request(data, length, arena, &request, &error), &error);
        const struct blob *blob = coordinator_find(coordinator, request.sha256);
        if (blob != NULL) {
            give(coordinator, call, blob);
        } else {
            rpc_call_finish(call, CADRE_NOT_FOUND, "there is no such content");
        }
    }
    wire_arena_free(arena);
}

static void get_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)call;
    struct coordinator *coordinator = user;
    coordinator->cancels += cancelled;
}

static void output_open(struct rpc_call *call, void *user)
{
    struct coordinator *coordinator = user;
    if (!refuses(coordinator, call)) {
        assert_true(coordinator->output_count < OUTPUTS_MAX);
        struct output *output = &coordinator->outputs[coordinator->output_count++];
        *output = (struct output){.ended = false};
        rpc_call_set_user(call, output);
    }
}

static void output_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct coordinator *coordinator = user;
    struct output *output = rpc_call_user(call);
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct cadre_error error = {0};
    struct output_chunk chunk;
    if (output != NULL) {
        assert_ok(wire_unpack_output_chunk(data, length, arena, &chunk, &error), &error);
        output->got_bytes += chunk.byte_count;
        if (chunk.has_header) {
            snprintf(output->path, sizeof output->path, "%s", chunk.path);
            output->size_bytes = chunk.size_bytes;
            output->referred = chunk.refers;
            memcpy(output->checkpoint, chunk.checkpoint, sizeof output->checkpoint);
        }
        if (output->referred && coordinator->forgets > 0) {
            coordinator->forgets--;
            rpc_call_finish(call, CADRE_NOT_FOUND, "no such checkpoint is kept");
        } else if (output->referred) {
            output->ended = true;
            rpc_call_reply(call, &(struct rpc_buffer){0});
        }
    }
    wire_arena_free(arena);
}

static void output_half_close(struct rpc_call *call, void *user)
{
    (void)user;
    struct output *output = rpc_call_user(call);
    if (output != NULL && !output->ended) {
        output->ended = true;
        rpc_call_reply(call, &(struct rpc_buffer){0});
    }
}

static void settle_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct coordinator *coordinator = user;
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    struct wire_buffer packed = {0};
    struct cadre_error error = {0};
    struct settle_file_request request;
    assert_ok(wire_unpack_settle_file_request(data, length, arena, &request, &error), &error);
    if (!refuses(coordinator, call)) {
        struct output *settled = &coordinator->settled;
        if (coordinator->settled_count++ == 0) {
            settled->size_bytes = request.found.size_bytes;
            memcpy(settled->checkpoint, request.found.sha256, sizeof settled->checkpoint);
        }
        struct settled_file answer = {.size_bytes = settled->size_bytes};
        memcpy(answer.sha256, settled->checkpoint, sizeof answer.sha256);
        assert_ok(wire_pack_settled_file(&answer, &packed, &error), &error);
        reply(call, &packed);
    }
    wire_buffer_free(&packed);
    wire_arena_free(arena);
}

static const struct rpc_server_ops settle_ops = {.on_message = settle_message};
static const struct rpc_server_ops missing_ops = {.on_message = missing_message};
static const struct rpc_server_ops put_ops = {.on_open = put_open,
    .on_message = put_message,
    .on_half_close = put_half_close,
    .on_closed = put_closed};
static const struct rpc_server_ops get_ops = {.on_message = get_message, .on_closed = get_closed};

static const struct rpc_server_ops output_ops = {
    .on_open = output_open, .on_message = output_message, .on_half_close = output_half_close};

void coordinator_open(struct coordinator *coordinator, struct rpc_loop *loop)
{
    struct cadre_error error = {0};
    const struct rpc_method methods[] = {{.path = METHOD_AGENTS_MISSING_BLOBS,
                                             .request_bytes_max = LIMIT_FRAME_BYTES,
                                             .ops = &missing_ops,
                                             .user = coordinator},
        {.path = METHOD_AGENTS_PUT_BLOB,
            .client_streams = true,
            .request_bytes_max = 2 * LIMIT_BLOB_CHUNK_BYTES,
            .ops = &put_ops,
            .user = coordinator},
        {.path = METHOD_AGENTS_PUT_OUTPUT,
            .client_streams = true,
            .request_bytes_max = 2 * LIMIT_BLOB_CHUNK_BYTES,
            .ops = &output_ops,
            .user = coordinator},
        {.path = METHOD_AGENTS_SETTLE_FILE,
            .request_bytes_max = LIMIT_FRAME_BYTES,
            .ops = &settle_ops,
            .user = coordinator},
        {.path = METHOD_AGENTS_GET_BLOB,
            .server_streams = true,
            .request_bytes_max = LIMIT_FRAME_BYTES,
            .ops = &get_ops,
            .user = coordinator}};
    struct rpc_server_options options = {
        .methods = methods, .method_count = sizeof methods / sizeof methods[0]};
    *coordinator = (struct coordinator){0};
    snprintf(coordinator->address, sizeof coordinator->address, "unix:%s/c.sock", test_temp_dir());
    assert_ok(rpc_server_open(loop, &options, &coordinator->server, &error), &error);
    assert_ok(
        rpc_server_listen(coordinator->server, coordinator->address, NULL, NULL, &error), &error);
    rpc_server_start(coordinator->server);
}

void coordinator_close(struct coordinator *coordinator)
{
    rpc_server_close(coordinator->server);
    for (size_t i = 0; i < coordinator->blob_count; i++) {
        free(coordinator->blobs[i].bytes);
    }
}
