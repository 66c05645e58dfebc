/* SPDX-License-Identifier: Apache-2.0
 * Collectives through the host's memory: data on the device are copied to page-locked memory, go
 * through the host mesh, and are copied back. So the results have the bits of the host mesh.
 *
 *    whole    one collective of the host mesh, whose agreement is that of the call
 *    pieces   of 8 MiB, two blocks in turn; all replicas make the same pieces:
 *
 *    comm stream   in 0 | in 1 |            | out 0 | in 2 |     | out 1 | in 3 |
 *    host mesh                 |  piece 0   |  piece 1           |  piece 2 ...
 *
 * A replica whose buffers are in the host's memory copies them itself, when it goes in pieces.
 * calls.c calls it. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/device/tensor_memory.h"
#include "worker/library/mesh/device/device_mesh.h"
#include "worker/library/mesh/collectives/collective.h"

#define BLOCK_MIN        ((size_t)64 << 10)
#define CACHE_LINE_BYTES ((size_t)64)
#define COPIES_MAX       8u /* more of them are packed on the device */

struct stage {
    struct device_call *call;
    struct device_replica *device_replica;
    bool pieces;
    size_t end;     /* of all pieces: packed bytes, or those of the longest row */
    size_t longest; /* the most that one of them takes in a block */
};

static uint32_t replicas_of(const struct stage *stage)
{
    return stage->device_replica->mesh->replica_count;
}

static bool is_list(const struct stage *stage)
{
    return stage->call->kind == MESH_ALL_REDUCE || stage->call->kind == MESH_BROADCAST;
}

/* The bytes that replica `index` gives to an all_gather. */
static size_t given_by(const struct stage *stage, uint32_t index)
{
    const struct device_call *call = stage->call;
    return call->sizes != NULL ? call->sizes[index] : call->buffers[0].bytes;
}

/* How many of the first `bytes` bytes are in [low, high). */
static size_t staged_clip(size_t bytes, size_t low, size_t high)
{
    size_t end = bytes < high ? bytes : high;
    return end > low ? end - low : 0;
}

static size_t staged_cache_lines(size_t bytes)
{
    return (bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
}

/* The end of the piece that begins at `low`. */
static size_t staged_cut(const struct stage *stage, size_t low)
{
    if (!stage->pieces) {
        return stage->end;
    }
    if (is_list(stage)) {
        return mesh_layout_chunk_end(&stage->device_replica->layout, low, STAGE_BYTES);
    }
    size_t width = STAGE_BYTES / (replicas_of(stage) + 1) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    width = width > 0 ? width : CACHE_LINE_BYTES;
    return stage->end - low > width ? low + width : stage->end;
}

static size_t block_bytes(const struct stage *stage, size_t width)
{
    if (is_list(stage)) {
        return width;
    }
    if (stage->call->kind == MESH_REDUCE_SCATTER) {
        return width * replicas_of(stage) + width;
    }
    if (stage->pieces) {
        return staged_cache_lines(width) + width * replicas_of(stage);
    }
    return staged_cache_lines(stage->call->buffers[0].bytes) + (size_t)stage->call->total;
}

static cadre_status lay_out(struct stage *stage, struct cadre_error *error)
{
    const struct device_call *call = stage->call;
    if (is_list(stage)) {
        CADRE_TRY(
            mesh_layout_set(&stage->device_replica->layout, call->buffers, call->count, error));
        stage->end = stage->device_replica->layout.bytes;
    } else {
        stage->end = call->buffers[0].bytes;
    }
    for (uint32_t i = 0; call->kind == MESH_ALL_GATHER && i < replicas_of(stage); i++) {
        size_t bytes = given_by(stage, i);
        stage->end = bytes > stage->end ? bytes : stage->end;
    }
    stage->longest =
        block_bytes(stage, is_list(stage) && stage->pieces ? STAGE_BYTES : staged_cut(stage, 0));
    size_t pieces = is_list(stage) ? call->count : replicas_of(stage);
    bool room =
        scratch_reserve(&stage->device_replica->pieces, pieces, sizeof(struct device_piece)) !=
            NULL &&
        scratch_reserve(&stage->device_replica->buffers, call->count, sizeof(struct mesh_buffer)) !=
            NULL &&
        scratch_reserve(&stage->device_replica->sizes, replicas_of(stage), sizeof(size_t)) != NULL;
    return room ? CADRE_OK
                : cadre_error_set(
                      error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu", pieces);
}

/* --- blocks --- */

static cadre_status await_block(
    struct device_replica *device_replica, struct stage_block *block, struct cadre_error *error)
{
    return block->event == NULL ? CADRE_OK
                                : device_wait_event(device_replica->device, block->event, 0,
                                      device_mesh_stop, device_replica, error);
}

static void give_block(struct stage_block *block)
{
    if (block->memory != NULL) {
        tensor_memory_give((enum tensor_memory_kind)block->kind, block->memory, block->bytes);
        block->memory = NULL;
        block->bytes = 0;
    }
}

static cadre_status block_room(
    struct stage *stage, struct stage_block *block, struct cadre_error *error)
{
    struct device_replica *device_replica = stage->device_replica;
    if (device_replica->device != NULL && block->event == NULL) {
        CADRE_TRY(device_replica->device->ops->event_open(
            device_replica->device->index, &block->event, error));
    }
    if (block->memory != NULL && block->bytes >= stage->longest) {
        return CADRE_OK;
    }
    CADRE_TRY(await_block(device_replica, block, error)); /* copies out of the old one */
    size_t wanted = BLOCK_MIN;
    while (wanted < stage->longest) {
        wanted *= 2;
    }
    give_block(block);
    block->kind = device_replica->device != NULL ? TENSOR_MEMORY_PINNED : TENSOR_MEMORY_HOST;
    block->memory = tensor_memory_get((enum tensor_memory_kind)block->kind, wanted);
    if (block->memory == NULL && block->kind == TENSOR_MEMORY_PINNED) {
        block->kind = TENSOR_MEMORY_HOST; /* slower copies */
        block->memory = tensor_memory_get(TENSOR_MEMORY_HOST, wanted);
    }
    block->bytes = block->memory != NULL ? wanted : 0;
    return block->memory != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "no memory for %zu bytes on their way through the host", wanted);
}

void device_staged_finish(struct device_replica *device_replica, bool at_rest)
{
    for (size_t i = 0; i < CADRE_COUNT_OF(device_replica->blocks); i++) {
        struct stage_block *block = &device_replica->blocks[i];
        if (block->event != NULL) {
            device_replica->device->ops->event_close(block->event);
        }
        if (at_rest) { /* else the device may still write there: it is lost */
            give_block(block);
        }
    }
}

/* --- copies --- */

/* Copies between the buffers and a block, whose first byte is byte `packed` of the pieces. */
static cadre_status staged_transfer(
    const struct stage *stage, uint8_t *packed, size_t count, bool in, struct cadre_error *error)
{
    struct device_replica *device_replica = stage->device_replica;
    const struct device *device = stage->call->on;
    const struct device_piece *pieces = device_replica->pieces.memory;
    if (device == NULL || count <= COPIES_MAX) {
        for (size_t i = 0; i < count; i++) {
            void *to = in ? packed + pieces[i].offset : pieces[i].data;
            const void *from = in ? pieces[i].data : packed + pieces[i].offset;
            if (device == NULL) {
                memcpy(to, from, pieces[i].bytes);
            } else {
                CADRE_TRY(device->ops->copy(to, from, pieces[i].bytes, device->comm, error));
            }
        }
        return CADRE_OK;
    }
    size_t bytes = pieces[count - 1].offset + pieces[count - 1].bytes;
    CADRE_TRY(device_pack_room(device_replica, bytes, error));
    if (in) {
        CADRE_TRY(device->ops->pack(pieces, count, device_replica->pack, device->comm, error));
        return device->ops->copy(packed, device_replica->pack, bytes, device->comm, error);
    }
    CADRE_TRY(device->ops->copy(device_replica->pack, packed, bytes, device->comm, error));
    return device->ops->unpack(pieces, count, device_replica->pack, device->comm, error);
}

/* Adds `bytes` at `data` + `at`; an empty piece has no address. */
static void staged_add(const struct stage *stage, size_t *count, const void *data, size_t at,
    size_t offset, size_t bytes)
{
    struct device_piece *pieces = stage->device_replica->pieces.memory;
    if (bytes > 0) {
        pieces[(*count)++] = (struct device_piece){
            .data = (uint8_t *)(uintptr_t)data + at, .offset = offset, .bytes = bytes};
    }
}

/* Whether this replica's elements of a list are read, or written at all. */
static bool staged_gives(const struct stage *stage)
{
    return stage->call->kind != MESH_BROADCAST ||
           stage->call->root == stage->device_replica->global;
}

static bool staged_receives(const struct stage *stage, const struct mesh_buffer *buffer)
{
    return stage->call->kind != MESH_BROADCAST || !staged_gives(stage) ||
           mesh_source(buffer) != buffer->data;
}

static size_t list_pieces(const struct stage *stage, size_t low, size_t high, bool in)
{
    struct layout_piece piece;
    size_t count = 0;
    size_t at = low;
    while (mesh_layout_next(&stage->device_replica->layout, &at, high, &piece)) {
        const struct mesh_buffer *buffer = &stage->call->buffers[piece.buffer];
        const uint8_t *data = in ? mesh_source(buffer) : buffer->data;
        if (in ? staged_gives(stage) : staged_receives(stage, buffer)) {
            staged_add(stage, &count, data, piece.at, at - piece.bytes - low, piece.bytes);
        }
    }
    return count;
}

static cadre_status copy_in(struct stage *stage, size_t low, size_t high, struct stage_block *block,
    struct cadre_error *error)
{
    const struct device_call *call = stage->call;
    const struct mesh_buffer *own = call->buffers;
    size_t count = 0;
    CADRE_TRY(block_room(stage, block, error));
    if (is_list(stage)) {
        count = list_pieces(stage, low, high, true);
    } else if (call->kind == MESH_ALL_GATHER) {
        staged_add(stage, &count, own->from, low, 0, staged_clip(own->bytes, low, high));
    } else {
        for (uint32_t i = 0; i < replicas_of(stage); i++) {
            staged_add(
                stage, &count, own->from, i * own->bytes + low, i * (high - low), high - low);
        }
    }
    CADRE_TRY(staged_transfer(stage, block->memory, count, true, error));
    /* Also without a copy: what was copied out of this block before is done as well. */
    return block->event == NULL ? CADRE_OK
                                : stage->device_replica->device->ops->event_record(
                                      block->event, stage->device_replica->device->comm, error);
}

static cadre_status copy_out(struct stage *stage, size_t low, size_t high,
    struct stage_block *block, struct cadre_error *error)
{
    const struct device_call *call = stage->call;
    const struct mesh_buffer *own = call->buffers;
    uint8_t *packed = block->memory;
    size_t count = 0;
    if (is_list(stage)) {
        count = list_pieces(stage, low, high, false);
    } else if (call->kind == MESH_REDUCE_SCATTER) {
        staged_add(stage, &count, own->data, low, 0, high - low);
        packed += (high - low) * replicas_of(stage);
    } else {
        size_t into = 0;
        size_t offset = 0;
        for (uint32_t i = 0; i < replicas_of(stage); i++) {
            size_t bytes = staged_clip(given_by(stage, i), low, high);
            staged_add(stage, &count, own->data, into + low, offset, bytes);
            offset += bytes;
            into += given_by(stage, i);
        }
        packed += staged_cache_lines(staged_clip(own->bytes, low, high));
    }
    CADRE_TRY(staged_transfer(stage, packed, count, false, error));
    return block->event == NULL ? CADRE_OK
                                : stage->device_replica->device->ops->event_record(
                                      block->event, stage->device_replica->device->comm, error);
}

/* --- the host mesh --- */

static cadre_status run_list(struct stage *stage, size_t low, size_t high, uint8_t *block,
    const struct mesh_note *note, struct cadre_error *error)
{
    const struct device_call *call = stage->call;
    struct mesh_buffer *buffers = stage->device_replica->buffers.memory;
    struct layout_piece piece;
    size_t count = 0;
    size_t at = low;
    for (size_t i = 0; !stage->pieces && i < call->count; i++) { /* empty ones as well */
        const struct mesh_buffer *buffer = &call->buffers[i];
        buffers[count++] =
            (struct mesh_buffer){.data = block, .bytes = buffer->bytes, .dtype = buffer->dtype};
        block += buffer->bytes;
    }
    while (stage->pieces && mesh_layout_next(&stage->device_replica->layout, &at, high, &piece)) {
        buffers[count++] =
            (struct mesh_buffer){.data = block, .bytes = piece.bytes, .dtype = piece.dtype};
        block += piece.bytes;
    }
    return device_call_host(call, buffers, count, NULL, note, error);
}

static cadre_status run_rows(struct stage *stage, size_t low, size_t high, uint8_t *block,
    const struct mesh_note *note, struct cadre_error *error)
{
    const struct device_call *call = stage->call;
    size_t *sizes = stage->device_replica->sizes.memory;
    size_t own = staged_clip(call->buffers[0].bytes, low, high);
    struct mesh_buffer buffer = {.bytes = own, .dtype = call->buffers[0].dtype, .from = block};
    if (call->kind == MESH_REDUCE_SCATTER) {
        buffer.data = block + own * replicas_of(stage);
        return device_call_host(call, &buffer, 1, NULL, note, error);
    }
    buffer.data = block + staged_cache_lines(own);
    for (uint32_t i = 0; i < replicas_of(stage); i++) {
        sizes[i] = staged_clip(given_by(stage, i), low, high);
    }
    return device_call_host(call, &buffer, 1, stage->pieces ? sizes : call->sizes, note, error);
}

static cadre_status run_piece(
    struct stage *stage, size_t low, size_t high, uint8_t *block, struct cadre_error *error)
{
    struct mesh_note note = {.timeout_us = 0};
    if (stage->call->note != NULL) {
        note = *stage->call->note;
    }
    if (stage->pieces) {
        note.key = prng_mix(note.key ^ prng_mix(low));
    }
    return is_list(stage) ? run_list(stage, low, high, block, &note, error)
                          : run_rows(stage, low, high, block, &note, error);
}

/* --- all of it --- */

/* *ret_refused: the calls differ; nothing has been touched. */
static cadre_status staged_run(struct stage *stage, bool *ret_refused, struct cadre_error *error)
{
    struct stage_block *blocks = stage->device_replica->blocks;
    size_t low = 0;
    CADRE_TRY(lay_out(stage, error));
    size_t high = staged_cut(stage, low);
    CADRE_TRY(copy_in(stage, low, high, &blocks[0], error));
    for (unsigned turn = 0;; turn++) {
        struct stage_block *block = &blocks[turn % 2];
        size_t next = high < stage->end ? staged_cut(stage, high) : high;
        if (next > high) {
            CADRE_TRY(copy_in(stage, high, next, &blocks[(turn + 1) % 2], error));
        }
        CADRE_TRY(await_block(stage->device_replica, block, error));
        cadre_status status = run_piece(stage, low, high, block->memory, error);
        *ret_refused = status == CADRE_INVALID_ARGUMENT && !stage->pieces;
        CADRE_TRY(status);
        CADRE_TRY(copy_out(stage, low, high, block, error));
        if (next == high) {
            return CADRE_OK;
        }
        low = high;
        high = next;
    }
}

cadre_status device_staged_run(struct device_call *call, bool pieces, struct cadre_error *error)
{
    struct stage stage = {.call = call, .device_replica = call->device_replica, .pieces = pieces};
    struct cadre_error reason;
    bool refused = false;
    cadre_status status = staged_run(&stage, &refused, &reason);
    if (status == CADRE_OK) {
        return status;
    }
    return refused ? cadre_error_set(error, status, "%s", reason.text)
                   : device_mesh_fail(call->device_replica, status, "could not go through the host",
                         &reason, error);
}
