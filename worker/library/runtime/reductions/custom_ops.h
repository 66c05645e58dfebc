/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations of the program's own: its functions get their arguments, and their
 * results are checked before they are used. */
#ifndef CADRE_RUNTIME_CUSTOM_OPS_H
#define CADRE_RUNTIME_CUSTOM_OPS_H

#include <stdbool.h>

#include "cadre/cross_device.h"
#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Whether the functions and the kind in the options fit together. INVALID_ARGUMENT. */
cadre_status custom_ops_check(const cadre_cross_device_ops *ops, struct cadre_error *error);

/* Whether the strategy has functions, and they are called for this value (NULL: any), because there
 * is something to combine, or to copy elsewhere. The value and its destinations were checked. */
bool custom_ops_apply(const cadre_strategy *strategy, const cadre_per_replica *value,
    const cadre_destinations *destinations);

/* Values for the public `function`, each with its own destinations (NULL: all to the replicas'
 * devices). `batch`: it reduces several at once. */
struct custom_values {
    const cadre_per_replica *const *values;
    const cadre_destinations *destinations;
    uint32_t count;
    bool batch;
};
/* Reduces them by the program's functions. On error no result is set. */
cadre_status custom_ops_reduce(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const struct custom_values *values, cadre_per_replica *ret_values[], struct cadre_error *error);

/* Whether the strategy has a broadcast function. */
bool custom_ops_broadcast(const cadre_strategy *strategy);
/* Calls the program's broadcast function for a tensor. */
cadre_status custom_ops_broadcast_to(cadre_strategy *strategy, cadre_tensor *tensor,
    const cadre_destinations *destinations, cadre_per_replica **ret_value,
    struct cadre_error *error);

/* FAILED_PRECONDITION for `function` while the strategy's own functions run. */
cadre_status custom_ops_require_idle(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

#endif
