/* SPDX-License-Identifier: Apache-2.0
 * Certificates as OpenSSL has them: from PEM, and what they say. */
#ifndef CADRE_TLS_CERTIFICATE_H
#define CADRE_TLS_CERTIFICATE_H

#include <stdint.h>

#include <openssl/x509.h>

#include "common/tls/identity.h"

#define TLS_TIME_BYTES        32
#define TLS_SUBJECT_BYTES     128
#define TLS_FINGERPRINT_BYTES (32 * 3)

/* What one certificate says. */
struct tls_facts {
    struct tls_identity identity; /* TLS_ROLE_NONE when it names none */
    char subject[TLS_SUBJECT_BYTES];
    char issuer[TLS_SUBJECT_BYTES];
    char fingerprint[TLS_FINGERPRINT_BYTES]; /* SHA-256: "AB:CD:..." */
    uint64_t not_before_s, not_after_s;      /* Unix time */
    bool is_ca;
};

/* All certificates of a PEM text, in order, at least one; sk_X509_pop_free() is the caller's.
 * INVALID_ARGUMENT: there is none, or one is damaged. `what` begins the sentence: "the TLS
 * certificate /etc/x.pem". */
cadre_status tls_certificates_parse(
    const char *pem, const char *what, STACK_OF(X509) * *ret_list, struct cadre_error *error);

void tls_certificate_facts(const X509 *certificate, struct tls_facts *ret_facts);

/* The one identity that it names. INVALID_ARGUMENT: none, several, or a malformed one. */
cadre_status tls_certificate_identity(
    const X509 *certificate, struct tls_identity *ret_identity, struct cadre_error *error);

/* "Cadre CA 1f2e": a name as people know it, its common name if it has one. */
void tls_name_text(const X509_NAME *name, char ret_text[TLS_SUBJECT_BYTES]);

/* "2027-01-31 12:00 UTC" */
void tls_time_text(uint64_t time_s, char ret_text[TLS_TIME_BYTES]);

/* Whether `certificate` is valid now and of one of `roots`, by way of `between`, the certificates
 * that came with it. The error's sentence begins with `what`: "the TLS certificate /etc/x.pem", and
 * names the roots as `ca`. INVALID_ARGUMENT: not of this CA; FAILED_PRECONDITION: time. */
cadre_status tls_certificate_check(X509 *certificate, STACK_OF(X509) * between,
    STACK_OF(X509) * roots, const char *what, const char *ca, struct cadre_error *error);

#endif
