/* SPDX-License-Identifier: Apache-2.0
 * The border between libcadre's inside, where errors are values, and its public functions. */
#ifndef CADRE_RUNTIME_BORDER_H
#define CADRE_RUNTIME_BORDER_H

#include "cadre/replica.h"
#include "common/base/error.h"

/* Ends a public function: leaves the message of a failure with the calling thread. */
cadre_status border(cadre_status status, struct cadre_error *error);

/* The replica whose function the calling thread runs, or NULL. */
cadre_replica *context_replica(void);
void context_enter(cadre_replica *replica); /* NULL: back to cross-replica context */

/* FAILED_PRECONDITION in a replica function, which may not call `function`. */
cadre_status context_require_cross(const char *function, struct cadre_error *error);

#endif
