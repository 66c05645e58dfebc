/* SPDX-License-Identifier: Apache-2.0
 * The TCP ports at which a host's tasks may listen: "47000:47099", so that a firewall can name
 * them. */
#ifndef CADRE_BASE_PORT_RANGE_H
#define CADRE_BASE_PORT_RANGE_H

#include <stdint.h>

#include <sys/socket.h>

#include "common/base/error.h"

#define PORT_RANGE_FIRST_MIN  1024 /* ports under it are not for tasks: they have no rights */
#define PORT_RANGE_TEXT_BYTES 12   /* "65535:65535" */

/* Both 0: any port, which the kernel chooses. */
struct port_range {
    uint16_t first;
    uint16_t last;
};

/* Reads "FIRST:LAST", 1024 <= FIRST <= LAST <= 65535, of at least one port for each of `tasks`; a
 * NULL `text` is any port. INVALID_ARGUMENT begins with `name`, that of the option or variable. */
cadre_status port_range_parse(const char *name, const char *text, uint32_t tasks,
    struct port_range *ret_range, struct cadre_error *error);

/* The inverse; of a range that is set. */
void port_range_format(const struct port_range *range, char ret_text[PORT_RANGE_TEXT_BYTES]);

/* How many ports these are; 0: any. */
uint32_t port_range_count(const struct port_range *range);

/* Listens at `address`, an IPv4 or IPv6 one, on the first port of the range (NULL: any) that is
 * free, and puts the port into it; *ret_fd does not block and is closed on exec. `host` and `user`
 * ("the mesh") are for errors: RESOURCE_EXHAUSTED when all of the range are in use, else that of
 * the system. On errors *ret_fd is -1. */
cadre_status port_range_listen(const struct port_range *range, struct sockaddr_storage *address,
    socklen_t *address_bytes, const char *host, const char *user, int *ret_fd,
    struct cadre_error *error);

#endif
