/* SPDX-License-Identifier: Apache-2.0
 * What a new variable begins with, streamed to its shards: initial values, or those of the
 * checkpoint that the job goes on from. Pieces are whole rows and do not depend on the shards. */
#ifndef CADRE_RUNTIME_SERVED_VALUES_H
#define CADRE_RUNTIME_SERVED_VALUES_H

#include "worker/library/runtime/served/served.h"

struct cadre_strategy;

/* Its shards are there. */
cadre_status served_initialize(
    cadre_variable *variable, const cadre_initializer *initializer, struct cadre_error *error);

/* With its steps. *ret_restored: false when the job goes on from no checkpoint;
 * or from one without the variable, after its first step. Before it that is NOT_FOUND.
 * INVALID_ARGUMENT: it has another type or shape there. */
cadre_status served_restore(const struct cadre_strategy *strategy, cadre_variable *variable,
    bool *ret_restored, struct cadre_error *error);

/* Of one that is trained: its slots and updates, where its value came from. One that the program
 * has named (cadre_restore) need not have them, nor one of a job that has begun. */
cadre_status served_restore_slots(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error);

#endif
