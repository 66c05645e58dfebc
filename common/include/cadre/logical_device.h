/* SPDX-License-Identifier: Apache-2.0
 * Model parallelism inside a replica: one replica that owns several *logical devices*, and tensors
 * that are assigned to one of them, split over them or replicated on all.
 * (tf.tpu.experimental.DeviceAssignment,
 * tf.distribute.Strategy.experimental_{assign,split,replicate}_to_logical_device(s).)
 *
 *     devices: a mesh of shape [2, 2, 2]     computation shape [1, 1, 2], 4 replicas
 *
 *        (0,0,0) (0,0,1) | (1,0,0) (1,0,1)         replica 0 | replica 1       each with
 *        (0,1,0) (0,1,1) | (1,1,0) (1,1,1)         replica 2 | replica 3       logical devices 0, 1
 *
 * In TensorFlow these are annotations for a compiler. Here they are placements that a program acts
 * on: cadre_placement_piece says what of a tensor a logical device has, cadre_logical_run runs a
 * function there. Logical devices of a replica on the CPU are threads, which share memory; those of
 * a replica on a GPU are GPUs, each with a thread and a stream:
 *
 *     static cadre_status layer(cadre_replica *replica, uint32_t device, void *user)
 *     {
 *         struct model *model = user;                        its GPU is the thread's current one
 *         cudaStream_t stream = cadre_logical_stream(replica, device);
 *         product<<<grid, block, 0, stream>>>(part of `device`, ...);
 *         return ncclAllReduce(..., model->within[device], stream) ...
 *     }
 *
 *     CADRE_TRY(cadre_split_to_logical_devices(replica, x, (int32_t[]){1, 2}, 2, &columns));
 *     for (uint32_t d = 0; d < cadre_logical_devices(replica); d++) {
 *         CADRE_TRY(cadre_placement_piece(x, &columns, d, &model->part[d]));
 *         CADRE_TRY(cadre_logical_nccl_comm(
 *             replica, d, CADRE_LOGICAL_WITHIN_REPLICA, &model->within[d]));
 *     }
 *     CADRE_TRY(cadre_logical_run_all(replica, layer, model));
 *     CADRE_TRY(cadre_tensor_copy_to(replica, model->sum[1], &sum));   back to the replica's own
 *
 * One order on GPUs: each logical device's work is ordered by its stream; where Cadre copies from
 * one GPU to another, both streams go on behind the copy, and no thread waits. What the program
 * does between GPUs by itself (peer access, NCCL) it orders itself. A step ends when the streams of
 * all logical devices are at rest without an error. Batches, variables and Cadre's collectives stay
 * with logical device 0, which is the replica's own GPU. */
#ifndef CADRE_LOGICAL_DEVICE_H
#define CADRE_LOGICAL_DEVICE_H

#include <stdint.h>

#include "cadre/device.h"
#include "cadre/replica.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_TOPOLOGY_RANK_MAX   8   /* dimensions of a mesh */
#define CADRE_LOGICAL_DEVICES_MAX 256 /* of one replica */
#define CADRE_LOGICAL_GPUS_MAX    64  /* the same, of one that is on a GPU */

/* A mesh of devices, each at coordinates in [0, shape). */
typedef struct cadre_topology {
    uint32_t rank; /* 1 to CADRE_TOPOLOGY_RANK_MAX */
    int32_t shape[CADRE_TOPOLOGY_RANK_MAX];
} cadre_topology;

/* Which device each logical device of each replica is. Never changes; any thread. */
typedef struct cadre_device_assignment cadre_device_assignment;

/* Of how many devices a replica is. Zeroed: every replica is one device, and there is one replica.
 */
typedef struct cadre_assignment_options {
    uint32_t rank; /* entries of the two lists: that of the topology; 0: all ones */
    int32_t computation_shape[CADRE_TOPOLOGY_RANK_MAX];
    int32_t computation_stride[CADRE_TOPOLOGY_RANK_MAX]; /* between neighbours; 0: 1 */
    uint32_t num_replicas;                               /* 0: 1 */
} cadre_assignment_options;

/* Puts the replicas' blocks, each of computation_shape * computation_stride, side by side into the
 * mesh: where a stride leaves room inside a block the next replicas fill it. Replicas and logical
 * devices are counted along the last axis first, then along the others in order.
 * INVALID_ARGUMENT: a rank or size that is none, a computation of another rank than the mesh, one
 * that does not fit, more replicas than fit, more than CADRE_LOGICAL_DEVICES_MAX logical devices.
 * *ret_assignment is the caller's to release. `options` may be NULL.
 * (tf.tpu.experimental.DeviceAssignment.build.) */
CADRE_API cadre_status cadre_device_assignment_build(const cadre_topology *topology,
    const cadre_assignment_options *options, cadre_device_assignment **ret_assignment);

/* Frees it; nothing else refers to it. NULL is allowed. */
CADRE_API void cadre_device_assignment_release(cadre_device_assignment *assignment);

/* Where in the mesh a logical device is: rank coordinates. INVALID_ARGUMENT: there is no such
 * replica or logical device. (DeviceAssignment.coordinates.) */
CADRE_API cadre_status cadre_device_assignment_coordinates(
    const cadre_device_assignment *assignment, uint32_t replica, uint32_t logical_device,
    int32_t ret_coordinates[CADRE_TOPOLOGY_RANK_MAX]);

/* Gives the strategy's local replicas their logical devices, as the assignment says, which has as
 * many replicas as this task (INVALID_ARGUMENT); copied. Every task sets the same. The device at
 * coordinates c is the CPU of c's number in row-major order, or, of a replica that is on a GPU, the
 * GPU of this number, of those that this process may use. Then logical device 0 is the GPU that the
 * replica is on (INVALID_ARGUMENT, with the list of devices that fits: in the mesh above the
 * replicas are on GPU:0, GPU:4, GPU:2 and GPU:6), and all others are there (FAILED_PRECONDITION);
 * an assignment never has a device twice. Once, before the first step (FAILED_PRECONDITION).
 * Cross-replica context.
 * (tf.distribute.TPUStrategy(experimental_device_assignment).) */
CADRE_API cadre_status cadre_strategy_set_device_assignment(
    cadre_strategy *strategy, const cadre_device_assignment *assignment);

/* --- in replica context --- */

/* Logical devices of the replica; 1 where no assignment was set; of NULL 0. */
CADRE_API uint32_t cadre_logical_devices(const cadre_replica *replica);

/* The canonical name of the device that one is. INVALID_ARGUMENT: there is none of this number. */
CADRE_API cadre_status cadre_logical_device_name(
    const cadre_replica *replica, uint32_t logical_device, char ret_name[CADRE_DEVICE_NAME_BYTES]);

/* What the logical devices of a replica have of a tensor. */
typedef enum cadre_placement_kind {
    CADRE_PLACEMENT_ASSIGNED = 0,
    CADRE_PLACEMENT_SPLIT,
    CADRE_PLACEMENT_REPLICATED
} cadre_placement_kind;

/* Where a tensor is; a plain value. Zeroed: on logical device 0, which is where everything is that
 * nothing was said of. */
typedef struct cadre_placement {
    cadre_placement_kind kind;
    uint32_t logical_device;                      /* ASSIGNED */
    uint32_t pieces;                              /* SPLIT, REPLICATED: logical devices */
    uint32_t rank;                                /* SPLIT */
    int32_t partition_dimensions[CADRE_RANK_MAX]; /* SPLIT: pieces along each dimension */
    /* The GPU that each logical device is, + 1; 0: none, pieces stay in the memory they are in. */
    uint8_t gpus[CADRE_LOGICAL_GPUS_MAX];
} cadre_placement;

/* The tensor is on one logical device. INVALID_ARGUMENT: a number outside of [0, logical devices).
 * (experimental_assign_to_logical_device.) */
CADRE_API cadre_status cadre_assign_to_logical_device(const cadre_replica *replica,
    const cadre_tensor *tensor, int32_t logical_device, cadre_placement *ret_placement);

/* The tensor is cut into as many equal blocks as the replica has logical devices:
 * partition_dimensions[i] pieces along dimension i, numbered in row-major order. INVALID_ARGUMENT:
 * another number of entries than the tensor's rank, entries below 1, a product that is not the
 * number of logical devices, a dimension that is not divisible.
 * (experimental_split_to_logical_devices.) */
CADRE_API cadre_status cadre_split_to_logical_devices(const cadre_replica *replica,
    const cadre_tensor *tensor, const int32_t partition_dimensions[], uint32_t count,
    cadre_placement *ret_placement);

/* All logical devices have all of it. (experimental_replicate_to_logical_devices.) */
CADRE_API cadre_status cadre_replicate_to_logical_devices(
    const cadre_replica *replica, const cadre_tensor *tensor, cadre_placement *ret_placement);

/* What a logical device has of a tensor that is placed so: the tensor (one reference more), or its
 * block, which shares memory where the block's rows lie together and is a copy else. Of a tensor in
 * a GPU's memory what another GPU has is a copy in the memory of that one, in the order of both
 * streams; a block whose rows do not lie together is packed first where it is, run by run of
 * elements that do, so that few long runs are fast and a list of very many is made on the host. A
 * tensor in the host's memory stays there (cadre_tensor_copy_to_logical). NOT_FOUND: it is assigned
 * to another one. INVALID_ARGUMENT: the placement is not one of this tensor. RESOURCE_EXHAUSTED.
 * *ret_piece is the caller's. Any thread. */
CADRE_API cadre_status cadre_placement_piece(cadre_tensor *tensor, const cadre_placement *placement,
    uint32_t logical_device, cadre_tensor **ret_piece);

/* Runs on a logical device. Collectives and assignments are not for it, but for the function of the
 * replica that waits for it. On failure says why with cadre_fail. */
typedef cadre_status (*cadre_logical_function)(
    cadre_replica *replica, uint32_t logical_device, void *user);

/* Calls `function` on one logical device, 0 being the replica's own thread, and waits for it, not
 * for what it launches; its GPU, if it is one, is the thread's current one. A failure is returned
 * with its message. INVALID_ARGUMENT: no such device. RESOURCE_EXHAUSTED: its
 * thread cannot be started. From the thread that runs the replica's function, else
 * FAILED_PRECONDITION; a function on several devices, or on another than 0, does not run inside of
 * one that does. */
CADRE_API cadre_status cadre_logical_run(
    cadre_replica *replica, uint32_t logical_device, cadre_logical_function function, void *user);

/* Calls `function` on all logical devices at once, as cadre_logical_run does on one; it returns
 * when all have. The failure of the lowest counts. */
CADRE_API cadre_status cadre_logical_run_all(
    cadre_replica *replica, cadre_logical_function function, void *user);

/* --- logical devices that are GPUs; also in functions that run on them --- */

/* The stream (cudaStream_t) that work on a logical device is ordered by; of 0 the replica's. NULL
 * on the CPU, of NULL, and where there is no such device. Valid as long as the strategy. */
CADRE_API void *cadre_logical_stream(const cadre_replica *replica, uint32_t logical_device);

/* A tensor of zeros in the memory of a logical device: its GPU's, or the host's. INVALID_ARGUMENT:
 * there is none of this number. All else is as with cadre_tensor_create_on. */
CADRE_API cadre_status cadre_tensor_create_on_logical(cadre_replica *replica,
    uint32_t logical_device, cadre_dtype dtype, uint32_t rank, const int64_t *dims,
    cadre_tensor **ret_tensor);

/* A copy of `tensor` in the memory of a logical device. From another GPU it is made in the order of
 * both streams, and `tensor` may be written to, or released, behind that. All else is as with
 * cadre_tensor_copy_to. */
CADRE_API cadre_status cadre_tensor_copy_to_logical(cadre_replica *replica, uint32_t logical_device,
    const cadre_tensor *tensor, cadre_tensor **ret_tensor);

/* Which logical devices are the ranks of a communicator. */
typedef enum cadre_logical_group {
    CADRE_LOGICAL_ACROSS_REPLICAS = 0, /* this logical device of all replicas of all tasks */
    CADRE_LOGICAL_WITHIN_REPLICA       /* all logical devices of this replica */
} cadre_logical_group;

/* A logical device's NCCL communicator (ncclComm_t) of this generation, for the program's own calls
 * on cadre_logical_stream: ACROSS_REPLICAS its rank is cadre_replica_id, WITHIN_REPLICA it is
 * `logical_device`. That of logical device 0 across replicas is cadre_replica_nccl_comm's.
 *
 * It is formed at its first request in a generation (WITHIN_REPLICA: those of all logical devices),
 * which is a collective: all replicas ask for the same, in the order of their collectives
 * (INVALID_ARGUMENT on all otherwise; ABORTED and others as of a collective). Afterwards it costs
 * next to nothing, so ask in each step: like cadre_replica_nccl_comm's it is non-blocking, and good
 * until the replica's function returns. From the thread that runs that function, not in one that
 * runs on a logical device, which may be given it. Each communicator is used by one thread at a
 * time, and a replica that uses several makes its calls on them in the same order as the others. An
 * error that NCCL finds fails the step.
 *
 * FAILED_PRECONDITION, with the reason: the replicas are on the CPU, or not connected (see
 * cadre_replica_nccl_comm), two replicas of the job would have one GPU, or NCCL refuses; all know
 * the same, and the rest of the generation works. */
CADRE_API cadre_status cadre_logical_nccl_comm(
    cadre_replica *replica, uint32_t logical_device, cadre_logical_group group, void **ret_comm);

#ifdef __cplusplus
}
#endif
#endif
