/* SPDX-License-Identifier: Apache-2.0
 * Gradients of variables on parameter servers: the servers apply the rule that they were given. */
#ifndef CADRE_RUNTIME_PUSH_GRADIENTS_H
#define CADRE_RUNTIME_PUSH_GRADIENTS_H

#include "worker/library/runtime/optimizers/gradients.h"

/* Whether they are of such variables. INVALID_ARGUMENT: some are, and some are not, or one is gone.
 */
cadre_status gradients_are_served(
    const struct gradients *gradients, bool *ret_served, struct cadre_error *error);

/* Reduced over the replicas, unless `replica` is NULL, clipped, and pushed by the first. */
cadre_status push_gradients(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct cadre_error *error);

#endif
