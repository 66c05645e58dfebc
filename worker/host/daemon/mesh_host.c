/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/mesh_host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union any_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

bool mesh_host_is_auto(const char *option)
{
    return strcmp(option, MESH_HOST_AUTO) == 0;
}

cadre_status mesh_host_check(const char *option, struct cadre_error *error)
{
    struct in6_addr any;
    if (mesh_host_is_auto(option) || inet_pton(AF_INET, option, &any) == 1 ||
        inet_pton(AF_INET6, option, &any) == 1) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "--mesh-host %s: neither \"auto\" nor an IPv4 or IPv6 address of this host; `ip address` "
        "shows those there are",
        option);
}

/* "ipv6:[::1]:80", with the brackets as they are or as %5B and %5D. */
static bool parse_v6(const char *text, union any_address *address)
{
    char host[INET6_ADDRSTRLEN];
    bool plain = text[0] == '[';
    if (!plain && strncmp(text, "%5B", 3) != 0) {
        return false;
    }
    text += plain ? 1 : 3;
    const char *end = strstr(text, plain ? "]" : "%5D");
    size_t length = end != NULL ? (size_t)(end - text) : sizeof host;
    if (length >= sizeof host) {
        return false;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    *address = (union any_address){.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(1)}};
    return inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1;
}

static bool parse_v4(const char *text, union any_address *address)
{
    char host[INET_ADDRSTRLEN];
    size_t length = strcspn(text, ":");
    if (length >= sizeof host) {
        return false;
    }
    memcpy(host, text, length);
    host[length] = '\0';
    *address = (union any_address){.v4 = {.sin_family = AF_INET, .sin_port = htons(1)}};
    return inet_pton(AF_INET, host, &address->v4.sin_addr) == 1;
}

/* The address that a datagram to `address` would be sent from; none is sent. */
static cadre_status local_toward(
    union any_address *address, const char *peer, struct cadre_error *error)
{
    socklen_t size = address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
    int fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && connect(fd, &address->any, size) == 0 &&
                getsockname(fd, &address->any, &size) == 0;
    int number = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (!good) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "no address of this host leads to the coordinator at %s: %s; name one with --mesh-host",
            peer, strerror(number));
    }
    return CADRE_OK;
}

cadre_status mesh_host_toward(
    const char *peer, char ret_host[MESH_HOST_BYTES], struct cadre_error *error)
{
    union any_address address;
    if (strncmp(peer, "unix:", 5) == 0 || strncmp(peer, "unix-abstract:", 14) == 0) {
        snprintf(ret_host, MESH_HOST_BYTES, "%s", MESH_HOST_LOOPBACK);
        return CADRE_OK;
    }
    bool v4 = strncmp(peer, "ipv4:", 5) == 0 && parse_v4(peer + 5, &address);
    if (!v4 && !(strncmp(peer, "ipv6:", 5) == 0 && parse_v6(peer + 5, &address))) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the coordinator's address \"%.80s\" does not show by which address of this host it is "
            "reached; name one with --mesh-host",
            peer);
    }
    CADRE_TRY(local_toward(&address, peer, error));
    const void *bytes = address.any.sa_family == AF_INET ? (const void *)&address.v4.sin_addr
                                                         : (const void *)&address.v6.sin6_addr;
    inet_ntop(address.any.sa_family, bytes, ret_host, MESH_HOST_BYTES);
    return CADRE_OK;
}
