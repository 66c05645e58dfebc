/* SPDX-License-Identifier: Apache-2.0
 * Why a connection cannot be made: gRPC reports little of a failed handshake, so this makes a
 * second one to find the reason. */
#ifndef CADRE_TLS_DIAGNOSE_H
#define CADRE_TLS_DIAGNOSE_H

#include "common/tls/material.h"

struct tls_target {
    const char *host; /* a name or an address, without brackets */
    const char *name; /* that a foreign server's certificate is to have; as people wrote it */
    int port;
    const char *shown;     /* how messages name it: "host-a:7070" */
    const char *cert_file; /* and the own files; NULL without material */
    const char *ca_file;
    const struct tls_material *material; /* of this end; NULL: this end connects without TLS */
    const char *foreign; /* what the server is when it is not Cadre's: "etcd"; else NULL. Its
                            certificate then names its host, not a role */
};

/* Connects, does the handshake and checks the certificates, `timeout_us` at the longest, unless
 * resolving the name alone takes more: only resolv.conf bounds that. True: `error` has a
 * sentence, with UNAVAILABLE (TLS on one end only, or another protocol), UNAUTHENTICATED (a
 * certificate of either end) or PERMISSION_DENIED (the server's role). False: no fault can be
 * seen from here, or no server listens, which the caller knows from its own attempt. Blocks: for
 * a thread of its own. */
bool tls_diagnose(
    const struct tls_target *target, uint64_t timeout_us, struct cadre_error *ret_error);

#endif
