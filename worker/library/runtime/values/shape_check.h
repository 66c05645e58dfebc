/* SPDX-License-Identifier: Apache-2.0
 * Checks of values before they are combined over replicas. */
#ifndef CADRE_RUNTIME_SHAPE_CHECK_H
#define CADRE_RUNTIME_SHAPE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

/* INVALID_ARGUMENT when the value has not one tensor for each replica of this task, or has no
 * components. */
cadre_status shape_check_replicas(
    const cadre_strategy *strategy, const cadre_per_replica *value, struct cadre_error *error);

/* INVALID_ARGUMENT when the local replicas' tensors of a component differ in type or shape, but for
 * the sizes along the axes marked in `along`; `done` is the operation, for the message. */
cadre_status shape_check_alike(cadre_per_replica *value, uint32_t component,
    const bool along[CADRE_RANK_MAX], const char *done, struct cadre_error *error);

/* INVALID_ARGUMENT: there are ragged or sparse components, which cannot be `done`. */
cadre_status shape_check_plain(
    const cadre_per_replica *value, const char *done, struct cadre_error *error);

/* INVALID_ARGUMENT: the local replicas differ in which components are ragged or sparse, or their
 * tensors do not fit together. They are in the memory of the host. */
cadre_status shape_check_composites(const cadre_per_replica *value, struct cadre_error *error);

#endif
