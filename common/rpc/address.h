/* SPDX-License-Identifier: Apache-2.0
 * The address that a server listens on and a client connects to: a Unix socket, a loopback port,
 * or with TLS any port. */
#ifndef CADRE_RPC_ADDRESS_H
#define CADRE_RPC_ADDRESS_H

#include "common/base/error.h"
#include "common/base/tcp_address.h"

#include <stdbool.h>

#include <sys/socket.h>
#include <sys/un.h>

#define RPC_HOST_BYTES         TCP_HOST_BYTES
#define RPC_ADDRESS_TEXT_BYTES (RPC_HOST_BYTES + 16)

enum rpc_address_use { RPC_ADDRESS_LISTEN, RPC_ADDRESS_DIAL };

struct rpc_address {
    bool is_unix;
    bool is_name;      /* the host must be looked up: no socket address yet */
    bool is_localhost; /* the host was written so; it is 127.0.0.1 */
    char path[sizeof((struct sockaddr_un){0}.sun_path)]; /* of a Unix socket */
    int port;                               /* of a TCP address; 0 lets the system choose */
    char host[RPC_HOST_BYTES];              /* of a TCP address, without brackets */
    char host_port[RPC_ADDRESS_TEXT_BYTES]; /* "127.0.0.1:80", "[::1]:80", or "unix:/path" */
    struct sockaddr_storage socket_address;
    socklen_t socket_address_bytes;
};

/* Reads "unix:/absolute/path", "localhost:PORT", "127.x.y.z:PORT" or "[::1]:PORT"; with `tls`
 * also "ADDRESS:PORT" and "[ADDRESS]:PORT" of any host ("0.0.0.0" and "[::]" to listen on all),
 * and to connect "NAME:PORT". INVALID_ARGUMENT: the message names the fault, and for an address
 * of another machine that TLS is needed first. */
cadre_status rpc_address_parse(const char *text, enum rpc_address_use use, bool tls,
    struct rpc_address *ret_address, struct cadre_error *error);

#endif
