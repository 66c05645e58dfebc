/* SPDX-License-Identifier: Apache-2.0
 * The first values of a new variable, sent to its shards: initial values, or those of the
 * checkpoint that the job goes on from. Pieces are whole rows and do not depend on the shards. */
#ifndef CADRE_RUNTIME_SERVED_VALUES_H
#define CADRE_RUNTIME_SERVED_VALUES_H

#include "worker/library/runtime/served/served.h"

struct cadre_strategy;

/* Fills its shards, which exist, with the initializer's values. */
cadre_status served_initialize(
    cadre_variable *variable, const cadre_initializer *initializer, struct cadre_error *error);

/* Fills it and sets its steps. *ret_restored: false when the job goes on from no checkpoint, or
 * from one without the variable after its first step; before the first step that is NOT_FOUND.
 * INVALID_ARGUMENT: it has another type or shape there. */
cadre_status served_restore(const struct cadre_strategy *strategy, cadre_variable *variable,
    bool *ret_restored, struct cadre_error *error);

/* Fills the slots and updates of a trained variable from the file of its value. A file that the
 * program named (cadre_restore), and one of a job that has begun, may be without them. */
cadre_status served_restore_slots(
    cadre_variable *variable, const struct optimizer_rule *rule, struct cadre_error *error);

#endif
