/* SPDX-License-Identifier: Apache-2.0
 * The lengths of the messages that one HTTP/2 connection announces, read from its bytes before
 * gRPC reads them.
 * gRPC's C core compares a message's length with its limit after it has received the whole
 * message, and keeps the flow control's window open until then. So a message is refused here, at
 * the first byte of its length that is too large: the length is changed to RPC_REFUSAL_BYTES,
 * and the beginning of the content to a refusal, which the server's end of the call recognizes.
 * The rest stays as it is: gRPC reads no more of that call, and its window stays shut.
 * Nothing here does I/O, and no function is called by two threads at once for objects of one
 * caller. */
#ifndef CADRE_RPC_HTTP2_FILTER_H
#define CADRE_RPC_HTTP2_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a caller may have announced and not sent completely, over all its connections: with the
 * memory of its calls less than 16 MiB. */
#define RPC_CALLER_BYTES_MAX ((size_t)6 * 1024 * 1024)

#define RPC_CALLER_FRAGMENTS_MAX 1024

#define RPC_REFUSAL_BYTES 16

enum rpc_refusal {
    RPC_REFUSAL_NONE,
    RPC_REFUSAL_TOO_LONG, /* longer than any method takes */
    RPC_REFUSAL_TOO_MANY, /* with the others of this caller, more than RPC_CALLER_BYTES_MAX */
};

/* What the connections of one caller share. */
struct rpc_caller {
    size_t message_bytes_max; /* of one message */
    size_t announced_bytes;   /* of messages that have begun and not ended */
    size_t fragments; /* small pieces in which these came: each keeps the 8 KiB that it came with */
};

struct rpc_http2_filter;

/* A connection of which nothing was read; NULL without memory. `caller` outlives it. */
struct rpc_http2_filter *rpc_http2_filter_open(struct rpc_caller *caller);

/* Takes back what the connection's unfinished messages announced. NULL is fine. */
void rpc_http2_filter_close(struct rpc_http2_filter *filter);

/* What the client sent, in order, before gRPC gets it; changes it where a message is refused.
 * False: the connection must end, because it has more unfinished messages than a client may have
 * calls, or sends them in too small pieces. */
bool rpc_http2_filter_received(struct rpc_http2_filter *filter, uint8_t *bytes, size_t count);

/* What gRPC sent to the client, in order: a call that the server ended announces nothing more. */
void rpc_http2_filter_sent(struct rpc_http2_filter *filter, const uint8_t *bytes, size_t count);

/* False once its bytes were found not to be HTTP/2 (but TLS, say): then they are left alone. */
bool rpc_http2_filter_is_active(const struct rpc_http2_filter *filter);

/* Whether a message is the refusal of a longer one, and that one's length. */
enum rpc_refusal rpc_refusal_read(const void *data, size_t length, uint64_t *ret_bytes);

#endif
