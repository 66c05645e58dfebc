/* SPDX-License-Identifier: Apache-2.0
 * The client: a channel to one server, which connects and reconnects by itself, and the calls on
 * it. */
#ifndef CADRE_RPC_CHANNEL_H
#define CADRE_RPC_CHANNEL_H

#include "common/rpc/call.h"
#include "common/rpc/loop.h"

struct rpc_channel;
struct rpc_tls;

/* Zero means the default that is named. */
struct rpc_channel_options {
    size_t message_bytes_max;    /* of an answer; 4 MiB. A longer one ends its call with
                                    RESOURCE_EXHAUSTED */
    size_t metadata_bytes_max;   /* per call; 16 KiB */
    size_t send_queue_bytes_max; /* per call; 4 MiB */
    struct rpc_keepalive keepalive;
    struct rpc_tls *tls; /* of TCP addresses; outlives the channel. NULL: loopback only, in plain */
    const char *foreign; /* what the server is when it is not Cadre's: "etcd", a constant; else
                            NULL. Such a server is not pinged while no call is open */
};

/* Makes a channel to "unix:/path", "127.0.0.1:PORT", "localhost:PORT" or "[::1]:PORT". It connects
 * with the first call; a server that is not there yet makes calls wait or fail (see wait_for_ready)
 * and is tried again every half second. INVALID_ARGUMENT for any other address. `options` may be
 * NULL. */
cadre_status rpc_channel_open(struct rpc_loop *loop, const char *address,
    const struct rpc_channel_options *options, struct rpc_channel **ret_channel,
    struct cadre_error *error);

/* From now on a call that begins without a connection, and has none after this time, ends with
 * UNAVAILABLE; the channel goes on connecting, for later calls. At first, and with 0, a call waits
 * as long as connecting lasts. */
void rpc_channel_set_connect_wait(struct rpc_channel *channel, uint64_t connect_wait_us);

/* Ends all open calls with a status other than OK, as rpc_call_abort() does; the channel stays
 * open. */
void rpc_channel_abort_calls(struct rpc_channel *channel, cadre_status status, const char *text);

/* Cancels the open calls; their on_status still comes, from the loop. Do not touch the channel
 * afterwards. NULL is fine. */
void rpc_channel_close(struct rpc_channel *channel);

/* The handlers of a call; each may be NULL. `user` is the call's. */
struct rpc_client_ops {
    /* One message, contiguous; `data` is valid until return. Never NULL, also when empty. */
    void (*on_message)(struct rpc_call *call, const void *data, size_t length, void *user);
    /* The send queue became empty. */
    void (*on_drained)(struct rpc_call *call, void *user);
    /* The end, exactly once and last, behind all messages; the call pointer is not valid after
     * it. `text` is a sentence for people, from the server or (UNAVAILABLE, DEADLINE_EXCEEDED)
     * from the transport; "" with OK. */
    void (*on_status)(struct rpc_call *call, cadre_status status, const char *text, void *user);
};

struct rpc_metadata {
    const char *key; /* lower case */
    const char *value;
};

struct rpc_call_options {
    const char *path; /* "/package.Service/Method" */
    bool client_streams, server_streams;
    bool wait_for_ready; /* wait for the server until the deadline instead of UNAVAILABLE at once */
    uint64_t deadline_us; /* in clock_monotonic_us(); 0 or CADRE_TIME_NEVER for none */
    const struct rpc_metadata *metadata;
    size_t metadata_count;
    const struct rpc_client_ops *ops;
    void *user; /* for the handlers, and rpc_call_user() */
};

/* Starts a call. Its messages follow with rpc_call_send(); a call whose client does not stream
 * half-closes by itself after its one message. INVALID_ARGUMENT for a path or metadata that HTTP
 * cannot carry. */
cadre_status rpc_channel_call(struct rpc_channel *channel, const struct rpc_call_options *options,
    struct rpc_call **ret_call, struct cadre_error *error);

/* Receives the answer of a blocking call; `data` is valid until return. */
typedef void rpc_answer_fn(const void *data, size_t length, void *user);
/* A whole unary call for programs that block: runs the loop until the answer is there and calls
 * on_answer(data, length, user) (may be NULL). Returns the call's status; `error` has its text. */
cadre_status rpc_channel_call_blocking(struct rpc_channel *channel,
    const struct rpc_call_options *options, const struct rpc_buffer *request,
    rpc_answer_fn *on_answer, void *user, struct cadre_error *error);

#endif
