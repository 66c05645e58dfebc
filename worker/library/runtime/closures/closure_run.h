/* SPDX-License-Identifier: Apache-2.0
 * One closure on its worker: from the bytes of its arguments to those of its outputs. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_RUN_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_RUN_H

#include <stdatomic.h>

#include "worker/library/runtime/closures/closure_inbox.h"
#include "worker/library/runtime/closures/closure_wire.h"
#include "worker/library/runtime/closures/worker_things.h"

struct closure_argument {
    cadre_tensor *tensor; /* one reference */
    struct worker_thing *thing;
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

/* The closure that the calling thread runs, or NULL. */
cadre_closure *closure_current(void);

/* Runs what START says and sends the result. An error is the connection's: the closure's own goes
 * to the chief. */
cadre_status closure_run(uint32_t worker, struct closure_inbox *inbox,
    const struct worker_things *things, const struct message *start, struct cadre_error *error);

#endif
