/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tls/pem_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/tls/material.h"

cadre_status tls_file_mode_check(
    const struct stat *info, const char *what, struct cadre_error *error)
{
    mode_t allowed = info->st_uid == 0 ? S_IRWXU | S_IRGRP : S_IRWXU;
    if ((info->st_mode & (S_IRWXU | S_IRWXG | S_IRWXO) & ~allowed) != 0) {
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "%s has mode %04o: others could use it; `chmod 600` it (0640 is fine for a file of "
            "root's)",
            what, (unsigned)(info->st_mode & 07777));
    }
    return CADRE_OK;
}

cadre_status tls_file_read(
    const char *path, const char *what, bool secret, char **ret_text, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t size = 0;
    struct stat info;
    cadre_status status = file_open_regular(path, &fd, &size, error);
    if (status == CADRE_PERMISSION_DENIED) {
        return cadre_error_set(error, status,
            "%s may not be read by the user %u, as which this process runs: `chown` it, and its "
            "folder",
            what, (unsigned)geteuid());
    }
    if (status != CADRE_OK) {
        return strcmp(what, path) == 0 ? status : cadre_error_wrap(error, status, "%s", what);
    }
    if (secret && fstat(fd, &info) != 0) {
        return cadre_error_errno(error, errno, "%s", what);
    }
    if (secret) {
        CADRE_TRY(tls_file_mode_check(&info, what, error));
    }
    if (size > TLS_FILE_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: %llu bytes are too many for a PEM file", what, (unsigned long long)size);
    }
    size_t length = 0;
    return file_read_fd(fd, what, size, TLS_FILE_BYTES_MAX, ret_text, &length, error);
}

void tls_secret_free(char *pem)
{
    if (pem != NULL) {
        OPENSSL_cleanse(pem, strlen(pem));
    }
    free(pem);
}

/* A key with a password is refused: a daemon has no terminal to prompt on. */
static int no_password(char *buffer, int size, int writing, void *user)
{
    (void)buffer;
    (void)size;
    (void)writing;
    *(bool *)user = true;
    return -1;
}

cadre_status tls_key_parse(
    const char *pem, const char *what, struct evp_pkey_st **ret_key, struct cadre_error *error)
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
