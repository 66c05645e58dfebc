/* SPDX-License-Identifier: Apache-2.0
 * A call, seen from either end: a stream of messages each way, then one status. Unary is one
 * message each way.
 * No function here calls a handler: handlers are called afterwards, from the loop. Messages sent
 * in one handler leave when it returns. A call pointer is valid until its last handler
 * (on_closed, on_status) returns. */
#ifndef CADRE_RPC_CALL_H
#define CADRE_RPC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* The bytes of one message to send, written in place and shared by reference among the calls that
 * send it. */

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

struct rpc_call;

/* Stores a pointer of the program's with a call; NULL at first. */
void rpc_call_set_user(struct rpc_call *call, void *user);
/* The pointer that rpc_call_set_user() stored. */
void *rpc_call_user(const struct rpc_call *call);

/* The other end as text, "ipv4:127.0.0.1:41234" or "unix:"; for logs only. Valid as long as the
 * call. */
const char *rpc_call_peer(struct rpc_call *call);

/* Queues one message behind those that wait. `buffer` stays the caller's and may go to other
 * calls too. RESOURCE_EXHAUSTED when the queue would hold more bytes than its limit: the reader
 * is too slow, and nothing was queued (one message always fits into an empty queue).
 * FAILED_PRECONDITION after rpc_call_finish(), rpc_call_half_close(), rpc_call_abort(), or the
 * single message of a side that does not stream. CANCELLED when the call has ended already (its
 * last handler follows). OK means accepted, not delivered: where delivery matters, the protocol
 * has an answer. */
cadre_status rpc_call_send_buffer(
    struct rpc_call *call, const struct rpc_buffer *buffer, struct cadre_error *error);

/* The same for bytes that lie elsewhere, with one copy. */
cadre_status rpc_call_send(
    struct rpc_call *call, const void *data, size_t length, struct cadre_error *error);

/* The bytes that were accepted and that the transport has not taken yet. */
size_t rpc_call_queued_bytes(const struct rpc_call *call);

/* Back-pressure on the other end: no on_message until rpc_call_resume(). The end of a paused
 * call is reported too, except that the client's on_status(OK) waits for what is unread. */
void rpc_call_pause(struct rpc_call *call);
/* Ends a pause; reading continues by itself. */
void rpc_call_resume(struct rpc_call *call);

/* Ends the call at once from either end with a status other than OK: what is queued or unread is
 * dropped. The other end gets the status and its text where the connection allows it; this end's
 * last handler comes as for any end. */
void rpc_call_abort(struct rpc_call *call, cadre_status status, const char *text);

/* ---- the server's end ---- */

/* Ends the call with `status` after the messages queued so far; `text` (NULL is "") is one sentence
 * for people, cut at 1 KiB. Nothing is read from here on. Calling it again, or after an abort,
 * changes nothing. */
void rpc_call_finish(struct rpc_call *call, cadre_status status, const char *text);

/* Finishes with the code and text of an error. */
void rpc_call_fail(struct rpc_call *call, const struct cadre_error *error);

#define RPC_TRAILERS_MAX 4

/* What is sent with the status, beside its text, under `key` (lower case): at most RPC_TRAILERS_MAX
 * a call, of different keys, of printable characters. Before rpc_call_finish() or in on_finish;
 * afterwards it changes nothing. */
void rpc_call_set_trailer(struct rpc_call *call, const char *key, const char *value);

/* The last thing a unary method does: one message, then OK. */
void rpc_call_reply(struct rpc_call *call, const struct rpc_buffer *buffer);

/* The value of a metadata key (lower case) that the client sent, not terminated; NULL when there is
 * none. */
const char *rpc_call_metadata(const struct rpc_call *call, const char *key, size_t *ret_length);

/* ---- the client's end ---- */

/* No more messages from here; the answers go on. Calling it again changes nothing. */
void rpc_call_half_close(struct rpc_call *call);

/* The value that the server sent under `key` with the status, not terminated; NULL when there is
 * none. Within on_status, and valid as long. */
const char *rpc_call_trailer(const struct rpc_call *call, const char *key, size_t *ret_length);

/* rpc_call_abort() with CANCELLED. */
void rpc_call_cancel(struct rpc_call *call);

/* After what time a silent peer counts as dead. Both ends are set from here, because pings that
 * one end sends faster than the other allows end the connection. */

/* Of a channel. */
#define RPC_KEEPALIVE_IDLE_US    UINT64_C(2000000)
#define RPC_KEEPALIVE_TIMEOUT_US UINT64_C(5000000)

/* Of a server. Thousands of clients that connect at once keep its one thread busy for many
 * seconds, in which answers to its own pings lie unread: with a shorter time it would cut
 * clients that it has just accepted, and all would connect again, for ever. */
#define RPC_KEEPALIVE_SERVER_IDLE_US    UINT64_C(20000000)
#define RPC_KEEPALIVE_SERVER_TIMEOUT_US UINT64_C(40000000)

/* Of a channel whose stream has heartbeats: a host that vanished does not acknowledge these,
 * which TCP notices within the timeout, whatever the idle time. So the idle time can be as long
 * as a server may take to answer at all. */
#define RPC_KEEPALIVE_HEARTBEATS_IDLE_US UINT64_C(60000000)

/* A peer is given up `idle_us` + `timeout_us` after its last byte, or `timeout_us` after the first
 * byte that its host does not acknowledge (TCP_USER_TIMEOUT). The two together must be longer than
 * the longest legal stall of the peer's loop. Zeros mean the defaults above. */
struct rpc_keepalive {
    uint64_t idle_us;
    uint64_t timeout_us;
};

#endif
