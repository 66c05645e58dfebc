/* SPDX-License-Identifier: Apache-2.0
 * A closure as the thread that runs it knows it: what its function may ask for. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/cluster_coordinator.h"
#include "worker/library/runtime/closures/worker_objects.h"

struct closure_argument {
    cadre_tensor *tensor; /* one reference */
    struct worker_object *object;
};

struct cadre_closure {
    uint64_t number;
    uint32_t worker;
    const _Atomic uint64_t *cancelled; /* up to this number */
    uint32_t argument_count;
    struct closure_argument arguments[CADRE_CLOSURE_ARGUMENTS_MAX];
};

/* The worker whose function the calling thread runs from now on; UINT32_MAX: of none. */
void closure_worker_enter(uint32_t index);

/* The calling thread runs its function from now on; and is done with it. */
void closure_enter(cadre_closure *closure);
void closure_leave(cadre_closure *closure);

/* The calling thread works for that worker, and that closure (NULL: none): a replica's. */
void closure_inherit(uint32_t index, cadre_closure *closure);

/* The closure that the calling thread runs, or works for; or NULL. */
cadre_closure *closure_current(void);

/* Whether the calling thread runs one that was cancelled meanwhile. */
bool closure_is_cancelled(void);

#endif
