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

static void fill_v4(struct rpc_address *address, struct in_addr v4)
{
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_addr = v4, .sin_port = htons((in_port_t)address->port)};
    memcpy(&address->socket_address, &in, sizeof in);
    address->socket_address_bytes = sizeof in;
}

static void fill_v6(struct rpc_address *address, const struct in6_addr *v6)
{
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_addr = *v6, .sin6_port = htons((in_port_t)address->port)};
    memcpy(&address->socket_address, &in6, sizeof in6);
    address->socket_address_bytes = sizeof in6;
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

enum place { PLACE_WRONG, PLACE_LOOPBACK, PLACE_ELSEWHERE, PLACE_ANY };

/* Fills the socket address of the host and says where it is. */
static enum place find_place(struct rpc_address *address, bool bracketed)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (bracketed) {
        if (inet_pton(AF_INET6, address->host, &v6) != 1) {
            return PLACE_WRONG;
        }
        fill_v6(address, &v6);
        return IN6_IS_ADDR_LOOPBACK(&v6)      ? PLACE_LOOPBACK
               : IN6_IS_ADDR_UNSPECIFIED(&v6) ? PLACE_ANY
                                              : PLACE_ELSEWHERE;
    }
    if (inet_pton(AF_INET, address->host, &v4) == 1) {
        fill_v4(address, v4);
        return ntohl(v4.s_addr) >> 24 == LOOPBACK_TOP ? PLACE_LOOPBACK
               : v4.s_addr == INADDR_ANY              ? PLACE_ANY
                                                      : PLACE_ELSEWHERE;
    }
    address->is_name = is_name(address->host);
    return address->is_name ? PLACE_ELSEWHERE : PLACE_WRONG;
}

static cadre_status check_place(enum place place, const struct rpc_address *address,
    const char *text, enum rpc_address_use use, bool tls, struct cadre_error *error)
{
    if (place == PLACE_LOOPBACK) {
        return CADRE_OK;
    }
    if (!tls) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\" is not a loopback address: connections between machines need TLS; "
            "give --tls-dir (`cadre pki --help` says how to make one), or use unix:/path, "
            "127.0.0.1:PORT or [::1]:PORT",
            HOST_SHOWN_BYTES, text);
    }
    if (place == PLACE_WRONG) {
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
    if (use == RPC_ADDRESS_DIAL && place == PLACE_ANY) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": a server can listen on all addresses, but a client needs to know "
            "which host",
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
    bool bracketed = text[0] == '[';
    const char *host = bracketed ? text + 1 : text;
    const char *host_end = bracketed ? strchr(host, ']') : strrchr(host, ':');
    const char *colon = host_end != NULL && bracketed ? host_end + 1 : host_end;
    if (colon == NULL || *colon != ':' || !parse_port(colon + 1, &ret_address->port) ||
        (size_t)(host_end - host) >= sizeof ret_address->host) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "address \"%.*s\": expected unix:/path, 127.0.0.1:PORT, localhost:PORT or "
            "[::1]:PORT%s",
            HOST_SHOWN_BYTES, text, tls ? ", or HOST:PORT" : "");
    }
    memcpy(ret_address->host, host, (size_t)(host_end - host));
    if (!bracketed && strcmp(ret_address->host, "localhost") == 0) {
        snprintf(ret_address->host, sizeof ret_address->host, "127.0.0.1");
    }
    enum place place = find_place(ret_address, bracketed);
    CADRE_TRY(check_place(place, ret_address, text, use, tls, error));
    snprintf(ret_address->host_port, sizeof ret_address->host_port, bracketed ? "[%s]:%d" : "%s:%d",
        ret_address->host, ret_address->port);
    return CADRE_OK;
}
