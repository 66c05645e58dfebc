/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations of the program's own: its functions are given what they need, and what
 * they leave is looked at before it is believed. */
#ifndef CADRE_RUNTIME_CUSTOM_OPS_H
#define CADRE_RUNTIME_CUSTOM_OPS_H

#include <stdbool.h>

#include "cadre/cross_device.h"
#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Whether functions and a kind that were given go together. INVALID_ARGUMENT. */
cadre_status custom_ops_check(const cadre_cross_device_ops *ops, struct cadre_error *error);

/* Whether the strategy has functions, and these are for this value (NULL: any): there is something
 * to combine, or to bring elsewhere. It and its destinations were checked. */
bool custom_ops_apply(const cadre_strategy *strategy, const cadre_per_replica *value,
    const cadre_destinations *destinations);

/* Values that were taken, each to its own destinations (NULL: all to the replicas' devices), for
 * the public `function`. `batch`: it reduces several at once. On error nothing is given. */
struct custom_values {
    const cadre_per_replica *const *values;
    const cadre_destinations *destinations;
    uint32_t count;
    bool batch;
};
cadre_status custom_ops_reduce(cadre_strategy *strategy, const char *function, cadre_reduce_op op,
    const struct custom_values *values, cadre_per_replica *ret_values[], struct cadre_error *error);

/* Whether the strategy has a function for it, and this one's call. */
bool custom_ops_broadcast(const cadre_strategy *strategy);
cadre_status custom_ops_broadcast_to(cadre_strategy *strategy, cadre_tensor *tensor,
    const cadre_destinations *destinations, cadre_per_replica **ret_value,
    struct cadre_error *error);

/* Whether the strategy's functions are running: FAILED_PRECONDITION for `function`. */
cadre_status custom_ops_require_idle(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

#endif
