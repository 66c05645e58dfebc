/* SPDX-License-Identifier: Apache-2.0
 * Reports on a PEM file for `cadre pki show`: certificates with times and fingerprints, and
 * whether key, certificate and CA beside it fit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/tls/certificate.h"
#include "common/tls/material.h"
#include "common/tls/pem_file.h"

#define WHAT_BYTES 320

/* The path of the file `name` in the folder of `path`, allocated; NULL when memory is out. */
static char *tls_report_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    size_t size = folder + strlen(name) + 1;
    char *made = malloc(size);
    if (made != NULL) {
        snprintf(made, size, "%.*s%s", (int)folder, path, name);
    }
    return made;
}

/* NULL: there is no such file, or it holds none. */
static STACK_OF(X509) * certificates_beside(const char *path, const char *name)
{
    CADRE_FREE_AT_EXIT char *other = tls_report_beside(path, name);
    CADRE_FREE_AT_EXIT char *text = NULL;
    STACK_OF(X509) *list = NULL;
    if (other != NULL && tls_file_read(other, other, false, &text, NULL) == CADRE_OK) {
        (void)tls_certificates_parse(text, other, &list, NULL);
    }
    return list;
}

static void find_fault(
    STACK_OF(X509) * chain, const char *path, const char *what, struct tls_report *report)
{
    struct cadre_error error = {0};
    X509 *own = sk_X509_value(chain, 0);
    STACK_OF(X509) *roots =
        report->certificates[0].is_ca ? chain : certificates_beside(path, "ca.pem");
    struct tls_identity identity;
    uint64_t now_s = clock_wall_us() / CADRE_US_PER_S;
    cadre_status status = CADRE_OK;
    if (!report->certificates[0].is_ca) {
        status = tls_certificate_identity(own, &identity, &error);
    }
    if (status == CADRE_OK && roots != NULL) {
        status = tls_certificate_check(own, chain, roots, what, "the ca.pem beside it", &error);
    } else if (status == CADRE_OK && now_s > report->certificates[0].not_after_s) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION, "it has expired");
    } else if (status == CADRE_OK && now_s < report->certificates[0].not_before_s) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION, "it is not valid yet");
    }
    if (status != CADRE_OK) {
        snprintf(report->fault, sizeof report->fault, "%s", error.text);
    }
    if (roots != chain) {
        sk_X509_pop_free(roots, X509_free);
    }
}

static cadre_status report_certificates(const char *text, const char *path, const char *what,
    struct tls_report *report, struct cadre_error *error)
{
    STACK_OF(X509) *chain = NULL;
    CADRE_TRY(tls_certificates_parse(text, what, &chain, error));
    size_t count = (size_t)sk_X509_num(chain);
    report->certificates = calloc(count, sizeof *report->certificates);
    if (report->certificates == NULL) {
        sk_X509_pop_free(chain, X509_free);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory to show it", what);
    }
    report->count = count;
    for (size_t i = 0; i < count; i++) {
        tls_certificate_read_info(sk_X509_value(chain, (int)i), &report->certificates[i]);
    }
    find_fault(chain, path, what, report);
    sk_X509_pop_free(chain, X509_free);
    return CADRE_OK;
}

static cadre_status report_key(const char *text, const char *path, const char *what,
    struct tls_report *report, struct cadre_error *error)
{
    EVP_PKEY *key = NULL;
    CADRE_TRY(tls_key_parse(text, what, &key, error));
    report->has_key = true;
    STACK_OF(X509) *beside_it = certificates_beside(path, "cert.pem");
    if (beside_it != NULL && strstr(path, "ca-key.pem") == NULL &&
        X509_check_private_key(sk_X509_value(beside_it, 0), key) != 1) {
        snprintf(
            report->fault, sizeof report->fault, "it does not belong to the cert.pem beside it");
    }
    ERR_clear_error();
    sk_X509_pop_free(beside_it, X509_free);
    EVP_PKEY_free(key);
    return CADRE_OK;
}

cadre_status tls_report_file(
    const char *path, struct tls_report *ret_report, struct cadre_error *error)
{
    char *text = NULL;
    char what[WHAT_BYTES];
    struct cadre_error open_to_others = {0};
    *ret_report = (struct tls_report){.certificates = NULL};
    snprintf(what, sizeof what, "%.250s", path);
    cadre_status status = tls_file_read(path, what, false, &text, error);
    if (status == CADRE_OK && strstr(text, "PRIVATE KEY-----") != NULL) {
        struct stat info;
        status = report_key(text, path, what, ret_report, error);
        if (stat(path, &info) == 0 &&
            tls_file_mode_check(&info, what, &open_to_others) != CADRE_OK) {
            snprintf(ret_report->fault, sizeof ret_report->fault, "%s", open_to_others.text);
        }
    } else if (status == CADRE_OK) {
        status = report_certificates(text, path, what, ret_report, error);
    }
    tls_secret_free(text);
    return status;
}

void tls_report_free(struct tls_report *report)
{
    free(report->certificates);
    *report = (struct tls_report){.certificates = NULL};
}

uint64_t tls_certificate_ends_s(const char *pem, size_t length)
{
    struct tls_certificate_info info = {.not_after_s = 0};
    BIO *bio = length <= TLS_FILE_BYTES_MAX ? BIO_new_mem_buf(pem, (int)length) : NULL;
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    if (certificate != NULL) {
        tls_certificate_read_info(certificate, &info);
    }
    X509_free(certificate);
    BIO_free(bio);
    ERR_clear_error();
    return info.not_after_s;
}
