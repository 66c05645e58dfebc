/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tls/material.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/tls/certificate.h"

#define WHAT_BYTES 320

/* What the checks work on. */
struct parsed {
    STACK_OF(X509) * chain; /* the certificate first */
    STACK_OF(X509) * roots;
    EVP_PKEY *key;
    char cert[WHAT_BYTES]; /* how sentences call them */
    char key_name[WHAT_BYTES];
    char ca[WHAT_BYTES];
};

/* A key that others can read is no secret. Root may lend one to a group, that of the daemon: so
 * packages install keys, and systemd hands credentials over. */
static cadre_status check_mode(int fd, const char *what, struct cadre_error *error)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return cadre_error_errno(error, errno, "%s", what);
    }
    mode_t allowed = info.st_uid == 0 ? S_IRWXU | S_IRGRP : S_IRWXU;
    if ((info.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO) & ~allowed) != 0) {
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "%s has mode %04o: others could use it; `chmod 600` it (0640 is fine for a file of "
            "root's)",
            what, (unsigned)(info.st_mode & 07777));
    }
    return CADRE_OK;
}

static cadre_status read_text(
    const char *path, const char *what, bool secret, char **ret_text, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t size = 0;
    cadre_status status = file_open_regular(path, &fd, &size, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "%s", what);
    }
    if (secret) {
        CADRE_TRY(check_mode(fd, what, error));
    }
    if (size > TLS_FILE_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: %llu bytes are too many for a PEM file", what, (unsigned long long)size);
    }
    char *text = calloc(1, (size_t)size + 1);
    if (text == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory to read it", what);
    }
    size_t length = 0;
    ssize_t got = 1;
    while (length < size && got > 0) {
        got = TEMP_FAILURE_RETRY(read(fd, text + length, (size_t)size - length));
        length += got > 0 ? (size_t)got : 0;
    }
    *ret_text = text;
    if (got < 0) {
        return cadre_error_errno(error, errno, "%s", what);
    }
    return CADRE_OK;
}

/* Nobody is asked for a password. */
static int no_password(char *buffer, int size, int writing, void *user)
{
    (void)buffer;
    (void)size;
    (void)writing;
    *(bool *)user = true;
    return -1;
}

static cadre_status parse_key(
    const char *pem, const char *what, EVP_PKEY **ret_key, struct cadre_error *error)
{
    bool asked = false;
    BIO *bio = BIO_new_mem_buf(pem, -1);
    *ret_key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_password, &asked) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    if (*ret_key != NULL) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        asked ? "%s is locked by a password, which a daemon cannot be asked for; store it without "
                "one, in a file of mode 0600"
              : "%s: no PEM private key in it (\"-----BEGIN PRIVATE KEY-----\"); is it another "
                "file?",
        what);
}

static void note_times(const struct parsed *parsed, struct tls_material *material)
{
    struct tls_facts facts;
    tls_certificate_facts(sk_X509_value(parsed->chain, 0), &facts);
    material->not_before_s = facts.not_before_s;
    material->not_after_s = facts.not_after_s;
    /* With several roots the last of them counts: one may be on its way out. */
    uint64_t roots_s = 0;
    for (int i = 0; i < sk_X509_num(parsed->roots); i++) {
        tls_certificate_facts(sk_X509_value(parsed->roots, i), &facts);
        roots_s = facts.not_after_s > roots_s ? facts.not_after_s : roots_s;
    }
    material->not_after_s = roots_s < material->not_after_s ? roots_s : material->not_after_s;
}

static cadre_status check(
    struct parsed *parsed, struct tls_material *material, struct cadre_error *error)
{
    CADRE_TRY(tls_certificates_parse(material->cert_pem, parsed->cert, &parsed->chain, error));
    CADRE_TRY(tls_certificates_parse(material->ca_pem, parsed->ca, &parsed->roots, error));
    CADRE_TRY(parse_key(material->key_pem, parsed->key_name, &parsed->key, error));
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
    note_times(parsed, material);
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
        read_text(files->cert, parsed.cert, false, &ret_material->cert_pem, error);
    if (status == CADRE_OK) {
        status = read_text(files->key, parsed.key_name, true, &ret_material->key_pem, error);
    }
    if (status == CADRE_OK) {
        status = read_text(files->ca, parsed.ca, false, &ret_material->ca_pem, error);
    }
    if (status == CADRE_OK) {
        status = check(&parsed, ret_material, error);
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
    if (material->key_pem != NULL) {
        OPENSSL_cleanse(material->key_pem, strlen(material->key_pem));
    }
    free(material->cert_pem);
    free(material->key_pem);
    free(material->ca_pem);
    *material = (struct tls_material){.cert_pem = NULL};
}
