/* SPDX-License-Identifier: Apache-2.0
 * Gradients of variables on parameter servers, which apply their rules. */
#ifndef CADRE_RUNTIME_PUSH_GRADIENTS_H
#define CADRE_RUNTIME_PUSH_GRADIENTS_H

#include "worker/library/runtime/optimizers/gradients.h"

/* Whether all are of variables on servers. INVALID_ARGUMENT: only some are, or one was released. */
cadre_status gradients_are_served(
    const struct gradients *gradients, bool *ret_served, struct cadre_error *error);

/* Reduced over the replicas, unless `replica` is NULL, clipped, and pushed by the first replica. */
cadre_status push_gradients(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct cadre_error *error);

#endif
