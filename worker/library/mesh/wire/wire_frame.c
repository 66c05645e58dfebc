/* SPDX-License-Identifier: Apache-2.0
 * Frames of the wire as bytes. */
#include "worker/library/mesh/wire/wire_frame.h"

#include <string.h>

#include "worker/library/mesh/bytes.h"

#define FRAME_MAGIC UINT32_C(0x57524443) /* "CDRW" */

enum {
    AT_MAGIC = 0,
    AT_TYPE = 4,
    AT_DIFFERS = 5,
    AT_GENERATION = 8,
    AT_NONCE = 16,
    AT_SEQUENCE = 24,
    AT_RANK = 32,
    AT_CODE = 36,
    AT_DATA = 40
};
_Static_assert(AT_DATA + 8 == WIRE_HEAD_BYTES, "four bytes stay zero");

enum {
    AT_REPLICA = 0,
    AT_WRONG = 4,
    AT_KIND = 5,
    AT_OP = 6,
    AT_DTYPE = 7,
    AT_ROOT = 8,
    AT_COUNT = 16,
    AT_BYTES = 24,
    AT_LAYOUT = 32,
    AT_KEY = 40,
    AT_TEXT = 48
};
_Static_assert(AT_TEXT + MESH_NOTE_BYTES == WIRE_RECORD_BYTES, "no gap");

void mesh_wire_record_encode(const struct call_record *record, uint8_t ret_bytes[WIRE_RECORD_BYTES])
{
    const struct call_shape *shape = &record->shape;
    memset(ret_bytes, 0, AT_TEXT);
    bytes_put_u32(ret_bytes + AT_REPLICA, record->replica);
    ret_bytes[AT_WRONG] = record->wrong;
    ret_bytes[AT_KIND] = shape->kind;
    ret_bytes[AT_OP] = shape->op;
    ret_bytes[AT_DTYPE] = shape->dtype;
    bytes_put_u32(ret_bytes + AT_ROOT, shape->root);
    bytes_put_u64(ret_bytes + AT_COUNT, shape->count);
    bytes_put_u64(ret_bytes + AT_BYTES, shape->bytes);
    bytes_put_u64(ret_bytes + AT_LAYOUT, shape->layout);
    bytes_put_u64(ret_bytes + AT_KEY, shape->key);
    memcpy(ret_bytes + AT_TEXT, record->text, MESH_NOTE_BYTES);
}

void mesh_wire_record_decode(const uint8_t bytes[WIRE_RECORD_BYTES], struct call_record *ret_record)
{
    ret_record->replica = bytes_get_u32(bytes + AT_REPLICA);
    ret_record->wrong = bytes[AT_WRONG] != 0;
    ret_record->shape = (struct call_shape){
        .kind = bytes[AT_KIND],
        .op = bytes[AT_OP],
        .dtype = bytes[AT_DTYPE],
        .root = bytes_get_u32(bytes + AT_ROOT),
        .count = bytes_get_u64(bytes + AT_COUNT),
        .bytes = bytes_get_u64(bytes + AT_BYTES),
        .layout = bytes_get_u64(bytes + AT_LAYOUT),
        .key = bytes_get_u64(bytes + AT_KEY),
    };
    memcpy(ret_record->text, bytes + AT_TEXT, MESH_NOTE_BYTES);
    ret_record->text[MESH_NOTE_BYTES - 1] = '\0';
}

void mesh_wire_frame_encode(const struct wire_frame *frame, uint8_t ret_bytes[WIRE_FRAME_BYTES])
{
    memset(ret_bytes, 0, WIRE_HEAD_BYTES);
    bytes_put_u32(ret_bytes + AT_MAGIC, FRAME_MAGIC);
    ret_bytes[AT_TYPE] = (uint8_t)frame->type;
    ret_bytes[AT_DIFFERS] = frame->agreement.differs;
    bytes_put_u64(ret_bytes + AT_GENERATION, frame->generation);
    bytes_put_u64(ret_bytes + AT_NONCE, frame->nonce);
    bytes_put_u64(ret_bytes + AT_SEQUENCE, frame->sequence);
    bytes_put_u32(ret_bytes + AT_RANK, frame->rank);
    bytes_put_u32(ret_bytes + AT_CODE, frame->code);
    bytes_put_u32(ret_bytes + AT_DATA, frame->data_bytes);
    mesh_wire_record_encode(&frame->agreement.first, ret_bytes + WIRE_HEAD_BYTES);
}

bool mesh_wire_frame_decode(const uint8_t bytes[WIRE_FRAME_BYTES], struct wire_frame *ret_frame)
{
    uint8_t type = bytes[AT_TYPE];
    ret_frame->type = (enum wire_frame_type)type;
    ret_frame->generation = bytes_get_u64(bytes + AT_GENERATION);
    ret_frame->nonce = bytes_get_u64(bytes + AT_NONCE);
    ret_frame->sequence = bytes_get_u64(bytes + AT_SEQUENCE);
    ret_frame->rank = bytes_get_u32(bytes + AT_RANK);
    ret_frame->code = bytes_get_u32(bytes + AT_CODE);
    ret_frame->data_bytes = bytes_get_u32(bytes + AT_DATA);
    ret_frame->agreement.differs = type == WIRE_CALL && bytes[AT_DIFFERS] != 0;
    mesh_wire_record_decode(bytes + WIRE_HEAD_BYTES, &ret_frame->agreement.first);
    return bytes_get_u32(bytes + AT_MAGIC) == FRAME_MAGIC && type >= WIRE_CALL &&
           type <= WIRE_GOODBYE;
}
