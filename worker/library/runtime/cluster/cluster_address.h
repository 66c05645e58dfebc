/* SPDX-License-Identifier: Apache-2.0
 * "HOST:PORT" and "[IPv6]:PORT" of a cluster, as socket addresses. Hosts may be names: resolving
 * them may take seconds, so this is done before any task waits for this one. */
#ifndef CADRE_RUNTIME_CLUSTER_ADDRESS_H
#define CADRE_RUNTIME_CLUSTER_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "cadre/cluster_resolver.h"
#include "common/base/error.h"
#include "common/model/limits.h"

struct cluster_address {
    struct sockaddr_storage storage;
    socklen_t bytes;
};

/* The host and the port in the text. INVALID_ARGUMENT when it is not an address. */
cadre_status cluster_address_parse(const char *text, char ret_host[CADRE_CLUSTER_ADDRESS_BYTES],
    uint16_t *ret_port, struct cadre_error *error);

/* The host's numeric address, IPv4 where it has both. UNAVAILABLE when the name is unknown. */
cadre_status cluster_address_resolve(const char *host, uint16_t port,
    struct cluster_address *ret_address, struct cadre_error *error);

/* The numeric address of its host, without the port. */
void cluster_address_host(
    const struct cluster_address *address, char ret_host[LIMIT_ADDRESS_BYTES]);

/* Whether it is of 127.0.0.0/8, or ::1. */
bool cluster_address_is_loopback(const struct cluster_address *address);

/* Bound and listening, non-blocking; *ret_fd is the caller's. `text` is the address in errors.
 * ALREADY_EXISTS when the port is taken. */
cadre_status cluster_address_listen(const struct cluster_address *address, const char *text,
    int *ret_fd, struct cadre_error *error);

/* Begins a connection, non-blocking: writable when it is made or has failed. *ret_fd is the
 * caller's. */
cadre_status cluster_address_connect(
    const struct cluster_address *address, int *ret_fd, struct cadre_error *error);

/* Messages leave at once, and a host that is lost is noticed after some seconds. */
void cluster_address_tune(int fd);

#endif
