/* SPDX-License-Identifier: Apache-2.0
 * The inside of cadre_reduce_to. */
#ifndef CADRE_RUNTIME_REDUCE_TO_H
#define CADRE_RUNTIME_REDUCE_TO_H

#include "cadre/cross_device.h"
#include "cadre/replica.h"
#include "common/base/error.h"

struct strategy_call;

/* The first check of each public `function`. Also in the function of a merge call: there it reduces
 * for this task, which must be the only one; and `call` stays empty. */
cadre_status reduce_to_enter(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* INVALID_ARGUMENT: it cannot be reduced in this way. */
cadre_status reduce_to_check(const cadre_strategy *strategy, cadre_reduce_op op,
    cadre_per_replica *value, struct cadre_error *error);

/* The results of one value that was checked, one for each component. */
cadre_status reduce_to_one(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const cadre_per_replica *value, cadre_tensor *ret_tensors[], struct cadre_error *error);

#endif
