/* SPDX-License-Identifier: Apache-2.0
 * Destinations of results: named devices, or those of a variable. Results are in the memory of the
 * host, once, and referred to by each destination. */
#ifndef CADRE_RUNTIME_DESTINATIONS_H
#define CADRE_RUNTIME_DESTINATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/cross_device.h"
#include "cadre/replica.h"
#include "common/base/error.h"
#include "worker/library/runtime/strategy/device_list.h"

/* How many destinations a result has, at least one. `destinations` NULL: one for each replica of
 * this task. INVALID_ARGUMENT, FAILED_PRECONDITION: a destination does not exist here. */
cadre_status destinations_count(const cadre_strategy *strategy,
    const cadre_destinations *destinations, uint32_t *ret_targets, struct cadre_error *error);

/* The canonical names of the destinations, in order; the caller clears the list. Errors as
 * above. */
cadre_status destinations_list(const cadre_strategy *strategy,
    const cadre_destinations *destinations, struct device_list *ret_list,
    struct cadre_error *error);

/* Whether the only destination is the device of local replica 0. */
bool destinations_are(const cadre_strategy *strategy, const cadre_destinations *destinations);

/* A value with the `components` tensors, whose references it owns, at each destination. */
cadre_status destinations_fill(uint32_t targets, uint32_t components, cadre_tensor *tensors[],
    cadre_per_replica **ret_value, struct cadre_error *error);

#endif
