/* SPDX-License-Identifier: Apache-2.0
 * PEM files: read with care, and the key in one. */
#ifndef CADRE_TLS_PEM_FILE_H
#define CADRE_TLS_PEM_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "common/base/error.h"

struct evp_pkey_st;

/* Reads a whole file; `what` begins every sentence: "the TLS key /etc/x.pem". A `secret` that
 * others could use is PERMISSION_DENIED. *ret_text is the caller's, to free() or, a secret, to
 * tls_secret_free(); on error it is as it was. */
cadre_status tls_file_read(
    const char *path, const char *what, bool secret, char **ret_text, struct cadre_error *error);

/* A key that others can read is no secret: PERMISSION_DENIED. Root may lend one to a group, that of
 * the daemon: so packages install keys, and systemd hands credentials over. */
cadre_status tls_file_mode_check(
    const struct stat *info, const char *what, struct cadre_error *error);

/* Wipes and frees a PEM text; NULL is fine. */
void tls_secret_free(char *pem);

/* The private key of a PEM text; EVP_PKEY_free() is the caller's. INVALID_ARGUMENT: there is none,
 * or it is locked by a password. */
cadre_status tls_key_parse(
    const char *pem, const char *what, struct evp_pkey_st **ret_key, struct cadre_error *error);

#endif
