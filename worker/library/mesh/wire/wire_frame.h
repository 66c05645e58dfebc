/* SPDX-License-Identifier: Apache-2.0
 * What a host sends another one at the start of a collective: the state of its calls (protocol,
 * rule 14). 288 bytes of fixed offsets, so that one read takes them with the data behind them.
 * Also, over wires and links, why a mesh has ended (FAULT, the reason as data) or that it was
 * closed in order (GOODBYE).
 *
 *     | head 48 | record 240 | record 240, when calls differ | data | */
#ifndef CADRE_WORKER_MESH_WIRE_WIRE_FRAME_H
#define CADRE_WORKER_MESH_WIRE_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/mesh/agreement.h"

#define WIRE_HEAD_BYTES   48
#define WIRE_RECORD_BYTES (48 + MESH_NOTE_BYTES)
#define WIRE_FRAME_BYTES  (WIRE_HEAD_BYTES + WIRE_RECORD_BYTES)
#define WIRE_REASON_BYTES 384 /* of a FAULT, with the final zero */

enum wire_frame_type { WIRE_CALL = 1, WIRE_FAULT, WIRE_GOODBYE };

struct wire_frame {
    enum wire_frame_type type;
    uint64_t generation;
    uint64_t nonce;
    uint64_t sequence; /* of a GOODBYE: of the last collective */
    uint32_t rank;     /* of the sender; of a GOODBYE: of a task of its host */
    uint32_t code;     /* a cadre_status; of a FAULT only */
    uint32_t data_bytes;
    struct agreement agreement; /* of a CALL; the second record comes apart */
};

/* Writes all but the second record. */
void mesh_wire_frame_encode(const struct wire_frame *frame, uint8_t ret_bytes[WIRE_FRAME_BYTES]);

/* False when the bytes are no frame. Values are as sent, texts terminated: the reader checks them.
 * agreement.differs: a second record follows. */
bool mesh_wire_frame_decode(const uint8_t bytes[WIRE_FRAME_BYTES], struct wire_frame *ret_frame);

/* Writes one record. */
void mesh_wire_record_encode(
    const struct call_record *record, uint8_t ret_bytes[WIRE_RECORD_BYTES]);
/* Reads one record; any bytes are accepted, and the text is terminated. */
void mesh_wire_record_decode(
    const uint8_t bytes[WIRE_RECORD_BYTES], struct call_record *ret_record);

#endif
