/* SPDX-License-Identifier: Apache-2.0
 * The cluster's certificate authority, in memory: functions that make one, and certificates of
 * it. Keys are EC P-256, serial numbers random. */
#ifndef CADRE_TLS_AUTHORITY_H
#define CADRE_TLS_AUTHORITY_H

#include <stdint.h>

#include "common/tls/identity.h"

/* A certificate and its key, PEM. */
struct tls_key_pair {
    char *cert_pem, *key_pem;
};

/* Wipes the key and frees both; a zeroed pair is fine. */
void tls_key_pair_free(struct tls_key_pair *pair);

struct tls_validity {
    uint64_t not_before_s, not_after_s; /* Unix time */
};

/* A new authority, named "Cadre CA <8 random digits>", so that two have different names. */
cadre_status tls_authority_make(
    const struct tls_validity *validity, struct tls_key_pair *ret_ca, struct cadre_error *error);

struct tls_request {
    struct tls_identity identity;
    struct tls_validity validity;
    const char *const *hosts; /* further DNS names or IP addresses, for programs that check them */
    size_t host_count;
};

/* A new key and its certificate. It can open connections and, for coordinators and workers (whose
 * HTTP ports show metrics), take them. Besides the URI of its identity it has the DNS name
 * "<role>.cadre": what clients in other languages that insist on a host name may expect.
 * INVALID_ARGUMENT: the name, a host, or an authority that is none. FAILED_PRECONDITION: it would
 * be valid longer than its authority. */
cadre_status tls_authority_issue(const struct tls_key_pair *ca, const struct tls_request *request,
    struct tls_key_pair *ret_pair, struct cadre_error *error);

#endif
