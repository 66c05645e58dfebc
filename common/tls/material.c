/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tls/material.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "common/tls/certificate.h"
#include "common/tls/pem_file.h"

#define WHAT_BYTES 320

/* What the checks work on. */
struct parsed {
    STACK_OF(X509) * chain; /* the certificate first */
    STACK_OF(X509) * roots;
    EVP_PKEY *key;
    char cert[WHAT_BYTES]; /* how messages name the files */
    char key_name[WHAT_BYTES];
    char ca[WHAT_BYTES];
};

static const char *text_of(const char *path)
{
    return path != NULL ? path : "";
}

static void set_expiry(const struct parsed *parsed, struct tls_material *material)
{
    struct tls_certificate_info facts = {.not_after_s = UINT64_MAX};
    if (parsed->chain != NULL) {
        tls_certificate_read_info(sk_X509_value(parsed->chain, 0), &facts);
    }
    material->not_after_s = facts.not_after_s;
    /* With several roots the one that expires last counts: a CA may be about to be replaced. */
    uint64_t roots_s = 0;
    for (int i = 0; i < sk_X509_num(parsed->roots); i++) {
        tls_certificate_read_info(sk_X509_value(parsed->roots, i), &facts);
        roots_s = facts.not_after_s > roots_s ? facts.not_after_s : roots_s;
    }
    material->not_after_s = roots_s < material->not_after_s ? roots_s : material->not_after_s;
}

static cadre_status check_pair(
    struct parsed *parsed, const struct tls_material *material, struct cadre_error *error)
{
    CADRE_TRY(tls_certificates_parse(material->cert_pem, parsed->cert, &parsed->chain, error));
    CADRE_TRY(tls_key_parse(material->key_pem, parsed->key_name, &parsed->key, error));
    bool fits = X509_check_private_key(sk_X509_value(parsed->chain, 0), parsed->key) == 1;
    ERR_clear_error();
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s does not belong to %s: put the two files there that were issued together",
            parsed->key_name, parsed->cert);
    }
    return CADRE_OK;
}

static cadre_status material_check(
    struct parsed *parsed, struct tls_material *material, struct cadre_error *error)
{
    CADRE_TRY(check_pair(parsed, material, error));
    CADRE_TRY(tls_certificates_parse(material->ca_pem, parsed->ca, &parsed->roots, error));
    X509 *own = sk_X509_value(parsed->chain, 0);
    cadre_status status = tls_certificate_identity(own, &material->identity, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "%s", parsed->cert);
    }
    CADRE_TRY(
        tls_certificate_check(own, parsed->chain, parsed->roots, parsed->cert, parsed->ca, error));
    set_expiry(parsed, material);
    return CADRE_OK;
}

/* The time alone is checked of the own certificate: which CA the servers want it of, they say. */
static cadre_status check_foreign(
    struct parsed *parsed, struct tls_material *material, struct cadre_error *error)
{
    CADRE_TRY(tls_certificates_parse(material->ca_pem, parsed->ca, &parsed->roots, error));
    if (material->cert_pem != NULL) {
        struct tls_certificate_info facts;
        char when[TLS_TIME_BYTES];
        CADRE_TRY(check_pair(parsed, material, error));
        tls_certificate_read_info(sk_X509_value(parsed->chain, 0), &facts);
        tls_time_text(facts.not_after_s, when);
        if (facts.not_after_s <= clock_wall_us() / CADRE_US_PER_S) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "%s (\"%s\") expired on %s: put a new one and its key there", parsed->cert,
                facts.subject, when);
        }
    }
    set_expiry(parsed, material);
    return CADRE_OK;
}

static cadre_status read_file(
    const char *path, const char *what, bool is_key, char **ret_pem, struct cadre_error *error)
{
    return path != NULL ? tls_file_read(path, what, is_key, ret_pem, error) : CADRE_OK;
}

static cadre_status read_files(const struct tls_files *files, bool foreign,
    struct tls_material *ret_material, struct cadre_error *error)
{
    struct parsed parsed = {.chain = NULL};
    *ret_material = (struct tls_material){.cert_pem = NULL};
    snprintf(parsed.cert, WHAT_BYTES, "the TLS certificate %.250s", text_of(files->cert));
    snprintf(parsed.key_name, WHAT_BYTES, "the TLS key %.250s", text_of(files->key));
    snprintf(parsed.ca, WHAT_BYTES, "the TLS CA %.250s", files->ca);
    cadre_status status =
        read_file(files->cert, parsed.cert, false, &ret_material->cert_pem, error);
    if (status == CADRE_OK) {
        status = read_file(files->key, parsed.key_name, true, &ret_material->key_pem, error);
    }
    if (status == CADRE_OK) {
        status = tls_file_read(files->ca, parsed.ca, false, &ret_material->ca_pem, error);
    }
    if (status == CADRE_OK) {
        status = (foreign ? check_foreign : material_check)(&parsed, ret_material, error);
    }
    sk_X509_pop_free(parsed.chain, X509_free);
    sk_X509_pop_free(parsed.roots, X509_free);
    EVP_PKEY_free(parsed.key);
    if (status != CADRE_OK) {
        tls_material_free(ret_material);
    }
    return status;
}

cadre_status tls_material_read(
    const struct tls_files *files, struct tls_material *ret_material, struct cadre_error *error)
{
    return read_files(files, false, ret_material, error);
}

cadre_status tls_material_read_foreign(
    const struct tls_files *files, struct tls_material *ret_material, struct cadre_error *error)
{
    CADRE_ASSERT((files->cert != NULL) == (files->key != NULL));
    return read_files(files, true, ret_material, error);
}

void tls_material_free(struct tls_material *material)
{
    free(material->cert_pem);
    tls_secret_free(material->key_pem);
    free(material->ca_pem);
    *material = (struct tls_material){.cert_pem = NULL};
}
