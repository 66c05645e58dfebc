/* SPDX-License-Identifier: Apache-2.0
 * See argument.h. */
#include "worker/library/device/argument.h"

#include <stddef.h>

cadre_status argument_require(
    const void *pointer, const char *function, const char *name, struct cadre_error *error)
{
    return pointer != NULL ? CADRE_OK
                           : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                                 "%s was given NULL as its argument '%s', which cannot be left out",
                                 function, name);
}

cadre_status argument_status(cadre_status returned)
{
    int number = (int)returned;
    return number >= CADRE_OK && number <= CADRE_UNAUTHENTICATED ? returned : CADRE_UNKNOWN;
}
