/* SPDX-License-Identifier: Apache-2.0
 * Where results go to: devices that are named, or those of a variable. They are in the memory of
 * the host, there once, and referred to by each place. */
#ifndef CADRE_RUNTIME_DESTINATIONS_H
#define CADRE_RUNTIME_DESTINATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/cross_device.h"
#include "cadre/replica.h"
#include "common/base/error.h"
#include "worker/library/runtime/strategy/device_list.h"

/* How many places a result goes to, at least one. `destinations` NULL: one for each replica of this
 * task. INVALID_ARGUMENT, FAILED_PRECONDITION: there is no such place here. */
cadre_status destinations_count(const cadre_strategy *strategy,
    const cadre_destinations *destinations, uint32_t *ret_targets, struct cadre_error *error);

/* The canonical names of the places, in order; the caller clears it. Errors as above. */
cadre_status destinations_list(const cadre_strategy *strategy,
    const cadre_destinations *destinations, struct device_list *ret_list,
    struct cadre_error *error);

/* Whether there is one place, the device of local replica 0. */
bool destinations_are(const cadre_strategy *strategy, const cadre_destinations *destinations);

/* A value with `components` tensors, whose references are taken over, at each place. */
cadre_status destinations_fill(uint32_t targets, uint32_t components, cadre_tensor *tensors[],
    cadre_per_replica **ret_value, struct cadre_error *error);

#endif
