/* SPDX-License-Identifier: Apache-2.0
 * A closure in the thread that runs it: what its function may read. */
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
    const _Atomic uint64_t *cancelled; /* all closures up to this number */
    uint32_t argument_count;
    struct closure_argument arguments[CADRE_CLOSURE_ARGUMENTS_MAX];
};

/* The calling thread runs functions of that worker from now on; UINT32_MAX: of none. */
void closure_worker_enter(uint32_t index);

/* The calling thread runs the closure's function from now on. */
void closure_enter(cadre_closure *closure);
/* The function has returned. */
void closure_leave(cadre_closure *closure);

/* The calling thread, a replica's, works for that worker and that closure (NULL: none). */
void closure_inherit(uint32_t index, cadre_closure *closure);

/* The closure that the calling thread runs or works for; or NULL. */
cadre_closure *closure_current(void);

/* Whether the closure of the calling thread was cancelled meanwhile. */
bool closure_is_cancelled(void);

#endif
