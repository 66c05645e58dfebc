/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Login: where the pages are, and a token for them with the caller's rights where they need
 * one. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/methods.h"

#define HTTP_ADDRESS_BYTES 256

/* The address of --http with the port that is served; "" without one. */
static void describe_http(const struct daemon *daemon, char ret_address[HTTP_ADDRESS_BYTES])
{
    const char *address = daemon->http != NULL ? daemon->options.http : "";
    const char *colon = strrchr(address, ':');
    ret_address[0] = '\0';
    if (colon != NULL) {
        snprintf(ret_address, HTTP_ADDRESS_BYTES, "%.*s:%d", (int)(colon - address), address,
            daemon->http_port);
    }
}

/* As common/http decides: others have TLS, or are not served. */
static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0 ||
           strncmp(address, "localhost:", 10) == 0;
}

/* How long the certificate lasts that the client showed; UINT64_MAX: it showed none. */
static uint64_t certificate_lasts_s(const struct rpc_call *call)
{
    uint64_t ends_s = rpc_call_certificate_ends_s(call);
    uint64_t now_s = clock_wall_us() / CADRE_US_PER_S; /* certificates have Unix times */
    if (ends_s == UINT64_MAX) {
        return UINT64_MAX;
    }
    return ends_s > now_s ? ends_s - now_s : 0;
}

/* Without a page, or where that asks for a certificate or for nothing, a token would be a secret of
 * no use. */
static bool wants_token(const struct daemon *daemon, const struct login_response *response)
{
    return response->http[0] != '\0' && !response->http_tls && !daemon_is_open_to_host(daemon);
}

static void login_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    struct daemon *daemon = user;
    const struct tls_identity *identity = rpc_call_identity(call);
    struct cadre_error error = {0};
    char token[LOGIN_TOKEN_BYTES];
    char http[HTTP_ADDRESS_BYTES];
    uint64_t lasts_s = 0;
    describe_http(daemon, http);
    if (login_token_make(&daemon->login_key, identity, clock_boot_us() / CADRE_US_PER_S,
            certificate_lasts_s(call), token, &lasts_s, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    struct login_response response = {.token = "",
        .role = tls_role_name(identity->role),
        .name = identity->name,
        .http = http,
        .http_tls = http[0] != '\0' && !is_loopback(http)};
    if (wants_token(daemon, &response)) {
        response.token = token;
        response.expires_us = clock_wall_us() + lasts_s * CADRE_US_PER_S;
    }
    DAEMON_SEND(daemon, call, login_response, &response);
    rpc_call_finish(call, CADRE_OK, "");
}

const struct rpc_server_ops login_ops = {.on_message = login_message};
