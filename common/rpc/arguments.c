/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/arguments.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

#include <limits.h>

#include <grpc/impl/codegen/compression_types.h>

/* How long one attempt to connect may take, at either end; gRPC has the client's as the minimal
 * backoff. A server shares one thread among all handshakes under way, so those of workers that
 * connect at once all end late, after about 3 ms of its CPU each: 30 s for ten thousand. Too
 * short a time ends them all, and all connect again. The client's keepalive begins with its own
 * half of the handshake, see there. A host that does not answer at all is given up by the
 * keepalive's timeout: gRPC sets it as TCP_USER_TIMEOUT before it connects. */
#define HANDSHAKE_TIMEOUT_MS  120000
#define CONNECT_TIMEOUT_MS    120000
#define BACKOFF_INITIAL_MS    100
#define BACKOFF_MAX_MS        500
#define WINDOW_BYTES          (1024 * 1024)
#define FRAMING_BYTES         1024
#define COMPRESSION_NONE_ONLY 1

static int arguments_clip(uint64_t value)
{
    return value > INT_MAX ? INT_MAX : (int)value;
}

/* gRPC takes the keys as non-const strings and does not write to them. */
static void arguments_add(struct rpc_arguments *arguments, const char *key, int value)
{
    CADRE_ASSERT(arguments->args.num_args < RPC_ARGUMENTS_MAX);
    arguments->list[arguments->args.num_args++] = (grpc_arg){
        .type = GRPC_ARG_INTEGER,
        .key = (char *)(uintptr_t)key,
        .value.integer = value,
    };
}

static void add_keepalive(
    struct rpc_arguments *arguments, const struct rpc_keepalive *given, struct rpc_keepalive usual)
{
    uint64_t idle_us = given->idle_us != 0 ? given->idle_us : usual.idle_us;
    uint64_t timeout_us = given->timeout_us != 0 ? given->timeout_us : usual.timeout_us;
    arguments_add(arguments, GRPC_ARG_KEEPALIVE_TIME_MS, arguments_clip(idle_us / CADRE_US_PER_MS));
    arguments_add(
        arguments, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, arguments_clip(timeout_us / CADRE_US_PER_MS));
}

static void add_common(
    struct rpc_arguments *arguments, size_t message_bytes_max, size_t metadata_bytes_max)
{
    arguments->args = (grpc_channel_args){.args = arguments->list};
    arguments_add(arguments, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments_add(arguments, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
        arguments_clip((uint64_t)message_bytes_max + FRAMING_BYTES));
    arguments_add(arguments, GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
    arguments_add(arguments, GRPC_ARG_MAX_METADATA_SIZE, arguments_clip(metadata_bytes_max));
    /* A compressed message can be a thousand times its size on the wire: none is accepted. */
    arguments_add(
        arguments, GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, COMPRESSION_NONE_ONLY);
    arguments_add(arguments, GRPC_ARG_ENABLE_CHANNELZ, 0);
}

void rpc_arguments_server(struct rpc_arguments *ret_arguments,
    const struct rpc_keepalive *keepalive, size_t message_bytes_max, size_t metadata_bytes_max,
    size_t streams_max)
{
    add_common(ret_arguments, message_bytes_max, metadata_bytes_max);
    add_keepalive(ret_arguments, keepalive,
        (struct rpc_keepalive){RPC_KEEPALIVE_SERVER_IDLE_US, RPC_KEEPALIVE_SERVER_TIMEOUT_US});
    arguments_add(ret_arguments, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    /* Any client may ping as often as it likes, so that clients with other libraries are not
     * cut. */
    arguments_add(ret_arguments, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10);
    arguments_add(ret_arguments, GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    arguments_add(ret_arguments, GRPC_ARG_MAX_CONCURRENT_STREAMS, arguments_clip(streams_max));
    arguments_add(ret_arguments, GRPC_ARG_ALLOW_REUSEPORT,
        0); /* two servers on one port must not both start */
    /* What a client may send of a call before it is read. gRPC would widen it by what it
     * measures, for a client that sends much, to gigabytes. */
    arguments_add(ret_arguments, GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, WINDOW_BYTES);
    arguments_add(ret_arguments, GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments_add(ret_arguments, GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, HANDSHAKE_TIMEOUT_MS);
}

void rpc_arguments_client(struct rpc_arguments *ret_arguments,
    const struct rpc_keepalive *keepalive, size_t message_bytes_max, size_t metadata_bytes_max,
    bool pings_idle)
{
    add_common(ret_arguments, message_bytes_max, metadata_bytes_max);
    add_keepalive(ret_arguments, keepalive,
        (struct rpc_keepalive){RPC_KEEPALIVE_IDLE_US, RPC_KEEPALIVE_TIMEOUT_US});
    arguments_add(ret_arguments, GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, pings_idle ? 1 : 0);
    arguments_add(ret_arguments, GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_INITIAL_MS);
    arguments_add(ret_arguments, GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_TIMEOUT_MS);
    arguments_add(ret_arguments, GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MAX_MS);
    arguments_add(ret_arguments, GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments_add(
        ret_arguments, GRPC_ARG_ENABLE_RETRIES, 0); /* the program decides what is sent twice */
    arguments_add(ret_arguments, GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
    arguments_add(
        ret_arguments, GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1); /* a connection per channel */
}

void rpc_arguments_add_authority(struct rpc_arguments *arguments, char *authority)
{
    CADRE_ASSERT(arguments->args.num_args < RPC_ARGUMENTS_MAX);
    arguments->list[arguments->args.num_args++] = (grpc_arg){
        .type = GRPC_ARG_STRING,
        .key = (char *)(uintptr_t)GRPC_ARG_DEFAULT_AUTHORITY,
        .value.string = authority,
    };
}
