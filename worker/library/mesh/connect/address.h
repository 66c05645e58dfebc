/* SPDX-License-Identifier: Apache-2.0
 * "127.0.0.1:40123/5e1c07a9d2f4" and "[::1]:40123" to socket addresses and back. Numbers only: the
 * mesh never uses a resolver, because a lookup can block.
 *
 * The token after the slash means that the task also listens on an abstract Unix socket, whose name
 * is made of the whole address: a process that has not read the roster cannot find or take it, and
 * it leaves nothing in the file system. */
#ifndef CADRE_WORKER_MESH_CONNECT_ADDRESS_H
#define CADRE_WORKER_MESH_CONNECT_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "worker/library/mesh/mesh.h"

#define MESH_TOKEN_BYTES 6 /* twelve hexadecimal digits */

struct mesh_sockaddr {
    struct sockaddr_storage storage;
    socklen_t bytes;
};

/* `host` without a port and without brackets, port 0. INVALID_ARGUMENT when it is not an IPv4 or
 * IPv6 address. */
cadre_status mesh_address_from_host(
    const char *host, struct mesh_sockaddr *ret_address, struct cadre_error *error);

/* "host:port" or "[host]:port", port 1..65535, with or without a token. */
cadre_status mesh_address_parse(
    const char *text, struct mesh_sockaddr *ret_address, struct cadre_error *error);

/* The abstract Unix socket of an address that mesh_address_parse takes and that has a token. */
struct mesh_sockaddr mesh_address_local(const char *text);

/* The inverse of address_parse; a NULL token: without one. */
void mesh_address_format(const struct mesh_sockaddr *address, const uint8_t token[MESH_TOKEN_BYTES],
    char ret_text[MESH_ADDRESS_BYTES]);

/* Whether the address is of the loopback network, where data is copied through memory. */
bool mesh_address_is_loopback(const struct mesh_sockaddr *address);

#endif
