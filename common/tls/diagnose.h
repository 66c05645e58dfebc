/* SPDX-License-Identifier: Apache-2.0
 * Why a connection cannot be made: gRPC says little of a handshake that failed, so one is made for
 * the reason alone. */
#ifndef CADRE_TLS_DIAGNOSE_H
#define CADRE_TLS_DIAGNOSE_H

#include "common/tls/material.h"

struct tls_target {
    const char *host; /* a name or an address, without brackets */
    int port;
    const char *shown;     /* how sentences call it: "host-a:7070" */
    const char *cert_file; /* and the own files; NULL without material */
    const char *ca_file;
    const struct tls_material *material; /* of the own end; NULL: it speaks plain text */
};

/* Connects, shakes hands and looks, `timeout_us` at the longest, unless resolving the name alone
 * takes more: only resolv.conf bounds that. True: `error` has a sentence, with
 * UNAVAILABLE (nothing that speaks as we do), UNAUTHENTICATED (a certificate of either end) or
 * PERMISSION_DENIED (the server's role). False: nothing is wrong with it that can be seen from
 * here, or nobody listens: whoever asks knows as much. Blocks: for a thread of its own. */
bool tls_diagnose(
    const struct tls_target *target, uint64_t timeout_us, struct cadre_error *ret_error);

#endif
