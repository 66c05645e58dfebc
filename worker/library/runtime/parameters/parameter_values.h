/* SPDX-License-Identifier: Apache-2.0
 * What a new parameter begins with, streamed to its shards: initial values, or those of the
 * checkpoint that the job goes on from. Pieces are whole rows and do not depend on the shards. */
#ifndef CADRE_RUNTIME_PARAMETER_VALUES_H
#define CADRE_RUNTIME_PARAMETER_VALUES_H

#include "worker/library/runtime/parameters/parameters.h"

struct cadre_strategy;

/* Its shards are there. */
cadre_status parameter_initialize(
    cadre_parameter *parameter, const cadre_initializer *initializer, struct cadre_error *error);

/* With what the optimizer remembers. *ret_restored: false when the job goes on from no checkpoint;
 * or from one without the parameter, after its first step. Before it that is NOT_FOUND.
 * INVALID_ARGUMENT: it has another type or shape there. */
cadre_status parameter_restore(const struct cadre_strategy *strategy, cadre_parameter *parameter,
    bool *ret_restored, struct cadre_error *error);

#endif
