/* SPDX-License-Identifier: Apache-2.0
 * Caching scopes: the first read of a variable makes a copy, and later reads return it. A scope
 * that is entered in cross-replica context is the process's, because replicas that run meanwhile
 * are in it too; each replica may have one of its own instead. */
#ifndef CADRE_RUNTIME_CACHING_SCOPE_H
#define CADRE_RUNTIME_CACHING_SCOPE_H

#include <stdint.h>

#include "worker/library/runtime/variables/variable.h"

/* In a scope: the copy from the first read of the variable. NULL: in no scope, or no memory, and
 * then the caller reads the variable itself. Any thread. */
const void *caching_scope_read(const cadre_variable *variable);

/* The replica's function has returned: its own scope ends, in its thread. */
void caching_scope_end(void);

/* A step was undone: drops the copies that were read in it. */
void caching_scope_forget_step(const cadre_strategy *strategy);
/* Drops the copies of a variable that ends. */
void caching_scope_forget(const cadre_variable *variable);

#endif
