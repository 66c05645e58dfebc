/* SPDX-License-Identifier: Apache-2.0
 * Losses that add up: what each replica divides by, so that the sum over the replicas (of losses,
 * and of their gradients) is the mean over the global batch, however its rows are spread.
 * They compute on the host: FAILED_PRECONDITION for tensors on a GPU, where kernels divide by
 * cadre_replica_global_rows themselves. */
#ifndef CADRE_LOSS_H
#define CADRE_LOSS_H

#include "cadre/replica.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The sum of `per_example_loss` (a floating type, rank at least 1, as a rule one loss a row),
 * divided by the size of the global batch: a scalar of the same type, the caller's. All replicas'
 * results sum to the mean over the batch.
 * `sample_weight`: NULL, or factors of the losses' type: a scalar, of the losses' shape, or one for
 * each row (rank 1). `global_batch_size`: a scalar of an integer type, not negative; NULL: in a
 * step with a batch the rows of all replicas (cadre_replica_global_rows), else the rows of
 * `per_example_loss` times the number of replicas. Of 0 rows the loss is 0. In cross-replica
 * context `replica` is NULL and the size must be given (FAILED_PRECONDITION). INVALID_ARGUMENT: a
 * scalar loss, types and shapes that do not fit, a size that is negative or no scalar integer, NULL
 * for both in a replica function. On error *ret_loss is NULL. (tf.nn.compute_average_loss; it
 * counts local rows times replicas also where batches are uneven, which weighs the rows of small
 * slices too much.) */
CADRE_API cadre_status cadre_compute_average_loss(const cadre_replica *replica,
    const cadre_tensor *per_example_loss, const cadre_tensor *sample_weight,
    const cadre_tensor *global_batch_size, cadre_tensor **ret_loss);

/* The sum of `regularization_loss` (a floating type, any shape), divided by the number of replicas:
 * a scalar, the caller's. Every replica counts the same penalty, and their sum counts it once.
 * FAILED_PRECONDITION in cross-replica context; in a replica function `replica` is its own one, and
 * NULL is INVALID_ARGUMENT. (tf.nn.scale_regularization_loss.) */
CADRE_API cadre_status cadre_scale_regularization_loss(
    const cadre_replica *replica, const cadre_tensor *regularization_loss, cadre_tensor **ret_loss);

#ifdef __cplusplus
}
#endif
#endif
