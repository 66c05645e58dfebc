/* SPDX-License-Identifier: Apache-2.0
 * Caching scopes: what the first read of a variable gave is what the others give. One that is
 * entered in cross-replica context is the process's, since replicas that run meanwhile are in it
 * too; each replica may have one of its own instead. */
#ifndef CADRE_RUNTIME_CACHING_SCOPE_H
#define CADRE_RUNTIME_CACHING_SCOPE_H

#include <stdint.h>

#include "worker/library/runtime/variables/variable.h"

/* In a scope: the copy of what the variable held when it was first read there. NULL: not in one, or
 * no memory, and then the variable itself is to be read. Any thread. */
const void *caching_scope_read(const cadre_variable *variable);

/* The replica's function has returned: its own scope ends, in its thread. */
void caching_scope_end(void);

/* A step was undone: what was read in it is forgotten. The variable is about to go: likewise. */
void caching_scope_forget_step(const cadre_strategy *strategy);
void caching_scope_forget(const cadre_variable *variable);

#endif
