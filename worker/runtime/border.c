/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/border.h"

#include <stdarg.h>
#include <stdio.h>

#include "cadre/program.h"
#include "cadre/strategy.h"
#include "worker/device/argument.h"

static _Thread_local cadre_replica *current;

cadre_status border(cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        error->code = status;
        cadre_error_publish(error);
    }
    return status;
}

cadre_status cadre_fail(cadre_status status, const char *format, ...)
{
    struct cadre_error error = {.code = argument_status(status)};
    if (error.code == CADRE_OK) {
        return CADRE_OK;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.text, sizeof error.text, format, arguments);
    va_end(arguments);
    return cadre_error_publish(&error);
}

cadre_replica *context_replica(void)
{
    return current;
}

void context_enter(cadre_replica *replica)
{
    current = replica;
}

bool cadre_in_cross_replica_context(void)
{
    return current == NULL;
}

cadre_status context_require_cross(const char *function, struct cadre_error *error)
{
    if (current != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called inside a replica function; call it between steps, in cross-replica "
            "context",
            function);
    }
    return CADRE_OK;
}
