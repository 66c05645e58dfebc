/* SPDX-License-Identifier: Apache-2.0
 * The gradients of one call: checked, reduced over the replicas, clipped; each is then in the
 * memory of its component. */
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

/* Makes the slots of variables that have a gradient and no slots yet. */
cadre_status gradients_build(
    cadre_optimizer *optimizer, const struct gradients *gradients, struct cadre_error *error);

/* Adds an entry to the turn for each variable with a gradient, in order. INVALID_ARGUMENT: types or
 * shapes that do not fit, or no gradient at all; FAILED_PRECONDITION: a variable that was not
 * built. */
cadre_status gradients_list(const cadre_optimizer *optimizer, const struct gradients *gradients,
    struct pending_update *turn, struct cadre_error *error);

/* Reduces the turn's gradients over all replicas and keeps them in its entries. `replica` NULL:
 * they are reduced already. */
cadre_status gradients_reduce(cadre_replica *replica, const struct gradients *gradients,
    const cadre_apply_options *options, struct pending_update *turn, struct cadre_error *error);

/* Clips by the optimizer's options. */
cadre_status gradients_clip(
    const cadre_optimizer *optimizer, struct pending_update *turn, struct cadre_error *error);

/* Copies each gradient to the device of the local replica's component. */
cadre_status gradients_move(struct pending_update *turn, uint32_t local, struct cadre_error *error);

/* The rows of a sparse gradient in ascending order, each once: rows that came several times are
 * summed, in the order in which they came. Both tensors are the caller's. In memory of the host. */
cadre_status gradient_rows(const cadre_sparse *sparse, cadre_tensor **ret_values,
    cadre_tensor **ret_rows, struct cadre_error *error);

#endif
