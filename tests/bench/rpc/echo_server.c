/* SPDX-License-Identifier: Apache-2.0 */
#include "echo_server.h"

#include "echo_client.h"

#include "common/rpc/server.h"

#include <stdio.h>
#include <stdlib.h>

#define REQUEST_BYTES_MAX 4096

static void echo_once(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    rpc_call_send(call, data, length, NULL);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void echo_on(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    rpc_call_send(call, data, length, NULL);
}

int echo_server_open(struct rpc_loop *loop, const char *unix_address, struct rpc_tls *tls)
{
    static const struct rpc_server_ops unary = {.on_message = echo_once};
    static const struct rpc_server_ops chat = {.on_message = echo_on};
    const struct rpc_method methods[] = {
        {.path = ECHO_UNARY, .request_bytes_max = REQUEST_BYTES_MAX, .ops = &unary},
        {.path = ECHO_CHAT,
            .client_streams = true,
            .server_streams = true,
            .request_bytes_max = REQUEST_BYTES_MAX,
            .ops = &chat},
    };
    const struct rpc_server_options options = {.methods = methods, .method_count = 2, .tls = tls};
    struct cadre_error error = {0};
    struct rpc_server *server;
    int port = 0;
    if (rpc_server_open(loop, &options, &server, &error) != CADRE_OK ||
        rpc_server_listen(server, "127.0.0.1:0", NULL, &port, &error) != CADRE_OK ||
        (unix_address != NULL &&
            rpc_server_listen(server, unix_address, NULL, NULL, &error) != CADRE_OK)) {
        fprintf(stderr, "echo server: %s\n", error.text);
        exit(1);
    }
    rpc_server_start(server);
    return port;
}
