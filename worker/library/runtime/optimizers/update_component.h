/* SPDX-License-Identifier: Apache-2.0
 * One update of one component of a variable, with its slots, in the component's memory. */
#ifndef CADRE_RUNTIME_UPDATE_COMPONENT_H
#define CADRE_RUNTIME_UPDATE_COMPONENT_H

#include "worker/library/runtime/optimizers/pending_update.h"

/* Whether this local replica updates its component: of a component that all replicas of the task
 * share only the first does. */
bool component_is_updated_by(const cadre_variable *variable, uint32_t local);

/* Keeps old values of the variable and its slots, for an update that may be undone.
 * RESOURCE_EXHAUSTED. */
cadre_status update_save_old(const struct optimized *of, uint32_t local, struct cadre_error *error);

/* Updates the component, whose gradient is in the same memory. Fails on devices alone. */
cadre_status update_component(cadre_optimizer *optimizer, const struct pending_update_part *part,
    uint32_t local, struct cadre_error *error);

#endif
