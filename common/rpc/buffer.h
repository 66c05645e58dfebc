/* SPDX-License-Identifier: Apache-2.0
 * The bytes of one message to send, written in place and shared by reference among the calls that
 * send it. */
#ifndef CADRE_RPC_BUFFER_H
#define CADRE_RPC_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct rpc_buffer {
    uint8_t *data; /* `length` bytes for the owner to fill before the first send, and not to touch
                      after it */
    size_t length;
    uint64_t reserved[4]; /* the library's own */
};

/* Room for a message of `length` bytes. Give it back with rpc_buffer_free(), also after sending: a
 * send takes a reference of its own. (Memory that runs out here ends the process, as it does inside
 * gRPC.) */
void rpc_buffer_alloc(struct rpc_buffer *ret_buffer, size_t length);

/* Shortens the message to `length` bytes. */
void rpc_buffer_commit(struct rpc_buffer *buffer, size_t length);

/* Drops the owner's reference. A zeroed buffer, or one freed before, is fine. */
void rpc_buffer_free(struct rpc_buffer *buffer);

#endif
