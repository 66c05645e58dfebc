/* SPDX-License-Identifier: Apache-2.0
 * See neighbour_wire.h. */
#include "worker/library/neighbours/neighbour_wire.h"

#include <string.h>

#include "common/pure/assert.h"

enum { AT_OFFSET = 0, AT_COUNT, AT_SIZE, AT_PATH_BYTES };
enum { AT_CHECKSUM = 1 };

void neighbour_ask_write(const struct neighbour_ask *ask, uint64_t id, struct frame *ret_frame,
    uint8_t ret_name[NEIGHBOUR_NAME_BYTES])
{
    size_t path_bytes = strlen(ask->path);
    size_t version_bytes = strlen(ask->version);
    CADRE_ASSERT(path_bytes + version_bytes <= NEIGHBOUR_NAME_BYTES);
    memcpy(ret_name, ask->path, path_bytes);
    memcpy(ret_name + path_bytes, ask->version, version_bytes);
    *ret_frame = (struct frame){.kind = NEIGHBOUR_ASK,
        .id = id,
        .bytes = path_bytes + version_bytes,
        .args = {ask->offset, ask->count, ask->size, path_bytes}};
}

bool neighbour_ask_expects(const struct frame *frame)
{
    uint64_t path_bytes = frame->args[AT_PATH_BYTES];
    return frame->kind == NEIGHBOUR_ASK && frame->bytes <= NEIGHBOUR_NAME_BYTES && path_bytes > 0 &&
           path_bytes < STORAGE_PATH_BYTES && path_bytes < frame->bytes &&
           frame->bytes - path_bytes < STORAGE_VERSION_BYTES;
}

/* Whether the bytes are a part of one segment, and of the object. */
static bool is_inside(const struct neighbour_ask *ask)
{
    return ask->count > 0 && ask->count <= NEIGHBOUR_SEGMENT_BYTES && ask->offset < ask->size &&
           ask->count <= ask->size - ask->offset &&
           ask->offset / NEIGHBOUR_SEGMENT_BYTES ==
               (ask->offset + ask->count - 1) / NEIGHBOUR_SEGMENT_BYTES;
}

bool neighbour_ask_read(
    const struct frame *frame, const uint8_t *name, struct neighbour_ask *ret_ask)
{
    struct cadre_error unsaid = {0};
    CADRE_ASSERT(neighbour_ask_expects(frame));
    size_t path_bytes = (size_t)frame->args[AT_PATH_BYTES];
    size_t version_bytes = (size_t)frame->bytes - path_bytes;
    *ret_ask = (struct neighbour_ask){.offset = frame->args[AT_OFFSET],
        .count = frame->args[AT_COUNT],
        .size = frame->args[AT_SIZE]};
    memcpy(ret_ask->path, name, path_bytes);
    memcpy(ret_ask->version, name + path_bytes, version_bytes);
    return memchr(name, '\0', path_bytes + version_bytes) == NULL && is_inside(ret_ask) &&
           storage_is_object(ret_ask->path) && storage_check(ret_ask->path, &unsaid) == CADRE_OK;
}

uint64_t neighbour_piece_bytes(const struct neighbour_ask *ask, uint64_t offset)
{
    CADRE_ASSERT(offset - ask->offset < ask->count);
    uint64_t left = ask->offset + ask->count - offset;
    return left < NEIGHBOUR_PIECE_BYTES ? left : NEIGHBOUR_PIECE_BYTES;
}

enum neighbour_answer neighbour_answer_read(
    const struct frame *frame, const struct neighbour_ask *ask, uint64_t id, uint64_t offset)
{
    if (frame->kind == NEIGHBOUR_WAIT) {
        return frame->bytes == 0 ? ANSWER_WAIT : ANSWER_WRONG;
    }
    if (frame->id != id) {
        return ANSWER_WRONG;
    }
    if (frame->kind == NEIGHBOUR_REFUSED) {
        return frame->bytes == 0 ? ANSWER_REFUSED : ANSWER_WRONG;
    }
    return frame->kind == NEIGHBOUR_PIECE && frame->args[AT_OFFSET] == offset &&
                   frame->args[AT_CHECKSUM] <= UINT32_MAX &&
                   frame->bytes == neighbour_piece_bytes(ask, offset)
               ? ANSWER_PIECE
               : ANSWER_WRONG;
}
