/* SPDX-License-Identifier: Apache-2.0
 * Checks of what programs pass in: pointers that cannot be left out, and statuses of their
 * functions. */
#ifndef CADRE_WORKER_DEVICE_ARGUMENT_H
#define CADRE_WORKER_DEVICE_ARGUMENT_H

#include "common/base/error.h"

/* INVALID_ARGUMENT when `pointer`, the argument `name` of `function`, is NULL. */
cadre_status argument_require(
    const void *pointer, const char *function, const char *name, struct cadre_error *error);

/* The status that a function of the program returned, UNKNOWN for a number that is no status,
 * because some of those have a meaning inside. */
cadre_status argument_status(cadre_status returned);

#endif
