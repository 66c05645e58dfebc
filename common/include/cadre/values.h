/* SPDX-License-Identifier: Apache-2.0
 * Per-replica values: what replicas take and return, seen from cross-replica context.
 * (tf.distribute.DistributedValues, PerReplica.) */
#ifndef CADRE_VALUES_H
#define CADRE_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cadre/dataset.h"
#include "cadre/strategy.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For each local replica one or several tensors (components): a batch has as many as an element of
 * its dataset, an output of cadre_run has one. Components may have names (cadre/dataset.h). */
typedef struct cadre_per_replica cadre_per_replica;

/* One reference more, given back with release; NULL is passed through and allowed. Values that the
 * library hands out are *borrowed*: its comment says until when. Retain one to keep it longer, also
 * beyond the strategy. Of one that has ended retain gives NULL, and functions that take it
 * INVALID_ARGUMENT, unless 64 others have ended since. Any thread. */
CADRE_API cadre_per_replica *cadre_per_replica_retain(cadre_per_replica *value);

/* Gives one reference back; the last one frees the value and its references of tensors. NULL is
 * allowed. A release of what the program holds no reference of does nothing but warn and leave the
 * reason in cadre_error_message. Any thread. */
CADRE_API void cadre_per_replica_release(cadre_per_replica *value);

/* How many replicas it is of: those of this task. Of NULL 0. */
CADRE_API uint32_t cadre_per_replica_count(const cadre_per_replica *value);

/* How many components it has: tensors of each replica. Of NULL 0. */
CADRE_API uint32_t cadre_per_replica_components(const cadre_per_replica *value);

/* The tensors of component `component` of this task's replicas, in order of local id: an array of
 * cadre_per_replica_count tensors that lives as long as the value. NULL when there is no such
 * component, and of NULL. (tf.distribute.Strategy.experimental_local_results.) */
CADRE_API cadre_tensor *const *cadre_local_results(
    const cadre_per_replica *value, uint32_t component);

/* For which replica a value is made. (tf.distribute.experimental.ValueContext.) */
typedef struct cadre_value_context {
    uint32_t replica_id_in_sync_group; /* of the whole job */
    uint32_t num_replicas_in_sync;
} cadre_value_context;

/* Makes the value of one replica: 1 to CADRE_ELEMENT_TENSORS_MAX tensors, one reference of each,
 * and names of them, which are copied, or none; all replicas' have equally many, called alike. On
 * failure says why with cadre_fail. Other calls with the strategy are refused in it
 * (cadre/strategy.h). */
typedef cadre_status (*cadre_value_function)(
    const cadre_value_context *context, cadre_element *ret_value, void *user);

/* Calls `function` for each replica of this task, in order, in the calling thread; *ret_values is
 * the caller's to release. cadre_run and cadre_reduce take them. They are made once, for the ids
 * that the replicas have now, and stay with the replicas of this task: when tasks join and leave,
 * and the replicas get other ids, each still has the value that was made for it. INVALID_ARGUMENT:
 * the values do not have equally many tensors, or none; else what the function returned. For
 * cross-replica context. (tf.distribute.Strategy.experimental_distribute_values_from_function.) */
CADRE_API cadre_status cadre_values_from_function(cadre_strategy *strategy,
    cadre_value_function function, void *user, cadre_per_replica **ret_values);

/* One argument of a step: a per-replica value (a batch too), or a tensor that all replicas get as
 * it is. Exactly one of the two is not NULL. */
typedef struct cadre_argument {
    cadre_per_replica *values;
    cadre_tensor *tensor;
    /* What its components are called: a tensor 'rate', a batch's 'batch/image', or 'batch/0' and so
     * on where several have no name. NULL: they keep the names that they have. */
    const char *name;
} cadre_argument;

/* One value of all arguments' components, one after the other: a structure, to be reduced, gathered
 * or printed as one. (cadre_run_arguments takes several values as they are.)
 *
 *     const cadre_argument parts[] = {{.values = loss, .name = "loss"}, {.tensor = rate}};
 *     cadre_values_join(strategy, parts, 2, &both);
 *
 * It holds references of what it was joined of, and *ret_values is the caller's to release. With a
 * batch among the arguments it feeds the batch's samples, as the batch does. INVALID_ARGUMENT:
 * batches of several datasets (cadre_dataset_zip makes one of them), or of several steps; more than
 * CADRE_ELEMENT_TENSORS_MAX components in all. Cross-replica context. (tf.nest; the argument rules
 * of tf.distribute.Strategy.run.) */
CADRE_API cadre_status cadre_values_join(cadre_strategy *strategy, const cadre_argument arguments[],
    uint32_t argument_count, cadre_per_replica **ret_values);

/* What is called `name` in these values: a component of a batch or of an output of cadre_run, or a
 * structure of them: 'image' finds 'image/left' and 'image/right', as 'left' and 'right'. '0' and
 * '1' are what cadre_dataset_zip has put together.
 *
 *     cadre_values_named(outputs, 2, "loss", &loss);  // among the outputs of a step
 *     cadre_values_named(&batch, 1, "image", &image); // in a batch
 *
 * *ret_values is the caller's to release; it holds what it is part of, and a part of a batch feeds
 * the whole batch's samples. NOT_FOUND lists which names there are; INVALID_ARGUMENT: several
 * components are called so. Any context and thread. (batch["image"].) */
CADRE_API cadre_status cadre_values_named(cadre_per_replica *const values[], uint32_t n_values,
    const char *name, cadre_per_replica **ret_values);

/* A value of one component whose replicas have these tensors: one for each local replica, in order,
 * of which a reference more is taken. Or one tensor alone, which is a single value: its only local
 * result is the tensor itself, and what needs the values of several replicas refuses it.
 * Cross-replica context. (The regrouping of what replicas return; tf.distribute.DistributedValues;
 * tf.distribute.Strategy.experimental_local_results of a single value.) */
CADRE_API cadre_status cadre_values_from_tensors(cadre_strategy *strategy,
    cadre_tensor *const tensors[], uint32_t tensor_count, cadre_per_replica **ret_values);

/* Prints it, and a line's end, as TensorFlow does (cadre/tensor.h), of the replicas of this task:
 *
 *     PerReplica:{
 *       0: cadre_tensor([0.], shape=(1,), dtype=float32),
 *       1: cadre_tensor([1.], shape=(1,), dtype=float32)
 *     }
 *
 * One that TF would not wrap (cadre_per_replica_is_plain) is printed as its tensor, and several
 * components as a tuple, or by name as a dict, with tensors as in Python's repr:
 * (<cadre_tensor: shape=(), dtype=int64, numpy=1>, ...). Any context and thread. (print.) */
CADRE_API cadre_status cadre_value_print(const cadre_per_replica *value, FILE *file);

/* Whether all local replicas have the very same tensor as this component, so that TF would not wrap
 * it: an argument that was passed through, or a strategy of one replica. False when there is no
 * such component. */
CADRE_API bool cadre_per_replica_is_plain(const cadre_per_replica *value, uint32_t component);

#ifdef __cplusplus
}
#endif
#endif
