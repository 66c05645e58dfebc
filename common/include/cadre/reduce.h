/* SPDX-License-Identifier: Apache-2.0
 * From per-replica values to one value: reduce and gather.
 * (tf.distribute.Strategy.reduce, tf.distribute.Strategy.gather.)
 *
 * All of this is called from cross-replica context and is collective over the tasks: all call it
 * with values of equal types and shapes, all get the result. When a task is lost meanwhile, it is
 * done again over the values of those that are left; what some had got already, all get. In a task
 * that has not joined yet the result is over its own values. It belongs to the step before it.
 *
 * A value may have several components (cadre/values.h): each is combined by itself, all in one
 * collective. Ragged and sparse ones are not reduced (INVALID_ARGUMENT). On success each *ret_ is
 * the caller's to release, on error it is NULL. INVALID_ARGUMENT names the shapes that do not fit;
 * it does no harm. */
#ifndef CADRE_REDUCE_H
#define CADRE_REDUCE_H

#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/strategy.h"
#include "cadre/tensor.h"
#include "cadre/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors on GPUs are copied to the memory of the host first; results are in it, always. */

#define CADRE_AXIS_NONE INT32_MIN /* of cadre_reduce: combine whole tensors, elementwise */

/* Combines the replicas' tensors of `value`, which has one component. `op` is CADRE_SUM or
 * CADRE_MEAN.
 * CADRE_AXIS_NONE: elementwise; shapes are equal.
 * An axis in [-rank, rank): the tensors are summed along it as well; their sizes along it may
 * differ (0 included), the other dimensions are equal. CADRE_MEAN then divides by the number of
 * entries over all replicas, so partial batches weigh right.
 * CADRE_MEAN of integers gives CADRE_F64, else the type is kept. (tf.distribute.Strategy.reduce.)
 */
CADRE_API cadre_status cadre_reduce(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, int32_t axis, cadre_tensor **ret_tensor);

/* Reduces all components of `value` and along several axes at once: `axes` are `axis_count`
 * different axes that each component has (a negative one counts from its own last); 0: elementwise.
 * ret_tensors: one place for each component. Mean counts the entries of all the axes: (sum of all)
 * / (sum over the replicas of the product of their sizes). (tf.distribute.Strategy.reduce of a
 * nest, with a tuple as axis.) */
CADRE_API cadre_status cadre_reduce_values(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, const int32_t axes[], uint32_t axis_count,
    cadre_tensor *ret_tensors[]);

/* Combines a tensor that is no per-replica value. In a job of one task it is the same for all its
 * replicas: CADRE_MEAN gives it back (one reference more, or summed along the axes and divided by
 * their entries), CADRE_SUM is INVALID_ARGUMENT with more than one replica, but for a 0 of one
 * element: almost always a per-replica value was meant. In a job of several tasks it is this task's
 * value: CADRE_SUM adds up one value of each task, CADRE_MEAN divides by the number of tasks.
 * `axes` as above. (tf.distribute.Strategy.reduce of a plain value, as Mirrored and
 * MultiWorkerMirrored do it.) */
CADRE_API cadre_status cadre_reduce_tensor(cadre_strategy *strategy, cadre_reduce_op op,
    cadre_tensor *tensor, const int32_t axes[], uint32_t axis_count, cadre_tensor **ret_tensor);

/* Joins the replicas' tensors of each component along `axis`, in [0, rank), in order of replica
 * ids: rank at least 1, sizes along the axis may differ (0 included), the other dimensions are
 * equal. ret_tensors: one place for each component. Strings are not gathered (INVALID_ARGUMENT).
 * Ragged and sparse components (cadre/composite.h) are joined by rows, along axis 0: row splits and
 * indices go on counting, and the other dimensions of a dense shape are the largest there are.
 * After the loss of a task what its replicas had is not in it. (tf.distribute.Strategy.gather.) */
CADRE_API cadre_status cadre_gather(cadre_strategy *strategy, const cadre_per_replica *value,
    int32_t axis, cadre_tensor *ret_tensors[]);

/* Gathers a tensor that is no per-replica value. In a job of one task it is the same for all its
 * replicas, and given back as it is (one reference more, on its device). In a job of several tasks
 * it is this task's value: one of each task is joined, in order of ranks. `axis` and what is
 * refused as above. (tf.distribute.Strategy.gather of a plain value: OneDeviceStrategy, the default
 * strategy and MirroredStrategy give it back.) */
CADRE_API cadre_status cadre_gather_tensor(
    cadre_strategy *strategy, cadre_tensor *tensor, int32_t axis, cadre_tensor **ret_tensor);

#ifdef __cplusplus
}
#endif
#endif
