/* SPDX-License-Identifier: Apache-2.0
 * "etcd://HOST:PORT,HOST:PORT/PREFIX": where an etcd cluster is, and which of its keys are Cadre's.
 */
#ifndef CADRE_ETCD_ADDRESS_H
#define CADRE_ETCD_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/rpc/address.h"

#define ETCD_ADDRESS_BYTES_MAX 4096
#define ETCD_ENDPOINTS_MAX     16
#define ETCD_PREFIX_BYTES      128 /* with the terminator */

struct etcd_address {
    size_t endpoint_count;
    char endpoints[ETCD_ENDPOINTS_MAX][RPC_ADDRESS_TEXT_BYTES]; /* "10.0.0.1:2379" */
    char prefix[ETCD_PREFIX_BYTES]; /* "cadre", "site-a/cadre": no slash at either end */
};

/* Reads it: 1 to ETCD_ENDPOINTS_MAX different endpoints, and a prefix of parts of letters, digits,
 * '-', '_' and '.', none of which is "." or "..". With `tls` an endpoint is any HOST:PORT, without
 * it a loopback one. INVALID_ARGUMENT: the message names the fault. */
cadre_status etcd_address_parse(
    const char *text, bool tls, struct etcd_address *ret_address, struct cadre_error *error);

#endif
