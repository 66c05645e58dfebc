/* SPDX-License-Identifier: Apache-2.0
 * "HOST:PORT" and "[IPv6]:PORT" of a cluster, as socket addresses. Hosts may be names: asking for
 * them may take its time, so this is done before anything waits for this task. */
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

/* The parts of the text. INVALID_ARGUMENT when it is none. */
cadre_status cluster_address_parse(const char *text, char ret_host[CADRE_CLUSTER_ADDRESS_BYTES],
    uint16_t *ret_port, struct cadre_error *error);

/* What the host is called by number, IPv4 where it has both. UNAVAILABLE when nobody knows it. */
cadre_status cluster_address_resolve(const char *host, uint16_t port,
    struct cluster_address *ret_address, struct cadre_error *error);

/* The number of its host. */
void cluster_address_host(
    const struct cluster_address *address, char ret_host[LIMIT_ADDRESS_BYTES]);

bool cluster_address_is_loopback(const struct cluster_address *address);

/* Bound and listening, non-blocking; *ret_fd is the caller's. `text` is what errors call it.
 * ALREADY_EXISTS when the port is taken. */
cadre_status cluster_address_listen(const struct cluster_address *address, const char *text,
    int *ret_fd, struct cadre_error *error);

/* A connection that is being made, non-blocking: writable when it is there or has failed. */
cadre_status cluster_address_connect(
    const struct cluster_address *address, int *ret_fd, struct cadre_error *error);

/* Messages leave at once, and a host that is gone is noticed after some seconds. */
void cluster_address_tune(int fd);

#endif
