/* SPDX-License-Identifier: Apache-2.0
 * How long a call waits for its connection, where the channel bounds that: a server that does not
 * answer at all must not hold a caller that could ask another one. The connection itself goes on,
 * because a server that is overloaded takes it later. */
#include <grpc/support/alloc.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/channel_state.h"

/* One bound for all calls that wait now. gRPC reports each change of the connection's state, and
 * the deadline, through the queue: no timer is needed, so a program that polls sees it, too. */
struct rpc_connect_watch {
    struct rpc_tag tag;
    struct rpc_loop *loop;
    struct rpc_channel *channel; /* NULL: it was closed */
    struct rpc_connection *connection;
    grpc_connectivity_state state; /* as seen last */
    uint64_t deadline_us;
};

static void watch_state(struct rpc_connect_watch *watch)
{
    gpr_timespec deadline = gpr_time_from_micros((int64_t)watch->deadline_us, GPR_CLOCK_MONOTONIC);
    RPC_TAG_RELEASE(&watch->tag);
    grpc_channel_watch_connectivity_state(
        watch->connection->grpc, watch->state, deadline, rpc_loop_queue(watch->loop), &watch->tag);
}

static void free_watch(struct rpc_connect_watch *watch)
{
    rpc_loop_count(watch->loop, 0, -1);
    gpr_free(watch);
}

static void end_watch(struct rpc_connect_watch *watch, bool connected)
{
    struct rpc_channel *channel = watch->channel;
    struct rpc_connection *connection = watch->connection;
    struct rpc_client_call *next = NULL;
    channel->connect_watch = NULL;
    for (struct rpc_client_call *call = channel->calls; call != NULL; call = next) {
        next = rpc_client_call_next(call);
        if (connected) {
            rpc_client_call_connected(call, connection);
        } else {
            rpc_client_call_give_up(call, connection);
        }
    }
    rpc_connection_unref(connection);
    free_watch(watch);
}

static void state_changed(void *owner, bool ok)
{
    struct rpc_connect_watch *watch = owner;
    if (watch->channel == NULL) {
        free_watch(watch);
        return;
    }
    watch->state = grpc_channel_check_connectivity_state(watch->connection->grpc, 0);
    if (watch->state == GRPC_CHANNEL_READY || !ok) {
        end_watch(watch, watch->state == GRPC_CHANNEL_READY);
        return;
    }
    watch_state(watch); /* calls that fail with the connection end by themselves */
}

void rpc_channel_set_connect_wait(struct rpc_channel *channel, uint64_t connect_wait_us)
{
    channel->connect_wait_us = connect_wait_us;
}

bool rpc_channel_connect_wait(struct rpc_channel *channel, struct rpc_connection *connection)
{
    if (channel->connect_wait_us == 0) {
        return false;
    }
    grpc_connectivity_state state = grpc_channel_check_connectivity_state(connection->grpc, 0);
    if (state == GRPC_CHANNEL_READY) {
        return false;
    }
    if (channel->connect_watch != NULL) {
        return channel->connect_watch->connection == connection;
    }
    struct rpc_connect_watch *watch = gpr_zalloc(sizeof *watch);
    *watch = (struct rpc_connect_watch){.loop = channel->loop,
        .channel = channel,
        .connection = connection,
        .state = state,
        .deadline_us = clock_monotonic_us() + channel->connect_wait_us};
    watch->tag = (struct rpc_tag){.complete = state_changed, .owner = watch};
    connection->users++;
    rpc_loop_count(channel->loop, 0, 1);
    channel->connect_watch = watch;
    watch_state(watch);
    return true;
}

void rpc_channel_connect_stop(struct rpc_channel *channel)
{
    struct rpc_connect_watch *watch = channel->connect_watch;
    if (watch != NULL) {
        channel->connect_watch = NULL;
        watch->channel = NULL;
        rpc_connection_unref(watch->connection); /* its end is a change of state */
    }
}
