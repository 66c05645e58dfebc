/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tls/material.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

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

static void set_expiry(const struct parsed *parsed, struct tls_material *material)
{
    struct tls_certificate_info facts;
    tls_certificate_read_info(sk_X509_value(parsed->chain, 0), &facts);
    material->not_after_s = facts.not_after_s;
    /* With several roots the one that expires last counts: a CA may be about to be replaced. */
    uint64_t roots_s = 0;
    for (int i = 0; i < sk_X509_num(parsed->roots); i++) {
        tls_certificate_read_info(sk_X509_value(parsed->roots, i), &facts);
        roots_s = facts.not_after_s > roots_s ? facts.not_after_s : roots_s;
    }
    material->not_after_s = roots_s < material->not_after_s ? roots_s : material->not_after_s;
}

static cadre_status material_check(
    struct parsed *parsed, struct tls_material *material, struct cadre_error *error)
{
    CADRE_TRY(tls_certificates_parse(material->cert_pem, parsed->cert, &parsed->chain, error));
    CADRE_TRY(tls_certificates_parse(material->ca_pem, parsed->ca, &parsed->roots, error));
    CADRE_TRY(tls_key_parse(material->key_pem, parsed->key_name, &parsed->key, error));
    X509 *own = sk_X509_value(parsed->chain, 0);
    bool fits = X509_check_private_key(own, parsed->key) == 1;
    ERR_clear_error();
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s does not belong to %s: put the two files there that were issued together",
            parsed->key_name, parsed->cert);
    }
    cadre_status status = tls_certificate_identity(own, &material->identity, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "%s", parsed->cert);
    }
    CADRE_TRY(
        tls_certificate_check(own, parsed->chain, parsed->roots, parsed->cert, parsed->ca, error));
    set_expiry(parsed, material);
    return CADRE_OK;
}

cadre_status tls_material_read(
    const struct tls_files *files, struct tls_material *ret_material, struct cadre_error *error)
{
    struct parsed parsed = {.chain = NULL};
    *ret_material = (struct tls_material){.cert_pem = NULL};
    snprintf(parsed.cert, WHAT_BYTES, "the TLS certificate %.250s", files->cert);
    snprintf(parsed.key_name, WHAT_BYTES, "the TLS key %.250s", files->key);
    snprintf(parsed.ca, WHAT_BYTES, "the TLS CA %.250s", files->ca);
    cadre_status status =
        tls_file_read(files->cert, parsed.cert, false, &ret_material->cert_pem, error);
    if (status == CADRE_OK) {
        status = tls_file_read(files->key, parsed.key_name, true, &ret_material->key_pem, error);
    }
    if (status == CADRE_OK) {
        status = tls_file_read(files->ca, parsed.ca, false, &ret_material->ca_pem, error);
    }
    if (status == CADRE_OK) {
        status = material_check(&parsed, ret_material, error);
    }
    sk_X509_pop_free(parsed.chain, X509_free);
    sk_X509_pop_free(parsed.roots, X509_free);
    EVP_PKEY_free(parsed.key);
    if (status != CADRE_OK) {
        tls_material_free(ret_material);
    }
    return status;
}

void tls_material_free(struct tls_material *material)
{
    free(material->cert_pem);
    tls_secret_free(material->key_pem);
    free(material->ca_pem);
    *material = (struct tls_material){.cert_pem = NULL};
}
