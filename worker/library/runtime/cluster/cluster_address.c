/* SPDX-License-Identifier: Apache-2.0
 * Addresses of a cluster: parsed, resolved, listened at, connected to. cluster_member.c,
 * cluster_server.c and session_cluster.c call it. */
#include "worker/library/runtime/cluster/cluster_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"

/* A host that sends nothing for so long is probed, so often, and then counts as lost. */
#define SILENT_S         5
#define ASK_AGAIN_S      3
#define ASKED            4
#define UNREACHED_END_MS ((SILENT_S + ASK_AGAIN_S * ASKED) * 1000)

static cadre_status cluster_address_malformed(const char *text, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "'%.64s' is not a task's address; write HOST:PORT with a port from 1 to 65535, such as "
        "localhost:4000",
        text);
}

cadre_status cluster_address_parse(const char *text, char ret_host[CADRE_CLUSTER_ADDRESS_BYTES],
    uint16_t *ret_port, struct cadre_error *error)
{
    const char *colon = strrchr(text, ':');
    size_t digits = colon == NULL ? 0 : strspn(colon + 1, "0123456789");
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    uint32_t port = 0;
    if (digits == 0 || digits > 5 || colon[1 + digits] != '\0') {
        return cluster_address_malformed(text, error);
    }
    for (size_t i = 0; i < digits; i++) {
        port = port * 10 + (uint32_t)(colon[1 + i] - '0');
    }
    bool bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
    const char *host = bracketed ? text + 1 : text;
    length = bracketed ? length - 2 : length;
    if (length == 0 || length >= CADRE_CLUSTER_ADDRESS_BYTES || port == 0 || port > UINT16_MAX ||
        (!bracketed && memchr(host, ':', length) != NULL)) {
        return cluster_address_malformed(text, error);
    }
    memcpy(ret_host, host, length);
    ret_host[length] = '\0';
    *ret_port = (uint16_t)port;
    return CADRE_OK;
}

cadre_status cluster_address_resolve(
    const char *host, uint16_t port, struct cluster_address *ret_address, struct cadre_error *error)
{
    char service[8];
    struct addrinfo *found = NULL;
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int result = getaddrinfo(host, service, &wanted, &found);
    if (result != 0) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "the host '%.64s' cannot be found: %s; is its name right?", host, gai_strerror(result));
    }
    const struct addrinfo *chosen = found;
    for (const struct addrinfo *at = found; at != NULL; at = at->ai_next) {
        if (at->ai_family == AF_INET && chosen->ai_family != AF_INET) {
            chosen = at;
        }
    }
    *ret_address = (struct cluster_address){.bytes = chosen->ai_addrlen};
    memcpy(&ret_address->storage, chosen->ai_addr, chosen->ai_addrlen);
    freeaddrinfo(found);
    return CADRE_OK;
}

void cluster_address_host(const struct cluster_address *address, char ret_host[LIMIT_ADDRESS_BYTES])
{
    const void *number = &((const struct sockaddr_in *)&address->storage)->sin_addr;
    if (address->storage.ss_family == AF_INET6) {
        number = &((const struct sockaddr_in6 *)&address->storage)->sin6_addr;
    }
    if (inet_ntop(address->storage.ss_family, number, ret_host, LIMIT_ADDRESS_BYTES) == NULL) {
        snprintf(ret_host, LIMIT_ADDRESS_BYTES, "?");
    }
}

bool cluster_address_is_loopback(const struct cluster_address *address)
{
    if (address->storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
    return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}

cadre_status cluster_address_listen(
    const struct cluster_address *address, const char *text, int *ret_fd, struct cadre_error *error)
{
    CADRE_ASSERT(address->bytes > 0);
    int on = 1;
    *ret_fd = -1;
    CADRE_CLOSE_AT_EXIT int fd =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "make a socket for the cluster at %s", text);
    }
    /* The connections of a program before this one may still be closing. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (const struct sockaddr *)&address->storage, address->bytes) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        if (errno == EADDRINUSE) {
            return cadre_error_set(error, CADRE_ALREADY_EXISTS,
                "%s is in use: another program runs as this task of the cluster, or uses the port",
                text);
        }
        return cadre_error_errno(error, errno,
            "listen at %s, this task's address in the cluster (CADRE_MESH_HOST can name another "
            "address of this host)",
            text);
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

cadre_status cluster_address_connect(
    const struct cluster_address *address, int *ret_fd, struct cadre_error *error)
{
    CADRE_ASSERT(address->bytes > 0);
    *ret_fd = -1;
    CADRE_CLOSE_AT_EXIT int fd =
        socket(address->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "make a socket");
    }
    if (connect(fd, (const struct sockaddr *)&address->storage, address->bytes) != 0 &&
        errno != EINPROGRESS && errno != EINTR) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s", strerror(errno));
    }
    *ret_fd = fd;
    fd = -1;
    return CADRE_OK;
}

void cluster_address_tune(int fd)
{
    const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, SILENT_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, ASK_AGAIN_S},
        {IPPROTO_TCP, TCP_KEEPCNT, ASKED},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, UNREACHED_END_MS},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        setsockopt(
            fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
    }
}
