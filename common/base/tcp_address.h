/* SPDX-License-Identifier: Apache-2.0
 * "HOST:PORT" as text and as a socket address. Whether such an address is allowed is for the
 * caller to check. */
#ifndef CADRE_BASE_TCP_ADDRESS_H
#define CADRE_BASE_TCP_ADDRESS_H

#include <stdbool.h>

#include <sys/socket.h>

#define TCP_HOST_BYTES 254 /* of a DNS name */

enum tcp_scope {
    TCP_SCOPE_NAME, /* the host is a name, or nothing that could be an address */
    TCP_SCOPE_LOOPBACK,
    TCP_SCOPE_REMOTE,
    TCP_SCOPE_ANY /* 0.0.0.0 and [::] */
};

struct tcp_address {
    char host[TCP_HOST_BYTES]; /* without brackets; "localhost" became "127.0.0.1" */
    int port;
    bool bracketed;
    bool is_localhost; /* it was written so */
    enum tcp_scope scope;
    struct sockaddr_storage socket_address; /* of a number */
    socklen_t socket_address_bytes;
};

/* Reads "127.0.0.1:80", "localhost:80", "[::1]:80" or "name:80". False: it is not of this form, or
 * the port is none. */
bool tcp_address_parse(const char *text, struct tcp_address *ret_address);

#endif
