/* SPDX-License-Identifier: Apache-2.0
 * What tasks of a job send each other for bytes of objects, over links
 * (worker/library/ps/link/link.h: TCP, both sides prove the key before anything else is read, then
 * frames with a header of 64 bytes). One question at a time on each link:
 *
 *     ASK      args: offset, count, bytes of the object, bytes of its path
 *              bytes: path and version, without zeros
 *     then, until all of [offset, offset + count) came, in order:
 *     PIECE    args: offset, CRC-32C; bytes: NEIGHBOUR_PIECE_BYTES, the last one the rest
 *     WAIT     no bytes: it is being fetched; comes each second
 *     REFUSED  code, no bytes: these bytes do not come from this task. It ends the answer
 *
 * All but WAIT have the number of the question as their id. Who breaks these rules is disconnected.
 *
 * Pure: reads any bytes, and keeps nothing. */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_WIRE_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/storage/storage.h"
#include "worker/library/ps/link/link.h"

#define NEIGHBOUR_PIECE_BYTES   ((uint64_t)256 << 10)
#define NEIGHBOUR_SEGMENT_BYTES ((uint64_t)4 << 20) /* a question is of bytes of one segment */
#define NEIGHBOUR_NAME_BYTES    (STORAGE_PATH_BYTES + STORAGE_VERSION_BYTES)

enum neighbour_kind {
    NEIGHBOUR_ASK = 0x4e420001,
    NEIGHBOUR_PIECE,
    NEIGHBOUR_WAIT,
    NEIGHBOUR_REFUSED
};

/* Bytes [offset, offset + count) of one state of one object. */
struct neighbour_ask {
    char path[STORAGE_PATH_BYTES];
    char version[STORAGE_VERSION_BYTES];
    uint64_t size; /* of the object */
    uint64_t offset;
    uint64_t count;
};

/* Writes the question's frame and its bytes, at most NEIGHBOUR_NAME_BYTES; the frame says how
 * many. */
void neighbour_ask_write(const struct neighbour_ask *ask, uint64_t id, struct frame *ret_frame,
    uint8_t ret_name[NEIGHBOUR_NAME_BYTES]);

/* Whether a frame can be a question: then frame->bytes bytes follow, NEIGHBOUR_NAME_BYTES at
 * most. */
bool neighbour_ask_expects(const struct frame *frame);
/* Reads a question of a frame that can be one. False: it is none that a task sends. One that is has
 * a path of an object that can be, a version, and bytes inside of one segment of the object. */
bool neighbour_ask_read(
    const struct frame *frame, const uint8_t *name, struct neighbour_ask *ret_ask);

/* Bytes of the piece that begins at `offset`. */
uint64_t neighbour_piece_bytes(const struct neighbour_ask *ask, uint64_t offset);

/* What a frame of an answer is, when everything before `offset` came. */
enum neighbour_answer { ANSWER_PIECE, ANSWER_WAIT, ANSWER_REFUSED, ANSWER_WRONG };
enum neighbour_answer neighbour_answer_read(
    const struct frame *frame, const struct neighbour_ask *ask, uint64_t id, uint64_t offset);

#endif
