/* SPDX-License-Identifier: Apache-2.0
 * A channel: its options, its connections of which only the newest takes calls, and the blocking
 * call. The daemons and the client library call it. */
#include "common/rpc/channel.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/rpc/address.h"
#include "common/rpc/arguments.h"
#include "common/rpc/channel_state.h"
#include "common/rpc/tls_state.h"

#include <stdio.h>

#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>

#define MESSAGE_BYTES_MAX    (4 * 1024 * 1024)
#define METADATA_BYTES_MAX   (16 * 1024)
#define SEND_QUEUE_BYTES_MAX (4 * 1024 * 1024)

static struct rpc_connection *new_connection(struct rpc_channel *channel)
{
    /* With the scheme an address is taken as it is, without a resolver. */
    char target[RPC_ADDRESS_TEXT_BYTES + sizeof "dns:///"];
    const struct rpc_address *address = &channel->address;
    const char *scheme = "";
    if (address->is_name) {
        scheme = "dns:///";
    } else if (!address->is_unix) {
        scheme = address->socket_address.ss_family == AF_INET6 ? "ipv6:" : "ipv4:";
    }
    snprintf(target, sizeof target, "%s%s", scheme, address->host_port);
    grpc_channel_credentials *credentials = channel->tls != NULL
                                                ? rpc_tls_channel_credentials(channel->tls)
                                                : grpc_insecure_credentials_create();
    struct rpc_connection *connection = gpr_zalloc(sizeof *connection);
    *connection = (struct rpc_connection){
        .grpc = grpc_channel_create(target, credentials, &channel->arguments.args),
        .generation = channel->tls != NULL ? rpc_tls_generation(channel->tls) : 0,
        .users = 1};
    grpc_channel_credentials_release(credentials);
    return connection;
}

void rpc_connection_unref(struct rpc_connection *connection)
{
    if (--connection->users == 0) {
        grpc_channel_destroy(connection->grpc);
        gpr_free(connection);
    }
}

struct rpc_connection *rpc_channel_connection(struct rpc_channel *channel)
{
    if (channel->tls != NULL &&
        channel->connection->generation != rpc_tls_generation(channel->tls)) {
        rpc_connection_unref(channel->connection);
        channel->connection = new_connection(channel);
    }
    channel->connection->users++;
    return channel->connection;
}

cadre_status rpc_channel_open(struct rpc_loop *loop, const char *address_text,
    const struct rpc_channel_options *options, struct rpc_channel **ret_channel,
    struct cadre_error *error)
{
    static const struct rpc_channel_options defaults;
    struct rpc_address address;
    *ret_channel = NULL;
    options = options != NULL ? options : &defaults;
    CADRE_TRY(
        rpc_address_parse(address_text, RPC_ADDRESS_DIAL, options->tls != NULL, &address, error));
    if (!address.is_unix && address.port == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "address %s: a client needs a port", address_text);
    }
    struct rpc_channel *channel = gpr_zalloc(sizeof *channel);
    channel->loop = loop;
    channel->address = address;
    channel->tls = address.is_unix ? NULL : options->tls;
    channel->foreign = options->foreign;
    rpc_tls_ref(channel->tls);
    channel->message_bytes_max =
        options->message_bytes_max != 0 ? options->message_bytes_max : MESSAGE_BYTES_MAX;
    channel->send_queue_bytes_max =
        options->send_queue_bytes_max != 0 ? options->send_queue_bytes_max : SEND_QUEUE_BYTES_MAX;
    rpc_arguments_client(&channel->arguments, &options->keepalive, channel->message_bytes_max,
        options->metadata_bytes_max != 0 ? options->metadata_bytes_max : METADATA_BYTES_MAX,
        options->foreign == NULL);
    if (channel->tls != NULL && channel->foreign != NULL && address.is_localhost) {
        snprintf(channel->authority, sizeof channel->authority, "localhost:%d", address.port);
        rpc_arguments_add_authority(&channel->arguments, channel->authority);
    }
    channel->connection = new_connection(channel);
    rpc_loop_count(loop, 1, 1);
    *ret_channel = channel;
    return CADRE_OK;
}

void rpc_channel_call_freed(struct rpc_channel *channel)
{
    if (channel->closing && channel->calls == NULL) {
        rpc_loop_count(channel->loop, 0, -1);
        rpc_tls_unref(channel->tls);
        gpr_free(channel);
    }
}

void rpc_channel_abort_calls(struct rpc_channel *channel, cadre_status status, const char *text)
{
    for (struct rpc_client_call *call = channel->calls; call != NULL;
         call = rpc_client_call_next(call)) {
        rpc_call_abort(rpc_client_call_base(call), status, text);
    }
}

void rpc_channel_close(struct rpc_channel *channel)
{
    if (channel == NULL) {
        return;
    }
    CADRE_ASSERT(!channel->closing);
    channel->closing = true;
    rpc_channel_abort_calls(channel, CADRE_CANCELLED, "the channel was closed");
    rpc_channel_diagnose_stop(channel);
    rpc_channel_connect_stop(channel);
    rpc_connection_unref(channel->connection);
    channel->connection = NULL;
    rpc_loop_count(channel->loop, -1, 0);
    rpc_channel_call_freed(channel);
}

/* ---- blocking ---- */

struct blocking {
    rpc_answer_fn *on_answer;
    void *user;
    bool done;
    cadre_status status;
    struct cadre_error *error;
};

static void blocking_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct blocking *blocking = user;
    (void)call;
    if (blocking->on_answer != NULL) {
        blocking->on_answer(data, length, blocking->user);
    }
}

static void blocking_status(
    struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct blocking *blocking = user;
    (void)call;
    blocking->done = true;
    blocking->status = status;
    if (status != CADRE_OK) {
        cadre_error_set(blocking->error, status, "%s", text);
    }
}

cadre_status rpc_channel_call_blocking(struct rpc_channel *channel,
    const struct rpc_call_options *options, const struct rpc_buffer *request,
    rpc_answer_fn *on_answer, void *user, struct cadre_error *error)
{
    static const struct rpc_client_ops ops = {
        .on_message = blocking_message,
        .on_status = blocking_status,
    };
    CADRE_ASSERT(!options->client_streams && options->ops == NULL);
    struct blocking blocking = {.on_answer = on_answer, .user = user, .error = error};
    struct rpc_call_options own = *options;
    own.ops = &ops;
    own.user = &blocking;
    struct rpc_call *call = NULL;
    CADRE_TRY(rpc_channel_call(channel, &own, &call, error));
    cadre_status status = rpc_call_send_buffer(call, request, error);
    CADRE_ASSERT(status == CADRE_OK);
    struct rpc_loop *loop = channel->loop;
    if (rpc_loop_run_until(loop, &blocking.done, CADRE_TIME_NEVER) != CADRE_OK) {
        /* The loop was stopped: the call is cancelled, because it points to memory on this
         * stack. */
        rpc_call_cancel(call);
        while (!blocking.done) {
            rpc_loop_run_until(loop, &blocking.done, CADRE_TIME_NEVER);
        }
        rpc_loop_stop(loop); /* for the run that this one took it from */
    }
    return blocking.status;
}
