/* SPDX-License-Identifier: Apache-2.0
 * Certificates as OpenSSL's X509: parsed from PEM, their content, their check against a CA. */
#ifndef CADRE_TLS_CERTIFICATE_H
#define CADRE_TLS_CERTIFICATE_H

#include <openssl/x509.h>

#include "common/tls/report.h"

/* All certificates of a PEM text, in order, at least one; the caller frees them with
 * sk_X509_pop_free(). INVALID_ARGUMENT: there is none, or one is damaged. `what` begins the
 * message: "the TLS certificate /etc/x.pem". */
cadre_status tls_certificates_parse(
    const char *pem, const char *what, STACK_OF(X509) * *ret_list, struct cadre_error *error);

/* Copies identity, names, fingerprint and times out of a certificate. */
void tls_certificate_read_info(const X509 *certificate, struct tls_certificate_info *ret_facts);

/* The one identity that it names. INVALID_ARGUMENT: none, several, or a malformed one. */
cadre_status tls_certificate_identity(
    const X509 *certificate, struct tls_identity *ret_identity, struct cadre_error *error);

/* "Cadre CA 1f2e": the common name if there is one, else the whole name. */
void tls_name_text(const X509_NAME *name, char ret_text[TLS_SUBJECT_BYTES]);

/* The message about a certificate that is not valid yet (`early`) or not any more, with `what`
 * at its begin; returns FAILED_PRECONDITION. */
cadre_status tls_time_fault(const struct tls_certificate_info *facts, bool early, const char *what,
    struct cadre_error *error);

/* Whether `certificate` is valid now and of one of `roots`, by way of `between`, the
 * certificates that came with it. The error's message begins with `what` ("the TLS certificate
 * /etc/x.pem") and names the roots as `ca`. INVALID_ARGUMENT: not of this CA;
 * FAILED_PRECONDITION: time. */
cadre_status tls_certificate_check(X509 *certificate, STACK_OF(X509) * between,
    STACK_OF(X509) * roots, const char *what, const char *ca, struct cadre_error *error);

#endif
