/* SPDX-License-Identifier: Apache-2.0
 * The address on which tasks listen for those of other hosts, when --mesh-host is auto: that of the
 * interface by which this host reaches the coordinator. */
#ifndef CADRE_WORKER_DAEMON_MESH_HOST_H
#define CADRE_WORKER_DAEMON_MESH_HOST_H

#include <stdbool.h>

#include <netinet/in.h>

#include "common/base/error.h"

#define MESH_HOST_AUTO     "auto"
#define MESH_HOST_LOOPBACK "127.0.0.1" /* until a coordinator was reached */
#define MESH_HOST_BYTES    INET6_ADDRSTRLEN

/* Whether --mesh-host can be used: "auto", or an IPv4 or IPv6 address without a port. */
cadre_status mesh_host_check(const char *option, struct cadre_error *error);
/* True for "auto". */
bool mesh_host_is_auto(const char *option);

/* `peer` is the coordinator as rpc_call_peer() names it: "ipv4:10.0.0.2:7077",
 * "ipv6:%5Bfd00::2%5D:7077" or "unix:...". Sends nothing: it only looks up the route.
 * UNAVAILABLE when no route leads there, INVALID_ARGUMENT when the text is none of these. */
cadre_status mesh_host_toward(
    const char *peer, char ret_host[MESH_HOST_BYTES], struct cadre_error *error);

#endif
