/* SPDX-License-Identifier: Apache-2.0
 * Reads certificates and checks them over OpenSSL. Called by the other files of this folder and
 * by common/rpc's check of a server. */
#include "common/tls/certificate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

cadre_status tls_certificates_parse(
    const char *pem, const char *what, STACK_OF(X509) * *ret_list, struct cadre_error *error)
{
    STACK_OF(X509) *list = sk_X509_new_null();
    BIO *bio = BIO_new_mem_buf(pem, -1);
    *ret_list = NULL;
    if (list == NULL || bio == NULL) {
        sk_X509_free(list);
        BIO_free(bio);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory to read it", what);
    }
    X509 *certificate;
    while ((certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        if (sk_X509_push(list, certificate) == 0) {
            X509_free(certificate);
            break;
        }
    }
    unsigned long reason = ERR_peek_last_error();
    bool damaged = ERR_GET_LIB(reason) != ERR_LIB_PEM ||
                   ERR_GET_REASON(reason) != PEM_R_NO_START_LINE; /* else it is the end */
    ERR_clear_error();
    BIO_free(bio);
    if (sk_X509_num(list) > 0 && !damaged) {
        *ret_list = list;
        return CADRE_OK;
    }
    sk_X509_pop_free(list, X509_free);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        damaged ? "%s: a certificate in it is damaged; fetch or issue it again"
                : "%s: no PEM certificate in it (\"-----BEGIN CERTIFICATE-----\"); is it another "
                  "file?",
        what);
}

void tls_name_text(const X509_NAME *name, char ret_text[TLS_SUBJECT_BYTES])
{
    int length = X509_NAME_get_text_by_NID(name, NID_commonName, ret_text, TLS_SUBJECT_BYTES);
    if (length <= 0) {
        X509_NAME_oneline(name, ret_text, TLS_SUBJECT_BYTES);
    }
    /* The name comes from another machine, and goes to logs and terminals. */
    for (char *at = ret_text; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            *at = '?';
        }
    }
}

static uint64_t unix_time(const ASN1_TIME *time)
{
    struct tm tm;
    if (time == NULL || ASN1_TIME_to_tm(time, &tm) != 1) {
        return 0;
    }
    time_t seconds = timegm(&tm);
    return seconds > 0 ? (uint64_t)seconds : 0;
}

void tls_time_text(uint64_t time_s, char ret_text[TLS_TIME_BYTES])
{
    time_t seconds = (time_t)time_s;
    struct tm tm = {0};
    gmtime_r(&seconds, &tm);
    if (strftime(ret_text, TLS_TIME_BYTES, "%Y-%m-%d %H:%M UTC", &tm) == 0) {
        snprintf(ret_text, TLS_TIME_BYTES, "?");
    }
}

cadre_status tls_certificate_identity(
    const X509 *certificate, struct tls_identity *ret_identity, struct cadre_error *error)
{
    *ret_identity = (struct tls_identity){TLS_ROLE_NONE, ""};
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = names != NULL ? sk_GENERAL_NAME_num(names) : 0;
    unsigned uris = 0;
    cadre_status status = CADRE_OK;
    for (int i = 0; i < count; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_URI) {
            const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
            uris++;
            status = tls_identity_parse((const char *)ASN1_STRING_get0_data(uri),
                (size_t)ASN1_STRING_length(uri), ret_identity, error);
        }
    }
    GENERAL_NAMES_free(names);
    if (uris == 1) {
        return status;
    }
    *ret_identity = (struct tls_identity){TLS_ROLE_NONE, ""};
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        uris == 0 ? "it names no role: expected the URI spiffe://cadre/ROLE/NAME among its "
                    "alternative names"
                  : "it has several URIs among its alternative names: expected one, "
                    "spiffe://cadre/ROLE/NAME");
}

void tls_certificate_read_info(const X509 *certificate, struct tls_certificate_info *ret_facts)
{
    *ret_facts =
        (struct tls_certificate_info){.is_ca = X509_check_ca((X509 *)(uintptr_t)certificate) > 0};
    (void)tls_certificate_identity(certificate, &ret_facts->identity, NULL);
    tls_name_text(X509_get_subject_name(certificate), ret_facts->subject);
    tls_name_text(X509_get_issuer_name(certificate), ret_facts->issuer);
    ret_facts->not_before_s = unix_time(X509_get0_notBefore(certificate));
    ret_facts->not_after_s = unix_time(X509_get0_notAfter(certificate));
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (X509_digest(certificate, EVP_sha256(), digest, &length) == 1) {
        for (unsigned i = 0; i < length && 3 * i + 3 <= TLS_FINGERPRINT_BYTES; i++) {
            snprintf(ret_facts->fingerprint + (size_t)3 * i, 4, i + 1 < length ? "%02X:" : "%02X",
                digest[i]);
        }
    }
}

cadre_status tls_time_fault(const struct tls_certificate_info *facts, bool early, const char *what,
    struct cadre_error *error)
{
    char when[TLS_TIME_BYTES];
    tls_time_text(early ? facts->not_before_s : facts->not_after_s, when);
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        early ? "%s (\"%s\") is valid only from %s on; check this host's clock"
              : "%s (\"%s\") expired on %s; issue a new one with `cadre pki issue`",
        what, facts->subject, when);
}

static cadre_status ca_time_fault(
    const struct tls_certificate_info *ca, bool early, const char *what, struct cadre_error *error)
{
    char when[TLS_TIME_BYTES];
    tls_time_text(early ? ca->not_before_s : ca->not_after_s, when);
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        early ? "%s: its CA (\"%s\") is valid only from %s on; check this host's clock"
              : "%s: its CA (\"%s\") expired on %s; make a new CA with `cadre pki init` and issue "
                "all certificates again",
        what, ca->subject, when);
}

static cadre_status certificate_explain(
    const X509_STORE_CTX *check, const char *what, const char *ca, struct cadre_error *error)
{
    int reason = X509_STORE_CTX_get_error(check);
    const X509 *at = X509_STORE_CTX_get_current_cert(check);
    bool of_ca = X509_STORE_CTX_get_error_depth(check) > 0;
    struct tls_certificate_info facts = {0};
    if (at != NULL) {
        tls_certificate_read_info(at, &facts);
    }
    switch (reason) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return (of_ca ? ca_time_fault : tls_time_fault)(
            &facts, reason == X509_V_ERR_CERT_NOT_YET_VALID, what, error);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is of the CA \"%s\", which is not that of %s: both ends need certificates of one "
            "CA",
            what, facts.issuer, ca);
    default:
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s cannot be trusted by %s: %s",
            what, ca, X509_verify_cert_error_string(reason));
    }
}

cadre_status tls_certificate_check(X509 *certificate, STACK_OF(X509) * between,
    STACK_OF(X509) * roots, const char *what, const char *ca, struct cadre_error *error)
{
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    cadre_status status;
    if (check == NULL || X509_STORE_CTX_init(check, NULL, certificate, between) != 1) {
        status =
            cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory to check it", what);
    } else {
        X509_STORE_CTX_set0_trusted_stack(check, roots);
        status =
            X509_verify_cert(check) == 1 ? CADRE_OK : certificate_explain(check, what, ca, error);
    }
    X509_STORE_CTX_free(check);
    ERR_clear_error();
    return status;
}
