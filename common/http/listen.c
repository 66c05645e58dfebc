/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/tcp_address.h"

#define BACKLOG 1024 /* those that come between two runs of the server */

static cadre_status no_address(const char *address, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "--http %.80s: expected 127.0.0.1:PORT, localhost:PORT or [::1]:PORT, or with TLS another "
        "address of this host as a number",
        address);
}

static cadre_status listen_refused(const char *address, int number, struct cadre_error *error)
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
    struct tcp_address where;
    const int yes = 1;
    if (!tcp_address_parse(address, &where) || where.scope == TCP_SCOPE_NAME) {
        return no_address(address, error);
    }
    bool loopback = where.scope == TCP_SCOPE_LOOPBACK;
    if (!loopback && !anywhere) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--http %s is not a loopback address: off this host it needs TLS; give --tls-cert, "
            "--tls-key and --tls-ca too, or a loopback address",
            address);
    }
    struct sockaddr *name = (struct sockaddr *)&where.socket_address;
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return listen_refused(address, errno, error);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, name, where.socket_address_bytes) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, name, &where.socket_address_bytes) != 0) {
        cadre_status status = listen_refused(address, errno, error);
        close(fd);
        return status;
    }
    *ret_port = ntohs(name->sa_family == AF_INET6 ? ((struct sockaddr_in6 *)name)->sin6_port
                                                  : ((struct sockaddr_in *)name)->sin_port);
    *ret_fd = fd;
    *ret_loopback = loopback;
    return CADRE_OK;
}
