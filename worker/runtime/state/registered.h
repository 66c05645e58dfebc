/* SPDX-License-Identifier: Apache-2.0
 * State of the program's own that belongs to the job's: bytes under a name. In checkpoints and in
 * the space of state.h it is a tensor of bytes called "state/<name>". */
#ifndef CADRE_RUNTIME_REGISTERED_H
#define CADRE_RUNTIME_REGISTERED_H

#include <stdbool.h>
#include <stddef.h>

#include "cadre/strategy.h"
#include "common/model/limits.h"

#define REGISTERED_PREFIX "state/"

struct registered_state {
    char name[LIMIT_NAME_BYTES];
    void *pointer; /* the program's */
    size_t size;
    void *kept; /* while a state is received: what it was; else NULL */
};

/* Whether one of them stands in checkpoints under `name`. */
bool registered_stands_as(const cadre_strategy *strategy, const char *name);

/* Forgets all of them: at the strategy's end. */
void registered_free(cadre_strategy *strategy);

#endif
