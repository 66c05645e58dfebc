/* SPDX-License-Identifier: Apache-2.0
 * Certificates as OpenSSL has them: from PEM, and what they say. */
#ifndef CADRE_TLS_CERTIFICATE_H
#define CADRE_TLS_CERTIFICATE_H

#include <openssl/x509.h>

#include "common/tls/report.h"

/* All certificates of a PEM text, in order, at least one; sk_X509_pop_free() is the caller's.
 * INVALID_ARGUMENT: there is none, or one is damaged. `what` begins the sentence: "the TLS
 * certificate /etc/x.pem". */
cadre_status tls_certificates_parse(
    const char *pem, const char *what, STACK_OF(X509) * *ret_list, struct cadre_error *error);

void tls_certificate_read_info(const X509 *certificate, struct tls_certificate_info *ret_facts);

/* The one identity that it names. INVALID_ARGUMENT: none, several, or a malformed one. */
cadre_status tls_certificate_identity(
    const X509 *certificate, struct tls_identity *ret_identity, struct cadre_error *error);

/* "Cadre CA 1f2e": a name as people know it, its common name if it has one. */
void tls_name_text(const X509_NAME *name, char ret_text[TLS_SUBJECT_BYTES]);

/* The sentence about a certificate that is not valid yet (`early`) or not any more;
 * FAILED_PRECONDITION. `what` begins it. */
cadre_status tls_time_fault(const struct tls_certificate_info *facts, bool early, const char *what,
    struct cadre_error *error);

/* Whether `certificate` is valid now and of one of `roots`, by way of `between`, the certificates
 * that came with it. The error's sentence begins with `what`: "the TLS certificate /etc/x.pem", and
 * names the roots as `ca`. INVALID_ARGUMENT: not of this CA; FAILED_PRECONDITION: time. */
cadre_status tls_certificate_check(X509 *certificate, STACK_OF(X509) * between,
    STACK_OF(X509) * roots, const char *what, const char *ca, struct cadre_error *error);

#endif
