/* SPDX-License-Identifier: Apache-2.0
 * Frames as bytes, and calls in words. */
#include "worker/mesh/frame.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worker/mesh/bytes.h"

#define FRAME_MAGIC UINT32_C(0x46524443) /* "CDRF" */

enum {
    AT_MAGIC = 0,
    AT_TYPE = 4,
    AT_KIND = 5,
    AT_OP = 6,
    AT_DTYPE = 7,
    AT_GENERATION = 8,
    AT_NONCE = 16,
    AT_SEQUENCE = 24,
    AT_RANK = 32,
    AT_ROOT = 36,
    AT_COUNT = 40,
    AT_BYTES = 48,
    AT_LAYOUT = 56,
    AT_INLINE = 64,
    AT_CODE = 68,
    AT_KEY = 72
};
_Static_assert(AT_KEY + 8 == FRAME_BYTES, "no gap");

void mesh_frame_encode(const struct frame *frame, uint8_t ret_bytes[FRAME_BYTES])
{
    bytes_put_u32(ret_bytes + AT_MAGIC, FRAME_MAGIC);
    ret_bytes[AT_TYPE] = (uint8_t)frame->type;
    ret_bytes[AT_KIND] = frame->shape.kind;
    ret_bytes[AT_OP] = frame->shape.op;
    ret_bytes[AT_DTYPE] = frame->shape.dtype;
    bytes_put_u64(ret_bytes + AT_GENERATION, frame->generation);
    bytes_put_u64(ret_bytes + AT_NONCE, frame->nonce);
    bytes_put_u64(ret_bytes + AT_SEQUENCE, frame->sequence);
    bytes_put_u32(ret_bytes + AT_RANK, frame->rank);
    bytes_put_u32(ret_bytes + AT_ROOT, frame->shape.root);
    bytes_put_u64(ret_bytes + AT_COUNT, frame->shape.count);
    bytes_put_u64(ret_bytes + AT_BYTES, frame->shape.bytes);
    bytes_put_u64(ret_bytes + AT_LAYOUT, frame->shape.layout);
    bytes_put_u32(ret_bytes + AT_INLINE, frame->inline_bytes);
    bytes_put_u32(ret_bytes + AT_CODE, frame->code);
    bytes_put_u64(ret_bytes + AT_KEY, frame->shape.key);
}

bool mesh_frame_decode(const uint8_t bytes[FRAME_BYTES], struct frame *ret_frame)
{
    uint8_t type = bytes[AT_TYPE];
    *ret_frame = (struct frame){
        .type = (enum frame_type)type,
        .generation = bytes_get_u64(bytes + AT_GENERATION),
        .nonce = bytes_get_u64(bytes + AT_NONCE),
        .sequence = bytes_get_u64(bytes + AT_SEQUENCE),
        .rank = bytes_get_u32(bytes + AT_RANK),
        .code = bytes_get_u32(bytes + AT_CODE),
        .inline_bytes = bytes_get_u32(bytes + AT_INLINE),
        .shape =
            {
                .kind = bytes[AT_KIND],
                .op = bytes[AT_OP],
                .dtype = bytes[AT_DTYPE],
                .root = bytes_get_u32(bytes + AT_ROOT),
                .count = bytes_get_u64(bytes + AT_COUNT),
                .bytes = bytes_get_u64(bytes + AT_BYTES),
                .layout = bytes_get_u64(bytes + AT_LAYOUT),
                .key = bytes_get_u64(bytes + AT_KEY),
            },
    };
    return bytes_get_u32(bytes + AT_MAGIC) == FRAME_MAGIC && type >= FRAME_CALL &&
           type <= FRAME_FAULT;
}

bool mesh_call_shape_equal(const struct call_shape *a, const struct call_shape *b)
{
    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->root == b->root &&
           a->count == b->count && a->bytes == b->bytes && a->layout == b->layout &&
           a->key == b->key;
}

void mesh_call_shape_describe(const struct call_shape *shape, char *ret_text, size_t size)
{
    const char *kind = mesh_kind_name(shape->kind);
    const char *dtype =
        shape->dtype == FRAME_DTYPE_MIXED ? "mixed types" : mesh_dtype_name(shape->dtype);
    switch (shape->kind) {
    case MESH_ALL_REDUCE:
    case MESH_REDUCE_SCATTER:
        snprintf(ret_text, size, "%s(%s, %s, %" PRIu64 " buffers, %" PRIu64 " bytes)", kind,
            mesh_op_name(shape->op), dtype, shape->count, shape->bytes);
        break;
    case MESH_BROADCAST:
        snprintf(ret_text, size,
            "%s(from replica %" PRIu32 ", %s, %" PRIu64 " buffers, %" PRIu64 " bytes)", kind,
            shape->root, dtype, shape->count, shape->bytes);
        break;
    default:
        snprintf(ret_text, size, "%s", kind);
        break;
    }
}

void mesh_call_shape_compare(const char *who_a, const struct call_shape *a, const char *who_b,
    const struct call_shape *b, char *ret_text, size_t size)
{
    char text_a[112];
    char text_b[112];
    mesh_call_shape_describe(a, text_a, sizeof text_a);
    mesh_call_shape_describe(b, text_b, sizeof text_b);
    const char *end = strcmp(text_a, text_b) == 0 ? " of other sizes or types" : "";
    snprintf(ret_text, size, "%s called %s, but %s called %s%s", who_a, text_a, who_b, text_b, end);
}
