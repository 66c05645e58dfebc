/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/login_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#define MAC_BYTES  32
#define MAC_DIGITS (2 * MAC_BYTES)
#define SEPARATOR  '~' /* in no role and no name */

cadre_status login_key_make(struct login_key *ret_key, struct cadre_error *error)
{
    if (RAND_bytes(ret_key->bytes, LOGIN_KEY_BYTES) != 1) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "the system gives no random bytes for the key of tokens");
    }
    return CADRE_OK;
}

void login_key_wipe(struct login_key *key)
{
    OPENSSL_cleanse(key, sizeof *key);
}

/* The MAC of `size` bytes of text, in hex. */
static bool login_token_mac(
    const struct login_key *key, const char *text, size_t size, char ret_digits[MAC_DIGITS + 1])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (HMAC(EVP_sha256(), key->bytes, LOGIN_KEY_BYTES, (const unsigned char *)text, size, mac,
            &length) == NULL ||
        length != MAC_BYTES) {
        return false;
    }
    for (size_t i = 0; i < MAC_BYTES; i++) {
        snprintf(ret_digits + 2 * i, 3, "%02x", mac[i]);
    }
    return true;
}

static bool may_login(enum tls_role role)
{
    return role == TLS_ROLE_LOCAL || role == TLS_ROLE_CLIENT || role == TLS_ROLE_SUBMITTER ||
           role == TLS_ROLE_VIEWER;
}

cadre_status login_token_make(const struct login_key *key, const struct tls_identity *identity,
    uint64_t now_s, uint64_t certificate_lasts_s, char ret_token[LOGIN_TOKEN_BYTES],
    uint64_t *ret_lasts_s, struct cadre_error *error)
{
    char digits[MAC_DIGITS + 1];
    if (!may_login(identity->role)) {
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "the role %s (\"%s\") gets no token: use a certificate of a client, submitter or "
            "viewer",
            tls_role_name(identity->role), identity->name);
    }
    if (certificate_lasts_s == 0) {
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "the certificate of the %s \"%s\" has expired: `cadre pki issue --force` renews it",
            tls_role_name(identity->role), identity->name);
    }
    *ret_lasts_s = certificate_lasts_s < LOGIN_LASTS_S ? certificate_lasts_s : LOGIN_LASTS_S;
    int size = snprintf(ret_token, LOGIN_TOKEN_BYTES - MAC_DIGITS - 2, "%s~%" PRIu64 "~%s",
        tls_role_name(identity->role), now_s + *ret_lasts_s, identity->name);
    if (!login_token_mac(key, ret_token, (size_t)size, digits)) {
        return cadre_error_set(error, CADRE_INTERNAL, "OpenSSL made no MAC of a token");
    }
    snprintf(ret_token + size, (size_t)(LOGIN_TOKEN_BYTES - size), "~%s", digits);
    return CADRE_OK;
}

static cadre_status refuse(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "the token is not of this start of the coordinator, or it is not whole: `cadre dashboard` "
        "prints an address with a new one");
}

/* "ROLE~EXPIRES~NAME", whose MAC is right: so it is as login_token_make() wrote it. */
static cadre_status take_identity(const char *text, size_t size, uint64_t *ret_expires_s,
    struct tls_identity *ret_identity, struct cadre_error *error)
{
    char copy[LOGIN_TOKEN_BYTES];
    memcpy(copy, text, size);
    copy[size] = '\0';
    char *expires = strchr(copy, SEPARATOR);
    char *name = expires != NULL ? strchr(expires + 1, SEPARATOR) : NULL;
    if (name == NULL) {
        return refuse(error);
    }
    *expires = '\0';
    *name = '\0';
    for (int role = TLS_ROLE_NONE; role < TLS_ROLES; role++) {
        if (may_login((enum tls_role)role) &&
            strcmp(copy, tls_role_name((enum tls_role)role)) == 0) {
            ret_identity->role = (enum tls_role)role;
        }
    }
    snprintf(ret_identity->name, sizeof ret_identity->name, "%s", name + 1);
    *ret_expires_s = strtoull(expires + 1, NULL, 10);
    return ret_identity->role != TLS_ROLE_NONE ? CADRE_OK : refuse(error);
}

cadre_status login_token_check(const struct login_key *key, const char *token, uint64_t now_s,
    struct tls_identity *ret_identity, struct cadre_error *error)
{
    char digits[MAC_DIGITS + 1];
    uint64_t expires_s = 0;
    size_t length = strnlen(token, LOGIN_TOKEN_BYTES);
    const char *end = length < LOGIN_TOKEN_BYTES ? strrchr(token, SEPARATOR) : NULL;
    *ret_identity = (struct tls_identity){.role = TLS_ROLE_NONE};
    if (end == NULL || length - (size_t)(end + 1 - token) != MAC_DIGITS ||
        !login_token_mac(key, token, (size_t)(end - token), digits) ||
        CRYPTO_memcmp(digits, end + 1, MAC_DIGITS) != 0) {
        return refuse(error);
    }
    CADRE_TRY(take_identity(token, (size_t)(end - token), &expires_s, ret_identity, error));
    if (expires_s <= now_s) {
        *ret_identity = (struct tls_identity){.role = TLS_ROLE_NONE};
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "the token has expired: `cadre dashboard` prints an address with a new one");
    }
    return CADRE_OK;
}
