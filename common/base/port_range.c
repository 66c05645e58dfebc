/* SPDX-License-Identifier: Apache-2.0
 * Parses ranges of ports and finds a free one by listening. Called by the listeners of the mesh and
 * of ps jobs, and by the programs that have the option. */
#include "common/base/port_range.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/pure/assert.h"

/* One to five digits; *text moves behind them. */
static bool port_range_take(const char **text, unsigned long *ret_port)
{
    char *end = NULL;
    if (**text < '0' || **text > '9') {
        return false;
    }
    *ret_port = strtoul(*text, &end, 10);
    bool fits = end - *text <= 5 && *ret_port <= UINT16_MAX;
    *text = end;
    return fits;
}

cadre_status port_range_parse(const char *name, const char *text, uint32_t tasks,
    struct port_range *ret_range, struct cadre_error *error)
{
    unsigned long first = 0;
    unsigned long last = 0;
    const char *at = text;
    *ret_range = (struct port_range){0};
    if (text == NULL) {
        return CADRE_OK;
    }
    bool good =
        port_range_take(&at, &first) && *at++ == ':' && port_range_take(&at, &last) && *at == '\0';
    if (!good || first < PORT_RANGE_FIRST_MIN || last < first) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s %.64s: no range of ports; write FIRST:LAST within %d..65535, such as 47000:47099",
            name, text, PORT_RANGE_FIRST_MIN);
    }
    if (last - first + 1 < tasks) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s %s: too few ports: up to %" PRIu32
            " tasks listen at one each; name at least %lu:%lu",
            name, text, tasks, first, first + tasks - 1);
    }
    *ret_range = (struct port_range){.first = (uint16_t)first, .last = (uint16_t)last};
    return CADRE_OK;
}

void port_range_format(const struct port_range *range, char ret_text[PORT_RANGE_TEXT_BYTES])
{
    CADRE_ASSERT(range->first > 0);
    snprintf(
        ret_text, PORT_RANGE_TEXT_BYTES, "%u:%u", (unsigned)range->first, (unsigned)range->last);
}

uint32_t port_range_count(const struct port_range *range)
{
    return range->first == 0 ? 0 : (uint32_t)(range->last - range->first) + 1;
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    } else {
        ((struct sockaddr_in *)address)->sin_port = htons(port);
    }
}

/* A socket that listens; -1: errno. A socket for each port: one that is bound cannot be bound
 * again, and of two that are bound to one port only one can listen. */
static int listen_at(const struct sockaddr_storage *address, socklen_t address_bytes, bool chosen)
{
    int on = 1;
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    if (chosen) { /* connections of the task that had the port before may still be closing */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (bind(fd, (const struct sockaddr *)address, address_bytes) != 0 ||
        listen(fd, SOMAXCONN) != 0) {
        int number = errno;
        close(fd);
        errno = number;
        return -1;
    }
    return fd;
}

cadre_status port_range_listen(const struct port_range *range, struct sockaddr_storage *address,
    socklen_t *address_bytes, const char *host, const char *user, int *ret_fd,
    struct cadre_error *error)
{
    CADRE_ASSERT(address->ss_family == AF_INET || address->ss_family == AF_INET6);
    const struct port_range any = {0};
    range = range != NULL ? range : &any;
    uint32_t port = range->first;
    do {
        set_port(address, (uint16_t)port);
        *ret_fd = listen_at(address, *address_bytes, range->first > 0);
    } while (*ret_fd < 0 && errno == EADDRINUSE && port++ < range->last);
    if (*ret_fd < 0 && errno == EADDRINUSE && range->first > 0) {
        char text[PORT_RANGE_TEXT_BYTES];
        port_range_format(range, text);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "listen for %s on %s: all ports of %s are in use (`ss -ltnp` lists them); give "
            "--mesh-ports, or CADRE_MESH_PORTS, a range with a port for each task of this host",
            user, host, text);
    }
    if (*ret_fd < 0) {
        return cadre_error_errno(
            error, errno, "listen for %s on %s (it must be an address of this host)", user, host);
    }
    *address_bytes = sizeof *address;
    if (getsockname(*ret_fd, (struct sockaddr *)address, address_bytes) != 0) {
        int number = errno;
        close(*ret_fd);
        *ret_fd = -1;
        return cadre_error_errno(error, number, "read the port of %s on %s", user, host);
    }
    return CADRE_OK;
}
