/* SPDX-License-Identifier: Apache-2.0
 * Cross-device operations: how values of several devices become one, and how one comes to several.
 * (tf.distribute.CrossDeviceOps, tf.distribute.StrategyExtended.reduce_to, batch_reduce_to,
 * broadcast_to.)
 *
 * What replicas ask for themselves (cadre/collective.h), assignments to variables, cadre_reduce and
 * cadre_gather always go through the mesh, which is what connects several tasks. The choice here is
 * for reduce_to and batch_reduce_to, which put the result on devices that are named. All of a
 * choice is in the order of the sums, so in the last bits of floats, and in speed; on host memory
 * no device is faster than another. Values on GPUs come to the host's memory first, and results are
 * in it, those for a GPU too: cadre_tensor_copy_to takes them there. */
#ifndef CADRE_CROSS_DEVICE_H
#define CADRE_CROSS_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/strategy.h"
#include "cadre/tensor.h"
#include "cadre/values.h"
#include "cadre/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the values of several devices are combined. */
typedef enum cadre_cross_device_kind {
    /* What the strategy's devices ask for: a collective by NCCL for GPUs of which there are as many
     * real ones, by RING for more logical than real ones and for processors alone; one device for
     * mixed lists and for CADRE_I32 on GPUs. (tf.distribute.MirroredStrategy's choice, as of
     * TensorFlow 2.21; its documents say NcclAllReduce.) */
    CADRE_CROSS_DEVICE_AUTO = 0,
    /* All values are brought to one device and summed there, in the order of the replicas:
     * ((v0 + v1) + v2) + v3. (tf.distribute.ReductionToOneDevice.) */
    CADRE_CROSS_DEVICE_ONE_DEVICE,
    /* Two levels: each half of the replicas is summed in order, then the two halves.
     * (tf.distribute.HierarchicalCopyAllReduce.) */
    CADRE_CROSS_DEVICE_HIERARCHICAL_COPY,
    /* A collective of all replicas, which `implementation` says more about: RING or NCCL
     * (CADRE_COMMUNICATION_*). The sums are made in the mesh's one order.
     * (tf.distribute.NcclAllReduce, and MultiWorkerMirrored's collectives.) */
    CADRE_CROSS_DEVICE_COLLECTIVE,
    CADRE_CROSS_DEVICE_OWN /* functions of the program, `own` */
} cadre_cross_device_kind;

/* What a function of the program's own is given of one component of a value. */
typedef struct cadre_cross_device_value {
    /* Of this task's replicas, in order of local id, alike in type and shape, and in the memory of
     * the host; borrowed. Of a broadcast the one tensor, wherever it is. */
    cadre_tensor *const *tensors;
    uint32_t tensor_count;
    const char *const *devices; /* where the result is to be: canonical names */
    uint32_t device_count;
    /* [device_count], NULL at first: one reference of a tensor for each, of the shape that
     * `tensors` have and their type (CADRE_F64 of the mean of integers). Where it is one tensor,
     * retain it for each. They are taken, also on failure. */
    cadre_tensor **ret_tensors;
} cadre_cross_device_value;

/* Operations of a program's own, as a class that derives from tf.distribute.CrossDeviceOps has
 * them. They run in the thread that called cadre_reduce_to or its like, which returns their
 * failure; cadre_fail says why. Other calls with the strategy are refused in them
 * (cadre/strategy.h). */
typedef struct cadre_cross_device_functions {
    /* Combines one value. (reduce_implementation.) */
    cadre_status (*reduce)(cadre_reduce_op op, const cadre_cross_device_value *value, void *user);
    /* The same of several at once: of cadre_batch_reduce_to, and the components of one value. NULL:
     * `reduce` is called for each. (batch_reduce_implementation.) */
    cadre_status (*batch_reduce)(
        cadre_reduce_op op, const cadre_cross_device_value values[], uint32_t count, void *user);
    /* Brings one tensor to all devices. NULL: they share it. (broadcast_implementation.) */
    cadre_status (*broadcast)(const cadre_cross_device_value *value, void *user);
    void *user;
} cadre_cross_device_functions;

/* How a strategy combines values of several devices. Zeroed: AUTO, one pack. */
typedef struct cadre_cross_device_ops {
    cadre_cross_device_kind kind;
    cadre_communication implementation; /* of COLLECTIVE */
    uint32_t num_packs;                 /* of a batch of values, about; 0: one */
    size_t bytes_per_pack;              /* the same by size (cadre/collective.h); 0: by number */
    const char *reduce_to_device;       /* of ONE_DEVICE; NULL: the first destination */
    cadre_cross_device_functions own;   /* of OWN, which makes no packs: `reduce` at least */
} cadre_cross_device_ops;

/* Sets what cadre_reduce_to and cadre_batch_reduce_to use from now on, in this strategy; copied.
 * NULL: AUTO. For ONE_DEVICE, HIERARCHICAL_COPY and OWN all replicas must be of one task:
 * FAILED_PRECONDITION in a job of several. INVALID_ARGUMENT names what is none of the above,
 * functions of another kind than OWN, and OWN without `reduce`. Functions of OWN are not called
 * where there is nothing to combine: for a mirrored value (below), and for one replica whose own
 * device is the only destination. Cross-replica context. (The cross_device_ops of
 * tf.distribute.MirroredStrategy's constructor.) */
CADRE_API cadre_status cadre_strategy_set_cross_device_ops(
    cadre_strategy *strategy, const cadre_cross_device_ops *ops);

/* What the strategy uses now, with AUTO decided for `dtype`. */
CADRE_API cadre_status cadre_strategy_cross_device_ops(
    cadre_strategy *strategy, cadre_dtype dtype, cadre_cross_device_ops *ret_ops);

/* Where a result is to be: with a variable's components, or on devices by name. Zeroed: on all
 * devices of the strategy's local replicas. */
typedef struct cadre_destinations {
    const cadre_variable *variable;
    const char *const *devices;
    uint32_t device_count;
} cadre_destinations;

/* Combines `value` (components as in cadre/reduce.h, elementwise) over all replicas. *ret_value has
 * the result once for each destination, in order, and as many components as `value`; those that
 * share memory may share a tensor. A value that is the same tensor on all replicas is mirrored:
 * CADRE_MEAN gives it as it is, CADRE_SUM is INVALID_ARGUMENT with several replicas, unless it is
 * one 0. (Only a job of one task detects it: several sum what each has.) INVALID_ARGUMENT also for
 * a device that is none of this task's, and for what functions of the program's own left out or
 * made of another type or shape. Collective over the tasks as cadre_reduce is. The caller's to
 * release. In the function of cadre_merge_call too, in a job of one task; COLLECTIVE sums as
 * ONE_DEVICE there. (tf.distribute.StrategyExtended.reduce_to.) */
CADRE_API cadre_status cadre_reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *value, const cadre_destinations *destinations,
    cadre_per_replica **ret_value);

/* Combines `count` values at once, as cadre_reduce_to does with each, each to its own destinations
 * (NULL: all to the replicas' devices), in packs. On error nothing is given.
 * (tf.distribute.StrategyExtended.batch_reduce_to.)
 */
CADRE_API cadre_status cadre_batch_reduce_to(cadre_strategy *strategy, cadre_reduce_op op,
    const cadre_per_replica *const values[], const cadre_destinations destinations[],
    uint32_t count, cadre_per_replica *ret_values[]);

/* Brings one tensor to all destinations; this task alone. *ret_value is the caller's to release.
 * (tf.distribute.StrategyExtended.broadcast_to.) */
CADRE_API cadre_status cadre_broadcast_to(cadre_strategy *strategy, cadre_tensor *tensor,
    const cadre_destinations *destinations, cadre_per_replica **ret_value);

#ifdef __cplusplus
}
#endif
#endif
