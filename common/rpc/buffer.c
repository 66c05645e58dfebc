/* SPDX-License-Identifier: Apache-2.0
 * An rpc_buffer is a gRPC slice whose type stays out of the public headers. */
#include "common/rpc/call.h"

#include "common/pure/assert.h"
#include "common/rpc/call_state.h"

#include <string.h>

#include <grpc/slice.h>

_Static_assert(sizeof(grpc_slice) <= sizeof((struct rpc_buffer){0}.reserved), "a slice must fit");

static grpc_slice slice_of(const struct rpc_buffer *buffer)
{
    grpc_slice slice;
    memcpy(&slice, buffer->reserved, sizeof slice);
    return slice;
}

void rpc_buffer_alloc(struct rpc_buffer *ret_buffer, size_t length)
{
    /* The large kind is always on the heap: a small slice would hold its bytes in itself and move
     * with it. */
    grpc_slice slice = grpc_slice_malloc_large(length);
    *ret_buffer = (struct rpc_buffer){.data = GRPC_SLICE_START_PTR(slice), .length = length};
    memcpy(ret_buffer->reserved, &slice, sizeof slice);
}

void rpc_buffer_commit(struct rpc_buffer *buffer, size_t length)
{
    CADRE_ASSERT(length <= buffer->length);
    grpc_slice slice = slice_of(buffer);
    GRPC_SLICE_SET_LENGTH(slice, length);
    memcpy(buffer->reserved, &slice, sizeof slice);
    buffer->length = length;
}

void rpc_buffer_free(struct rpc_buffer *buffer)
{
    if (buffer->data != NULL) {
        grpc_slice_unref(slice_of(buffer));
        *buffer = (struct rpc_buffer){0};
    }
}

grpc_byte_buffer *rpc_buffer_message(const struct rpc_buffer *buffer)
{
    grpc_slice slice = slice_of(buffer);
    return grpc_raw_byte_buffer_create(&slice, 1);
}
