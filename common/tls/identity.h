/* SPDX-License-Identifier: Apache-2.0
 * The identity of a program in the cluster: a role and a name, as the certificate's URI
 * "spiffe://cadre/<role>/<name>" has them. */
#ifndef CADRE_TLS_IDENTITY_H
#define CADRE_TLS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

#define TLS_NAME_BYTES      128 /* as a worker's name: LIMIT_NAME_BYTES */
#define TLS_URI_BYTES       (TLS_NAME_BYTES + 48)
#define TLS_IDENTITY_PREFIX "spiffe://cadre/"

enum tls_role {
    TLS_ROLE_NONE,        /* no role: that of a zeroed identity */
    TLS_ROLE_LOCAL,       /* no certificate: a Unix socket, or loopback without TLS */
    TLS_ROLE_COORDINATOR, /* the server */
    TLS_ROLE_WORKER,
    TLS_ROLE_CLIENT,    /* all that an administrator may do */
    TLS_ROLE_SUBMITTER, /* submits, follows and cancels */
    TLS_ROLE_VIEWER,    /* reads only */
    TLS_ROLES
};

struct tls_identity {
    enum tls_role role;
    char name[TLS_NAME_BYTES]; /* "" of TLS_ROLE_LOCAL */
};

/* "worker"; "none" of TLS_ROLE_NONE. */
const char *tls_role_name(enum tls_role role);

/* One of the five roles that a certificate can have; INVALID_ARGUMENT (and TLS_ROLE_NONE) for
 * any other text. */
cadre_status tls_role_check(const char *word, enum tls_role *ret_role, struct cadre_error *error);

/* Names are 1 to 127 letters, digits, '.', '_' or '-', and begin with a letter or digit. */
bool tls_name_is_valid(const char *name);
/* INVALID_ARGUMENT, with a message, unless tls_name_is_valid(). */
cadre_status tls_name_check(const char *name, struct cadre_error *error);

/* Reads "spiffe://cadre/worker/host-a". INVALID_ARGUMENT: the message names the fault. */
cadre_status tls_identity_parse(
    const char *uri, size_t length, struct tls_identity *ret_identity, struct cadre_error *error);

/* The URI of an identity that a certificate can have. */
void tls_identity_uri(const struct tls_identity *identity, char ret_uri[TLS_URI_BYTES]);

#endif
