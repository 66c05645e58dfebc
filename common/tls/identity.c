/* SPDX-License-Identifier: Apache-2.0 */
#include "common/tls/identity.h"

#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static const char *const names[TLS_ROLES] = {
    [TLS_ROLE_NONE] = "none",
    [TLS_ROLE_LOCAL] = "local",
    [TLS_ROLE_COORDINATOR] = "coordinator",
    [TLS_ROLE_WORKER] = "worker",
    [TLS_ROLE_CLIENT] = "client",
    [TLS_ROLE_SUBMITTER] = "submitter",
    [TLS_ROLE_VIEWER] = "viewer",
};

const char *tls_role_name(enum tls_role role)
{
    return (unsigned)role < TLS_ROLES ? names[role] : names[TLS_ROLE_NONE];
}

bool tls_name_is_valid(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length < TLS_NAME_BYTES && strspn(name, LETTERS) > 0 &&
           strspn(name, LETTERS "._-") == length;
}

cadre_status tls_role_check(const char *word, enum tls_role *ret_role, struct cadre_error *error)
{
    for (int role = TLS_ROLE_COORDINATOR; role < TLS_ROLES; role++) {
        if (strcmp(word, names[role]) == 0) {
            *ret_role = (enum tls_role)role;
            return CADRE_OK;
        }
    }
    *ret_role = TLS_ROLE_NONE;
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "\"%.60s\" is no role: expected coordinator, worker, client, submitter or viewer", word);
}

cadre_status tls_name_check(const char *name, struct cadre_error *error)
{
    if (!tls_name_is_valid(name)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%.130s\" is no name: expected 1 to 127 letters, digits, '.', '_' or '-', beginning "
            "with a letter or digit",
            name);
    }
    return CADRE_OK;
}

cadre_status tls_identity_parse(
    const char *uri, size_t length, struct tls_identity *ret_identity, struct cadre_error *error)
{
    const size_t prefix = sizeof TLS_IDENTITY_PREFIX - 1;
    char text[TLS_URI_BYTES];
    *ret_identity = (struct tls_identity){TLS_ROLE_NONE, ""};
    bool fits = length < sizeof text && memchr(uri, '\0', length) == NULL;
    if (fits) {
        memcpy(text, uri, length);
        text[length] = '\0';
    }
    char *slash =
        fits && strncmp(text, TLS_IDENTITY_PREFIX, prefix) == 0 ? strchr(text + prefix, '/') : NULL;
    if (slash == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%.*s\" is not of the form spiffe://cadre/ROLE/NAME",
            (int)(length < TLS_URI_BYTES ? length : TLS_URI_BYTES), uri);
    }
    *slash = '\0';
    enum tls_role role;
    CADRE_TRY(tls_role_check(text + prefix, &role, error));
    CADRE_TRY(tls_name_check(slash + 1, error));
    ret_identity->role = role;
    snprintf(ret_identity->name, sizeof ret_identity->name, "%s", slash + 1);
    return CADRE_OK;
}

void tls_identity_uri(const struct tls_identity *identity, char ret_uri[TLS_URI_BYTES])
{
    snprintf(ret_uri, TLS_URI_BYTES, "%s%s/%s", TLS_IDENTITY_PREFIX, tls_role_name(identity->role),
        identity->name);
}
