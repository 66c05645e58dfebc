/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: the channel as its calls see it. */
#ifndef CADRE_RPC_CHANNEL_STATE_H
#define CADRE_RPC_CHANNEL_STATE_H

#include "common/rpc/address.h"
#include "common/rpc/arguments.h"
#include "common/rpc/call_state.h"
#include "common/rpc/channel.h"

struct rpc_client_call;
struct rpc_connect_watch;
struct rpc_diagnosis_request;

/* gRPC's channel, made with the files that were in use then. It is freed with its last call once
 * there is a newer one. */
struct rpc_connection {
    grpc_channel *grpc;
    uint64_t generation; /* of the files */
    unsigned users;      /* calls, and the channel itself while it is the newest */
};

struct rpc_channel {
    struct rpc_loop *loop;
    struct rpc_connection *connection; /* for new calls */
    struct rpc_address address;
    char authority[RPC_ADDRESS_TEXT_BYTES]; /* of a foreign server at "localhost" */
    struct rpc_arguments arguments;
    struct rpc_tls *tls; /* NULL: plain */
    const char *foreign; /* as in the options */
    /* Why it does not connect, and when that was found out; 0: never yet. */
    struct rpc_diagnosis_request *diagnosis_request; /* being found out */
    uint64_t diagnosed_us;
    uint64_t diagnosed_generation;
    bool diagnosis_found;
    struct cadre_error diagnosis;
    uint64_t connect_wait_us;                /* 0: no bound */
    struct rpc_connect_watch *connect_watch; /* while a call waits for a connection; or NULL */
    size_t message_bytes_max, send_queue_bytes_max;
    struct rpc_client_call *calls; /* all that are not freed yet */
    bool closing;
};

/* NONE: the call reports gRPC's own text. FOUND: channel->diagnosis has the reason. PENDING:
 * rpc_client_call_diagnosed() will be called for each call of the channel, from the loop. */
enum rpc_diagnosis { RPC_DIAGNOSIS_NONE, RPC_DIAGNOSIS_FOUND, RPC_DIAGNOSIS_PENDING };
/* Starts the search for the reason why `connection` failed, or returns a recent result. A call
 * whose deadline could pass meanwhile does not wait for it: NONE, and calls that follow get the
 * reason. */
enum rpc_diagnosis rpc_channel_diagnose(
    struct rpc_channel *channel, struct rpc_connection *connection, uint64_t deadline_us);

/* The channel is being closed: calls that wait end without a diagnosis. */
void rpc_channel_diagnose_stop(struct rpc_channel *channel);

/* The diagnosis is complete: a call that waits for it reports its status; others do nothing. */
void rpc_client_call_diagnosed(struct rpc_client_call *call);
/* True while the call's status waits for a diagnosis. */
bool rpc_client_call_awaits_diagnosis(const struct rpc_client_call *call);

/* Bounds how long a new call on `connection` waits for it, as the channel's connect_wait_us says.
 * Returns whether it waits. */
bool rpc_channel_connect_wait(struct rpc_channel *channel, struct rpc_connection *connection);

/* The channel is being closed: nothing is bounded any more. */
void rpc_channel_connect_stop(struct rpc_channel *channel);

/* The connection is there: the call, if it is one of its calls, waits for it no more. */
void rpc_client_call_connected(
    struct rpc_client_call *call, const struct rpc_connection *connection);
/* Ends the call with UNAVAILABLE if it still waits for the connection. */
void rpc_client_call_give_up(struct rpc_client_call *call, const struct rpc_connection *connection);

/* The next of the channel's calls; NULL behind the last. */
struct rpc_client_call *rpc_client_call_next(struct rpc_client_call *call);
/* The part that both ends share. */
struct rpc_call *rpc_client_call_base(struct rpc_client_call *call);

/* The connection for a new call, counted; given back by rpc_connection_unref(). */
struct rpc_connection *rpc_channel_connection(struct rpc_channel *channel);
/* Drops one user of the connection; the last one frees it. */
void rpc_connection_unref(struct rpc_connection *connection);

/* To be called when a call's memory was freed. */
void rpc_channel_call_freed(struct rpc_channel *channel);

#endif
