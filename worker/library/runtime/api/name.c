/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/api/api.h"

#include <string.h>

#include "common/model/limits.h"

#define SHOWN_BYTES 32 /* of a name that is too long */

cadre_status name_check(const char *what, const char *name, struct cadre_error *error)
{
    size_t length = name == NULL ? 0 : strnlen(name, LIMIT_NAME_BYTES);
    if (length == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the name of a %s is %s; it must hold 1 to %d bytes", what,
            name == NULL ? "NULL" : "empty", LIMIT_NAME_BYTES - 1);
    }
    if (length >= LIMIT_NAME_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the name of a %s that begins with '%.*s' is too long; it must hold 1 to %d bytes",
            what, SHOWN_BYTES, name, LIMIT_NAME_BYTES - 1);
    }
    for (size_t i = 0; i < length; i++) {
        if (name[i] < ' ' || name[i] > '~') {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the name of a %s holds byte 0x%02x at %zu; only printable ASCII is allowed", what,
                (unsigned)(unsigned char)name[i], i);
        }
    }
    return CADRE_OK;
}

cadre_status reported_name_check(const char *name, struct cadre_error *error)
{
    CADRE_TRY(name_check("metric", name, error));
    if (strpbrk(name, "<>&") != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the name of a metric holds '%c' (\"%s\"); name it without <, > and &",
            *strpbrk(name, "<>&"), name);
    }
    return CADRE_OK;
}
