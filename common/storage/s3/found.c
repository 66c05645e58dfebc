/* SPDX-License-Identifier: Apache-2.0
 * Credentials that were found, whatever the source: checked, and kept. */
#include <string.h>

#include "common/storage/s3/sources.h"

/* Keys and tokens are printable ASCII without spaces; "/" and "," end an access key in a header. */
static cadre_status copy(const struct s3_found *found, const char *what, const char *refused,
    const char *text, char *ret_copy, size_t room, struct cadre_error *error)
{
    text += strspn(text, " \t\r\n");
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1]) != NULL) {
        bytes--;
    }
    if (bytes >= room) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the %s has %zu bytes, more than %zu: is it the right text?", found->source, what,
            bytes, room - 1);
    }
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] <= ' ' || text[i] > '~' || strchr(refused, text[i]) != NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: byte %zu of the %s is in no such text: is it cut or quoted wrongly?",
                found->source, i + 1, what);
        }
    }
    memcpy(ret_copy, text, bytes);
    ret_copy[bytes] = '\0';
    return CADRE_OK;
}

cadre_status s3_found_fill(
    struct s3_found *found, const struct s3_credentials *texts, struct cadre_error *error)
{
    const char *token = texts->session_token != NULL ? texts->session_token : "";
    CADRE_TRY(copy(found, "access key", "/,", texts->access_key, found->access_key,
        sizeof found->access_key, error));
    CADRE_TRY(copy(found, "secret key", "", texts->secret_key, found->secret_key,
        sizeof found->secret_key, error));
    CADRE_TRY(copy(found, "session token", "", token, found->session_token,
        sizeof found->session_token, error));
    if (found->access_key[0] == '\0' || found->secret_key[0] == '\0') {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s: the %s key is empty: set it",
            found->source, found->access_key[0] == '\0' ? "access" : "secret");
    }
    found->credentials = (struct s3_credentials){
        .access_key = found->access_key,
        .secret_key = found->secret_key,
        .session_token = found->session_token,
        .ends_us = texts->ends_us,
        .source = found->source,
    };
    return CADRE_OK;
}
