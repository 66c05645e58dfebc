/* SPDX-License-Identifier: Apache-2.0
 * The content of a PEM file of certificates or of a key, and what is wrong with it. */
#ifndef CADRE_TLS_REPORT_H
#define CADRE_TLS_REPORT_H

#include <stdint.h>

#include "common/tls/identity.h"

#define TLS_TIME_BYTES        32
#define TLS_EXPIRY_WARNING_S  (30 * UINT64_C(86400)) /* with less left, expiry is warned of */
#define TLS_SUBJECT_BYTES     128
#define TLS_FINGERPRINT_BYTES (32 * 3)

/* The content of one certificate. */
struct tls_certificate_info {
    struct tls_identity identity; /* TLS_ROLE_NONE when it names none */
    char subject[TLS_SUBJECT_BYTES];
    char issuer[TLS_SUBJECT_BYTES];
    char fingerprint[TLS_FINGERPRINT_BYTES]; /* SHA-256: "AB:CD:..." */
    uint64_t not_before_s, not_after_s;      /* Unix time */
    bool is_ca;
};

/* When the first certificate of a PEM text ends, as Unix time; 0: none can be read. */
uint64_t tls_certificate_ends_s(const char *pem, size_t length);

/* "2027-01-31 12:00 UTC" */
void tls_time_text(uint64_t time_s, char ret_text[TLS_TIME_BYTES]);

/* What one file is, and what is wrong with it. */
struct tls_report {
    struct tls_certificate_info *certificates; /* NULL for a file with a private key only */
    size_t count;
    bool has_key;
    char fault[CADRE_ERROR_TEXT_BYTES]; /* "" when nothing is */
};

/* Reads a PEM file of certificates or of a private key. A key is checked against cert.pem beside
 * it; a certificate against ca.pem beside it, if there is one. An error when it is neither, or
 * cannot be read. To be freed with tls_report_free(). */
cadre_status tls_report_file(
    const char *path, struct tls_report *ret_report, struct cadre_error *error);
/* Frees what tls_report_file() filled in. */
void tls_report_free(struct tls_report *report);

#endif
