/* SPDX-License-Identifier: Apache-2.0
 * Frames between a program and its daemon on a Unix socket: 4 bytes length (little endian, of what
 * follows), then a TaskUp or TaskDown message. Before the first frame each side sends 8 bytes,
 * "CADRE" 0 and the frame version (16 bit little endian), so that a peer of another version is
 * found before any frame is read. */
#ifndef CADRE_WIRE_FRAME_H
#define CADRE_WIRE_FRAME_H

#include "common/wire/wire.h"

#define FRAME_PREAMBLE_BYTES 8

/* The 8 bytes of this version. */
void frame_preamble_write(uint8_t preamble[FRAME_PREAMBLE_BYTES]);

/* FAILED_PRECONDITION with both versions and what to do ("rebuild the program against version
 * ..."), or INVALID_ARGUMENT when the peer is not Cadre at all. `peer` names the other side in the
 * message. */
cadre_status frame_preamble_check(
    const uint8_t preamble[FRAME_PREAMBLE_BYTES], const char *peer, struct cadre_error *error);

/* Appends one frame. */
cadre_status frame_pack_task_up(
    const struct task_up *message, struct wire_buffer *buffer, struct cadre_error *error);
/* The same, of the other direction. */
cadre_status frame_pack_task_down(
    const struct task_down *message, struct wire_buffer *buffer, struct cadre_error *error);

/* Collects bytes of a stream and returns whole frames. {0} is an empty one. */
struct frame_reader {
    struct wire_buffer buffer;
    size_t taken;
};

/* Also of {0}; the reader is {0} again. */
void frame_reader_free(struct frame_reader *reader);

/* Room for at least `size` more bytes; then frame_reader_commit what was read. NULL: out of memory.
 */
uint8_t *frame_reader_room(struct frame_reader *reader, size_t size);
/* So many bytes were read into the room. */
void frame_reader_commit(struct frame_reader *reader, size_t size);

/* CADRE_OK and the payload of the next whole frame (valid until the next call), CADRE_PENDING while
 * it is incomplete, or RESOURCE_EXHAUSTED for a length over LIMIT_FRAME_BYTES. */
cadre_status frame_reader_next(struct frame_reader *reader, const uint8_t **ret_payload,
    size_t *ret_size, struct cadre_error *error);

#endif
