/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/address.h"

#include <stdio.h>
#include <string.h>

#define HOST_SHOWN_BYTES 80

static const char unix_prefix[] = "unix:";

static cadre_status parse_unix(
    const char *path, struct rpc_address *ret_address, struct cadre_error *error)
{
    size_t length = strlen(path);
    if (path[0] != '/') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"unix:%s\": the path of a Unix socket must be absolute", path);
    }
    if (length >= sizeof ret_address->path) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "socket path %.40s...: %zu bytes, and the system takes %zu; choose a shorter folder",
            path, length, sizeof ret_address->path - 1);
    }
    struct sockaddr_un unix_address = {.sun_family = AF_UNIX};
    ret_address->is_unix = true;
    memcpy(ret_address->path, path, length + 1);
    memcpy(unix_address.sun_path, path, length + 1);
    memcpy(&ret_address->socket_address, &unix_address, sizeof unix_address);
    ret_address->socket_address_bytes = sizeof unix_address;
    snprintf(ret_address->host_port, sizeof ret_address->host_port, "unix:%s", path);
    return CADRE_OK;
}

/* Letters, digits, '-' and '.'; the last part has a letter, or it is a malformed address. */
static bool is_name(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *dot = strrchr(host, '.');
    const char *last = dot != NULL ? dot + 1 : host;
    size_t length = strlen(host);
    return length > 0 && host[0] != '-' && host[0] != '.' &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") ==
               length &&
           strpbrk(last, letters) != NULL;
}

static cadre_status check_scope(enum tcp_scope scope, const struct rpc_address *address,
    const char *text, enum rpc_address_use use, bool tls, struct cadre_error *error)
{
    if (scope == TCP_SCOPE_LOOPBACK) {
        return CADRE_OK;
    }
    if (!tls) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\" is not a loopback address: connections between machines need TLS; "
            "give --tls-dir (`cadre pki --help` shows how to make one), or use unix:/path, "
            "127.0.0.1:PORT or [::1]:PORT",
            HOST_SHOWN_BYTES, text);
    }
    if (scope == TCP_SCOPE_NAME && !address->is_name) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": \"%.*s\" is neither an address nor a host's name", HOST_SHOWN_BYTES,
            text, HOST_SHOWN_BYTES, address->host);
    }
    if (use == RPC_ADDRESS_LISTEN && address->is_name) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": a server listens on addresses, not names; 0.0.0.0:%d means all of "
            "this host's",
            HOST_SHOWN_BYTES, text, address->port);
    }
    if (use == RPC_ADDRESS_DIAL && scope == TCP_SCOPE_ANY) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": a server can listen on all addresses, but a client needs the "
            "address of one host",
            HOST_SHOWN_BYTES, text);
    }
    return CADRE_OK;
}

cadre_status rpc_address_parse(const char *text, enum rpc_address_use use, bool tls,
    struct rpc_address *ret_address, struct cadre_error *error)
{
    *ret_address = (struct rpc_address){0};
    if (strncmp(text, unix_prefix, sizeof unix_prefix - 1) == 0) {
        return parse_unix(text + sizeof unix_prefix - 1, ret_address, error);
    }
    struct tcp_address tcp;
    if (!tcp_address_parse(text, &tcp)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": expected unix:/path, 127.0.0.1:PORT, localhost:PORT or "
            "[::1]:PORT%s",
            HOST_SHOWN_BYTES, text, tls ? ", or HOST:PORT" : "");
    }
    ret_address->port = tcp.port;
    ret_address->is_localhost = tcp.is_localhost;
    ret_address->is_name = tcp.scope == TCP_SCOPE_NAME && !tcp.bracketed && is_name(tcp.host);
    ret_address->socket_address = tcp.socket_address;
    ret_address->socket_address_bytes = tcp.socket_address_bytes;
    memcpy(ret_address->host, tcp.host, sizeof ret_address->host);
    CADRE_TRY(check_scope(tcp.scope, ret_address, text, use, tls, error));
    snprintf(ret_address->host_port, sizeof ret_address->host_port,
        tcp.bracketed ? "[%s]:%d" : "%s:%d", ret_address->host, ret_address->port);
    return CADRE_OK;
}
