/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rpc/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT_MAX         65535
#define PORT_DIGITS_MAX  5
#define LOOPBACK_TOP     127
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

/* Digits only, so that "+1", " 1" and "1x" are refused. */
static bool parse_port(const char *text, int *ret_port)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > PORT_DIGITS_MAX || text[digits] != '\0') {
        return false;
    }
    long port = strtol(text, NULL, 10);
    *ret_port = (int)port;
    return port <= PORT_MAX;
}

/* Fills the socket address when `host` is a literal address of this machine's loopback. */
static bool parse_loopback(const char *host, bool bracketed, struct rpc_address *address)
{
    struct in_addr v4;
    struct in6_addr v6;
    in_port_t port = htons((in_port_t)address->port);
    if (bracketed) {
        if (inet_pton(AF_INET6, host, &v6) != 1 || !IN6_IS_ADDR_LOOPBACK(&v6)) {
            return false;
        }
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = v6, .sin6_port = port};
        memcpy(&address->socket_address, &in6, sizeof in6);
        address->socket_address_bytes = sizeof in6;
        return true;
    }
    if (inet_pton(AF_INET, host, &v4) != 1 || ntohl(v4.s_addr) >> 24 != LOOPBACK_TOP) {
        return false;
    }
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = v4, .sin_port = port};
    memcpy(&address->socket_address, &in, sizeof in);
    address->socket_address_bytes = sizeof in;
    return true;
}

cadre_status rpc_address_parse(
    const char *text, struct rpc_address *ret_address, struct cadre_error *error)
{
    *ret_address = (struct rpc_address){0};
    if (strncmp(text, unix_prefix, sizeof unix_prefix - 1) == 0) {
        return parse_unix(text + sizeof unix_prefix - 1, ret_address, error);
    }
    bool bracketed = text[0] == '[';
    const char *host = bracketed ? text + 1 : text;
    const char *host_end = bracketed ? strchr(host, ']') : strrchr(host, ':');
    const char *colon = host_end != NULL && bracketed ? host_end + 1 : host_end;
    if (colon == NULL || *colon != ':' || !parse_port(colon + 1, &ret_address->port)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": expected unix:/path, 127.0.0.1:PORT, localhost:PORT or [::1]:PORT",
            HOST_SHOWN_BYTES, text);
    }
    char name[HOST_SHOWN_BYTES];
    size_t length = (size_t)(host_end - host);
    bool fits = length < sizeof name;
    if (fits) {
        memcpy(name, host, length);
        name[length] = '\0';
        if (!bracketed && strcmp(name, "localhost") == 0) {
            memcpy(name, "127.0.0.1", sizeof "127.0.0.1");
        }
    }
    if (!fits || !parse_loopback(name, bracketed, ret_address)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\" is not a loopback address: connections between machines need TLS "
            "first, which this version does not have; use unix:/path, 127.0.0.1:PORT or [::1]:PORT",
            HOST_SHOWN_BYTES, text);
    }
    snprintf(ret_address->host_port, sizeof ret_address->host_port, bracketed ? "[%s]:%d" : "%s:%d",
        name, ret_address->port);
    return CADRE_OK;
}
