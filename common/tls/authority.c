/* SPDX-License-Identifier: Apache-2.0
 * Makes certificate authorities, and keys and certificates of them, over OpenSSL. Called by
 * `cadre pki`. */
#include "common/tls/authority.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "common/tls/certificate.h"
#include "common/tls/pem_file.h"

#define SERIAL_BYTES   16
#define X509_VERSION_3 2

void tls_key_pair_free(struct tls_key_pair *pair)
{
    free(pair->cert_pem);
    tls_secret_free(pair->key_pem);
    *pair = (struct tls_key_pair){NULL, NULL};
}

static cadre_status authority_fail(const char *what, struct cadre_error *error)
{
    char reason[160];
    ERR_error_string_n(ERR_peek_last_error(), reason, sizeof reason);
    ERR_clear_error();
    return cadre_error_set(error, CADRE_INTERNAL, "OpenSSL cannot make %s: %s", what, reason);
}

/* The text that was written to `bio`, owned by the caller; NULL when memory is out. */
static char *text_of(BIO *bio)
{
    char *bytes = NULL;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = length > 0 ? malloc((size_t)length + 1) : NULL;
    if (text != NULL) {
        memcpy(text, bytes, (size_t)length);
        text[length] = '\0';
    }
    return text;
}

static cadre_status write_pair(
    X509 *certificate, EVP_PKEY *key, struct tls_key_pair *ret_pair, struct cadre_error *error)
{
    BIO *cert_bio = BIO_new(BIO_s_mem());
    BIO *key_bio = BIO_new(BIO_s_secmem());
    if (cert_bio != NULL && key_bio != NULL && PEM_write_bio_X509(cert_bio, certificate) == 1 &&
        PEM_write_bio_PKCS8PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1) {
        ret_pair->cert_pem = text_of(cert_bio);
        ret_pair->key_pem = text_of(key_bio);
    }
    BIO_free(cert_bio);
    BIO_free(key_bio);
    if (ret_pair->cert_pem == NULL || ret_pair->key_pem == NULL) {
        tls_key_pair_free(ret_pair);
        return authority_fail("the text of a certificate", error);
    }
    return CADRE_OK;
}

static bool set_serial(X509 *certificate)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof bytes) != 1) {
        return false;
    }
    bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive, and always as long */
    BIGNUM *number = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool done =
        number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return done;
}

static bool set_subject(X509 *certificate, const char *common_name)
{
    return X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
               MBSTRING_ASC, (const unsigned char *)common_name, -1, -1, 0) == 1;
}

static bool set_times(X509 *certificate, const struct tls_validity *validity)
{
    return ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)validity->not_before_s) !=
               NULL &&
           ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)validity->not_after_s) != NULL;
}

static bool add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    bool done = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return done;
}

static bool authority_begin(X509 *certificate, EVP_PKEY *key, const struct tls_validity *validity)
{
    return certificate != NULL && key != NULL &&
           X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
           set_times(certificate, validity) && X509_set_pubkey(certificate, key) == 1;
}

cadre_status tls_authority_make(
    const struct tls_validity *validity, struct tls_key_pair *ret_ca, struct cadre_error *error)
{
    *ret_ca = (struct tls_key_pair){NULL, NULL};
    uint32_t tag = 0;
    char name[32];
    if (RAND_bytes((unsigned char *)&tag, sizeof tag) != 1) {
        return authority_fail("random bytes", error);
    }
    snprintf(name, sizeof name, "Cadre CA %08x", tag);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *ca = X509_new();
    bool made = authority_begin(ca, key, validity) && set_subject(ca, name) &&
                X509_set_issuer_name(ca, X509_get_subject_name(ca)) == 1 &&
                add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                add_extension(ca, ca, NID_subject_key_identifier, "hash") &&
                X509_sign(ca, key, EVP_sha256()) > 0;
    cadre_status status =
        made ? write_pair(ca, key, ret_ca, error) : authority_fail("an authority", error);
    X509_free(ca);
    EVP_PKEY_free(key);
    return status;
}

static bool add_name(GENERAL_NAMES *names, int type, const char *value)
{
    GENERAL_NAME *name = a2i_GENERAL_NAME(NULL, NULL, NULL, type, value, 0);
    if (name == NULL || sk_GENERAL_NAME_push(names, name) == 0) {
        GENERAL_NAME_free(name);
        return false;
    }
    return true;
}

static bool is_dns_name(const char *host)
{
    size_t length = strlen(host);
    return length > 0 && length < 254 &&
           strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
               length;
}

static cadre_status add_names(
    X509 *certificate, const struct tls_request *request, struct cadre_error *error)
{
    char uri[TLS_URI_BYTES];
    char dns[64];
    tls_identity_uri(&request->identity, uri);
    snprintf(dns, sizeof dns, "%s.cadre", tls_role_name(request->identity.role));
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    bool made = names != NULL && add_name(names, GEN_URI, uri) && add_name(names, GEN_DNS, dns);
    cadre_status status = CADRE_OK;
    for (size_t i = 0; made && status == CADRE_OK && i < request->host_count; i++) {
        const char *host = request->hosts[i];
        bool address = add_name(names, GEN_IPADD, host);
        if (!address && (!is_dns_name(host) || !add_name(names, GEN_DNS, host))) {
            status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "\"%.100s\" is neither a DNS name nor an IP address", host);
        }
    }
    if (status == CADRE_OK &&
        !(made && X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, 0) == 1)) {
        status = authority_fail("the names of a certificate", error);
    }
    GENERAL_NAMES_free(names);
    return status;
}

static cadre_status check_request(
    const struct tls_request *request, X509 *issuer, struct cadre_error *error)
{
    struct tls_certificate_info facts;
    tls_certificate_read_info(issuer, &facts);
    if (!facts.is_ca) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%s\" is no certificate of an authority, and can issue none", facts.subject);
    }
    if (request->identity.role < TLS_ROLE_COORDINATOR || request->identity.role >= TLS_ROLES ||
        !tls_name_is_valid(request->identity.name)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%.130s\" is no name of a %s: expected 1 to 127 letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit",
            request->identity.name, tls_role_name(request->identity.role));
    }
    if (request->validity.not_after_s > facts.not_after_s) {
        char when[TLS_TIME_BYTES];
        tls_time_text(facts.not_after_s, when);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the authority itself is valid until %s: use fewer --days, or make a new one",
            when);
    }
    return CADRE_OK;
}

static cadre_status authority_fill(X509 *certificate, EVP_PKEY *key, X509 *issuer,
    const struct tls_request *request, struct cadre_error *error)
{
    enum tls_role role = request->identity.role;
    bool serves = role == TLS_ROLE_COORDINATOR || role == TLS_ROLE_WORKER;
    char common_name[64]; /* of X.520's ub-common-name */
    snprintf(
        common_name, sizeof common_name, "%s/%.50s", tls_role_name(role), request->identity.name);
    bool made = authority_begin(certificate, key, &request->validity) &&
                set_subject(certificate, common_name) &&
                X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1 &&
                add_extension(certificate, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                add_extension(certificate, issuer, NID_key_usage, "critical,digitalSignature") &&
                add_extension(certificate, issuer, NID_ext_key_usage,
                    serves ? "serverAuth,clientAuth" : "clientAuth") &&
                add_extension(certificate, issuer, NID_subject_key_identifier, "hash") &&
                add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
    return made ? add_names(certificate, request, error) : authority_fail("a certificate", error);
}

cadre_status tls_authority_issue(const struct tls_key_pair *ca, const struct tls_request *request,
    struct tls_key_pair *ret_pair, struct cadre_error *error)
{
    STACK_OF(X509) *issuers = NULL;
    *ret_pair = (struct tls_key_pair){NULL, NULL};
    CADRE_TRY(tls_certificates_parse(ca->cert_pem, "the authority's certificate", &issuers, error));
    X509 *issuer = sk_X509_value(issuers, 0);
    BIO *bio = BIO_new_mem_buf(ca->key_pem, -1);
    EVP_PKEY *issuer_key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    cadre_status status = check_request(request, issuer, error);
    if (status == CADRE_OK &&
        (issuer_key == NULL || X509_check_private_key(issuer, issuer_key) != 1)) {
        ERR_clear_error();
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the authority's key is no PEM private key, or not that of its certificate");
    }
    if (status == CADRE_OK) {
        status = authority_fill(certificate, key, issuer, request, error);
    }
    if (status == CADRE_OK && X509_sign(certificate, issuer_key, EVP_sha256()) <= 0) {
        status = authority_fail("a signature", error);
    }
    if (status == CADRE_OK) {
        status = write_pair(certificate, key, ret_pair, error);
    }
    BIO_free(bio);
    X509_free(certificate);
    EVP_PKEY_free(key);
    EVP_PKEY_free(issuer_key);
    sk_X509_pop_free(issuers, X509_free);
    return status;
}
