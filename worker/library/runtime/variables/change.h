/* SPDX-License-Identifier: Apache-2.0
 * A change of variables from cross-replica context, of one or of all that a function of the program
 * writes to: the position of the program decides how it runs:
 *
 *     the task joins                   not at all: others made it, and the state came from them
 *     before the first step, or warm   at once, and alone
 *     in the function of a merge call  as a part of the current step
 *     else                             as a ledger step of its own, a collective of all replicas */
#ifndef CADRE_RUNTIME_CHANGE_H
#define CADRE_RUNTIME_CHANGE_H

#include "cadre/replica.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/change_note.h"
#include "worker/library/runtime/variables/variable.h"

struct change {
    const char *function; /* the public function, for messages */
    cadre_strategy *strategy;
    cadre_variable *variable; /* NULL: any variable; then `goes_on` */
    uint64_t key; /* of all that must be equal on all tasks; compared in a step of its own */
    /* Called for each local component, in a step by the thread of its replica: writes it. `output`
     * receives a tensor. */
    cadre_status (*each)(const struct change *change, uint32_t local, cadre_tensor **output,
        struct cadre_error *error);
    /* Writes what a task has once: the total, strings. NULL: nothing, and then the total of a
     * variable that is combined when read follows from its components. */
    cadre_status (*once)(const struct change *change, struct cadre_error *error);
    const char *value; /* the written value as text, for the message when tasks write different
                        * ones; NULL: none */
    bool goes_on;      /* `each` may write to other variables too */
    const void *what;
};

/* Runs a ledger step of the library's between two of the program's: no position of its loop. */
cadre_status change_run_step(cadre_strategy *strategy, cadre_replica_function function, void *user,
    uint32_t n_outputs, cadre_per_replica *ret_outputs[], struct cadre_error *error);

/* *ret_outputs (of each local component) is the caller's, and NULL in a task that joins;
 * `ret_outputs` NULL: the outputs are released. */
cadre_status change_make(
    const struct change *change, cadre_per_replica **ret_outputs, struct cadre_error *error);

#endif
