/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/ps/link/frame.h"

#include "worker/library/mesh/bytes.h"

enum { AT_KIND = 0, AT_CODE = 4, AT_ID = 8, AT_BYTES = 16, AT_ARGS = 24, ARG_COUNT = 5 };
_Static_assert(AT_ARGS + ARG_COUNT * 8 == FRAME_BYTES, "no gap");

void frame_write(const struct frame *frame, uint8_t ret_bytes[FRAME_BYTES])
{
    bytes_put_u32(ret_bytes + AT_KIND, frame->kind);
    bytes_put_u32(ret_bytes + AT_CODE, frame->code);
    bytes_put_u64(ret_bytes + AT_ID, frame->id);
    bytes_put_u64(ret_bytes + AT_BYTES, frame->bytes);
    for (size_t i = 0; i < ARG_COUNT; i++) {
        bytes_put_u64(ret_bytes + AT_ARGS + 8 * i, frame->args[i]);
    }
}

void frame_read(const uint8_t bytes[FRAME_BYTES], struct frame *ret_frame)
{
    ret_frame->kind = bytes_get_u32(bytes + AT_KIND);
    ret_frame->code = bytes_get_u32(bytes + AT_CODE);
    ret_frame->id = bytes_get_u64(bytes + AT_ID);
    ret_frame->bytes = bytes_get_u64(bytes + AT_BYTES);
    for (size_t i = 0; i < ARG_COUNT; i++) {
        ret_frame->args[i] = bytes_get_u64(bytes + AT_ARGS + 8 * i);
    }
}
