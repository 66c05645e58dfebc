/* SPDX-License-Identifier: Apache-2.0
 * The gradients of one call: looked at, reduced over the replicas, clipped; each is then where the
 * component is that it is for. */
#ifndef CADRE_RUNTIME_GRADIENTS_H
#define CADRE_RUNTIME_GRADIENTS_H

#include "worker/library/runtime/optimizers/pending_update.h"

/* As the program gave them. */
struct gradients {
    cadre_tensor *const *dense; /* [count]; NULL: all are sparse */
    const cadre_sparse *sparse; /* [count]; NULL: all are dense */
    cadre_variable *const *variables;
    size_t count;
};

/* Makes the slots of variables that have a gradient and none yet. */
cadre_status gradients_build(
    cadre_optimizer *optimizer, const struct gradients *gradients, struct cadre_error *error);

/* INVALID_ARGUMENT: types or shapes that do not fit, or no gradient at all; FAILED_PRECONDITION: a
 * variable that was not built. The turn's parts are then those that have a gradient, in order. */
cadre_status gradients_list(const cadre_optimizer *optimizer, const struct gradients *gradients,
    struct pending_update *turn, struct cadre_error *error);

/* Reduces what was listed over all replicas, and puts it into the turn's parts. `replica` NULL:
 * reduced already. */
cadre_status gradients_reduce(cadre_replica *replica, const struct gradients *gradients,
    const cadre_apply_options *options, struct pending_update *turn, struct cadre_error *error);

/* As the optimizer says. */
cadre_status gradients_clip(
    const cadre_optimizer *optimizer, struct pending_update *turn, struct cadre_error *error);

/* Brings each to where the component of a local replica is. */
cadre_status gradients_move(struct pending_update *turn, uint32_t local, struct cadre_error *error);

/* The rows of a sparse gradient in growing order, each once: what came several times is summed, in
 * the order in which it came. Both are the caller's to release. In memory of the host. */
cadre_status gradient_rows(const cadre_sparse *sparse, cadre_tensor **ret_values,
    cadre_tensor **ret_rows, struct cadre_error *error);

#endif
