/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: the channel as its calls see it. */
#ifndef CADRE_RPC_CHANNEL_STATE_H
#define CADRE_RPC_CHANNEL_STATE_H

#include "common/rpc/call_state.h"
#include "common/rpc/channel.h"

struct rpc_client_call;

struct rpc_channel {
    struct rpc_loop *loop;
    grpc_channel *grpc;
    size_t message_bytes_max, send_queue_bytes_max;
    struct rpc_client_call *calls; /* all that are not freed yet */
    bool closing;
};

struct rpc_client_call *rpc_client_call_next(struct rpc_client_call *call);
struct rpc_call *rpc_client_call_base(struct rpc_client_call *call);

/* Called when a call's memory is gone. */
void rpc_channel_call_gone(struct rpc_channel *channel);

#endif
