/* SPDX-License-Identifier: Apache-2.0
 * Tokens for the pages of --http: who a browser asks for, signed by the coordinator. A token is
 * "ROLE~EXPIRES~NAME~MAC": the role and name of the client that asked for it, when it expires, and
 * HMAC-SHA256 over all before, in hex. The key is in memory only, so a start of the coordinator
 * makes every earlier token void. Times are seconds of clock_boot_us(), which no one sets: a token
 * neither outlasts its time nor ends early when the wall clock is set. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_LOGIN_TOKEN_H
#define CADRE_COORDINATOR_DAEMON_BASE_LOGIN_TOKEN_H

#include <stdint.h>

#include "common/tls/identity.h"

#define LOGIN_KEY_BYTES   32
#define LOGIN_TOKEN_BYTES 256 /* with its terminator */
#define LOGIN_LASTS_S     UINT64_C(43200)

struct login_key {
    uint8_t bytes[LOGIN_KEY_BYTES];
};

/* A random key. UNAVAILABLE: the system gives no random bytes. */
cadre_status login_key_make(struct login_key *ret_key, struct cadre_error *error);

/* Overwrites the key. */
void login_key_wipe(struct login_key *key);

/* A token of this identity, for LOGIN_LASTS_S, but no longer than the certificate lasts that the
 * client showed; *ret_lasts_s is how long. `certificate_lasts_s`: UINT64_MAX where it showed none.
 * PERMISSION_DENIED: a worker or coordinator gets none; UNAUTHENTICATED: the certificate has
 * expired. */
cadre_status login_token_make(const struct login_key *key, const struct tls_identity *identity,
    uint64_t now_s, uint64_t certificate_lasts_s, char ret_token[LOGIN_TOKEN_BYTES],
    uint64_t *ret_lasts_s, struct cadre_error *error);

/* Whose it is. UNAUTHENTICATED: it has expired, was altered, or was made with another key; which of
 * these takes the same time for every text of a length. */
cadre_status login_token_check(const struct login_key *key, const char *token, uint64_t now_s,
    struct tls_identity *ret_identity, struct cadre_error *error);

#endif
