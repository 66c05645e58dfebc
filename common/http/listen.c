/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_MAX     65535
#define LOOPBACK_TOP 127
#define HOST_BYTES   64
#define BACKLOG      32

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static cadre_status no_address(const char *address, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "--http %.80s: expected 127.0.0.1:PORT, localhost:PORT or [::1]:PORT, or with TLS another "
        "address of this host as a number",
        address);
}

/* Digits only. */
static bool parse_port(const char *text, in_port_t *ret_port)
{
    size_t digits = strspn(text, "0123456789");
    long port = digits > 0 && digits <= 5 ? strtol(text, NULL, 10) : PORT_MAX + 1;
    *ret_port = htons((in_port_t)port);
    return text[digits] == '\0' && port <= PORT_MAX;
}

static cadre_status parse(
    const char *address, union socket_address *ret, bool *ret_loopback, struct cadre_error *error)
{
    char host[HOST_BYTES];
    bool bracketed = address[0] == '[';
    const char *begin = bracketed ? address + 1 : address;
    const char *end = bracketed ? strchr(begin, ']') : strrchr(begin, ':');
    const char *colon = end != NULL && bracketed ? end + 1 : end;
    in_port_t port = 0;
    *ret = (union socket_address){0};
    if (colon == NULL || *colon != ':' || !parse_port(colon + 1, &port) ||
        (size_t)(end - begin) >= sizeof host) {
        return no_address(address, error);
    }
    snprintf(host, sizeof host, "%.*s", (int)(end - begin), begin);
    if (bracketed && inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = port;
        *ret_loopback = IN6_IS_ADDR_LOOPBACK(&ret->v6.sin6_addr);
        return CADRE_OK;
    }
    const char *number = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (bracketed || inet_pton(AF_INET, number, &ret->v4.sin_addr) != 1) {
        return no_address(address, error);
    }
    ret->v4.sin_family = AF_INET;
    ret->v4.sin_port = port;
    *ret_loopback = ntohl(ret->v4.sin_addr.s_addr) >> 24 == LOOPBACK_TOP;
    return CADRE_OK;
}

static cadre_status refused(const char *address, int number, struct cadre_error *error)
{
    if (number == EADDRINUSE) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "--http %s: another program listens there: choose another port", address);
    }
    return cadre_error_errno(error, number, "--http %s", address);
}

cadre_status http_listen(const char *address, bool anywhere, int *ret_fd, int *ret_port,
    bool *ret_loopback, struct cadre_error *error)
{
    union socket_address where;
    bool loopback = false;
    const int yes = 1;
    CADRE_TRY(parse(address, &where, &loopback, error));
    if (!loopback && !anywhere) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--http %s is not a loopback address: off this host it needs TLS; give --tls-cert, "
            "--tls-key and --tls-ca too, or a loopback address",
            address);
    }
    socklen_t size = where.any.sa_family == AF_INET6 ? sizeof where.v6 : sizeof where.v4;
    int fd = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return refused(address, errno, error);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, &where.any, size) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &where.any, &size) != 0) {
        cadre_status status = refused(address, errno, error);
        close(fd);
        return status;
    }
    *ret_port = ntohs(where.any.sa_family == AF_INET6 ? where.v6.sin6_port : where.v4.sin_port);
    *ret_fd = fd;
    *ret_loopback = loopback;
    return CADRE_OK;
}
