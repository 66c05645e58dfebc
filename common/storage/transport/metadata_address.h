/* SPDX-License-Identifier: Apache-2.0
 * Addresses at which a host's own services give out its credentials (pure). They trust all that
 * asks from the host, so what another chose may not lead there. */
#ifndef CADRE_STORAGE_TRANSPORT_METADATA_ADDRESS_H
#define CADRE_STORAGE_TRANSPORT_METADATA_ADDRESS_H

#include <stdbool.h>

struct sockaddr;

/* Link-local ones (169.254.0.0/16, fe80::/10), where Amazon, Google, Azure, Oracle, OpenStack and
 * agents of containers have theirs; Amazon's by IPv6 (fd00:ec2::/32); Azure's 168.63.129.16;
 * Alibaba's 100.100.100.200; and all of these within IPv6 (::ffff:0:0/96, 64:ff9b::/96). */
bool metadata_address_is(const struct sockaddr *address);

#endif
