/* SPDX-License-Identifier: Apache-2.0
 * Collectives: operations that all replicas of all tasks do together, called inside a replica
 * function. (tf.distribute.ReplicaContext; tf.distribute.experimental.CommunicationOptions.) What
 * combines the values of replicas between steps is in cadre/reduce.h.
 *
 * All replicas make the same calls in the same order, with the same types and shapes. Where they
 * disagree every replica of every task gets INVALID_ARGUMENT, which names two that differ by what
 * they call; no replica gets a wrong sum. A replica that returns with fewer calls than another gets
 * an error that says so; one that does not come at all is waited for until the timeout.
 *
 * Results are made in one order that depends on how the replicas are spread over the hosts, and on
 * nothing else: the same bits on every replica, in every run, however large the packs are. Integers
 * wrap around. Half-width floats are added in float32 and rounded. (Of tensors on GPUs that are
 * connected the order is NCCL's: the same bits on every replica, and in every run of the same job
 * on the same machines.)
 *
 * Tensors on a GPU: those of one call are all in the memory of the replica's GPU or all in the
 * host's, else INVALID_ARGUMENT; and where GPUs are connected (cadre/gpu.h) those of all replicas
 * alike. What is done to them is done in the order of the replica's stream: a call returns when all
 * replicas have agreed on it, and what is launched afterwards finds the result. Some have no way on
 * the device and wait for it: sparse values, a gather along an axis that is not the first but for
 * dimensions of 1, cadre_all_gather_gradient. CADRE_MEAN multiplies the sum by 1 / n there, which
 * may differ from the host's division in the last bit.
 *
 * Unless said otherwise, of all functions that take a cadre_replica:
 *  - They are called by the thread that runs the replica's function, with its replica; else
 *    FAILED_PRECONDITION.
 *  - Tensors are dense and the program's own (inputs of the step may be read, not written to), at
 *    most 4096 of them, not listed twice, and not touched by others meanwhile. Strings are refused,
 *    and so is CADRE_BOOL where numbers are combined.
 *  - `options` may be NULL. Replicas give the same ones.
 *  - INVALID_ARGUMENT is also a tensor, list or place that is NULL, and a wrong type.
 *  - ABORTED, UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED: another replica or task failed, went away
 *    or did not come. The function returns, whatever it returns; under a daemon the step is done
 *    again with those that are left. Any other failure fails the step, also if the function does
 *    not look at it.
 *  - What is written in place or into a tensor that was given is undefined after a failure; ret_
 *    places of tensors are NULL then, and the caller's to release after success. */
#ifndef CADRE_COLLECTIVE_H
#define CADRE_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/replica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How values are combined, element by element. (tf.distribute.ReduceOp, which has the first two.)
 * CADRE_MIN and CADRE_MAX give NaN where one of the values is NaN. */
typedef enum cadre_reduce_op {
    CADRE_SUM = 0,
    CADRE_MEAN = 1, /* the sum, then divided by the number of replicas; floating types only */
    CADRE_MIN = 2,
    CADRE_MAX = 3,
    CADRE_PROD = 4
} cadre_reduce_op;

/* The op of this name, "sum" or "MEAN", in any case; else INVALID_ARGUMENT. Any context. */
CADRE_API cadre_status cadre_reduce_op_parse(const char *text, cadre_reduce_op *ret_op);

/* What carries a collective. There is one carrier for tensors in host memory, the ring, and they
 * take it whatever was asked for. Tensors on GPUs take NCCL where the job's GPUs are connected, and
 * else the ring, through the memory of the hosts: which of them the whole generation has in common,
 * and no call can choose otherwise. (tf.distribute.experimental.CommunicationImplementation.) */
typedef enum cadre_communication {
    CADRE_COMMUNICATION_AUTO = 0,
    CADRE_COMMUNICATION_RING = 1,
    CADRE_COMMUNICATION_NCCL = 2 /* tensors in device memory */
} cadre_communication;

/* How a collective is carried out. Zeroed: the defaults. A field that is not its default counts in
 * place of the strategy's. (tf.distribute.experimental.CommunicationOptions.) */
typedef struct cadre_collective_options {
    /* Tensors of an all-reduce travel in packs: a new one begins once the current one is larger
     * than this. 0: one pack. Changes speed only, never results. */
    size_t bytes_per_pack;
    /* A replica that does not come to the collective for so long is DEADLINE_EXCEEDED, which names
     * it; 0: the job's (CADRE_COLLECTIVE_TIMEOUT_S). INVALID_ARGUMENT: negative, or no number. */
    double timeout_seconds;
    cadre_communication implementation;
} cadre_collective_options;

/* Sets what the options of all collectives of a strategy are where a call leaves them zero, or has
 * none. NULL: the defaults again. Every task sets the same. In cross-replica context;
 * INVALID_ARGUMENT for options that are none. (communication_options of
 * tf.distribute.MultiWorkerMirroredStrategy.) */
CADRE_API cadre_status cadre_strategy_set_communication(
    cadre_strategy *strategy, const cadre_collective_options *options);

/* --- all-reduce --- */

/* Replaces each of the `count` tensors by its sum (or whatever `op` says) over all replicas, in
 * place, on every replica. What passes back through a sum or mean is the same sum or mean of the
 * gradients that the replicas have of the result. (tf.distribute.ReplicaContext.all_reduce.) */
CADRE_API cadre_status cadre_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options);

/* All-reduces out of place: outputs[i], of the type and shape of inputs[i], gets the result; the
 * input stays as it is. An output may be its own input, but overlaps no other tensor. It is one
 * collective with cadre_all_reduce: some replicas may call this, others that. */
CADRE_API cadre_status cadre_all_reduce_into(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const inputs[], size_t count, cadre_tensor *const outputs[],
    const cadre_collective_options *options);

/* --- all-reduce while the replica computes --- */

/* A collective that was started. It ends when it is waited for, or with the replica's function. */
typedef struct cadre_collective cadre_collective;

/* Starts what cadre_all_reduce does, and returns. A thread of the library carries it out, so that
 * gradients of the last layers travel while those of the first are computed. The tensors are not
 * touched, read or written, until cadre_collective_wait has returned; a reference of each is kept.
 * On a GPU it waits for what is on the replica's stream here, and what is launched behind
 * cadre_collective_wait waits for it.
 * What is started is done in the order of the calls, and any other collective of the replica waits
 * for all of it; the order of calls that all replicas share counts starts, not waits. With 64
 * unfinished ones it waits for the first. What is forgotten is waited for when the function
 * returns, and a failure of it fails the step. After an error *ret_handle is NULL. */
CADRE_API cadre_status cadre_all_reduce_start(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    cadre_collective **ret_handle);

/* Waits until a collective is done, returns what cadre_all_reduce would have returned, and ends the
 * handle. In the replica function that started it. FAILED_PRECONDITION: elsewhere, or for one that
 * ended. */
CADRE_API cadre_status cadre_collective_wait(cadre_collective *handle);

/* Whether cadre_collective_wait would return at once. Any thread, as long as the step runs. */
CADRE_API bool cadre_collective_done(const cadre_collective *handle);

/* --- gather, scatter, broadcast --- */

/* Joins each of the `count` tensors with those of the other replicas along `axis`, in order of
 * replica ids, on every replica. Sizes along the axis may differ, 0 included; rank (at least 1),
 * type and the other dimensions are equal. Any type but CADRE_STRING; sparse values do not fit in
 * (tf.distribute refuses them as UNIMPLEMENTED): cadre_all_reduce_sparse joins them. `axis` is in
 * [0, rank). ret_outputs: `count` places. (tf.distribute.ReplicaContext.all_gather.) */
CADRE_API cadre_status cadre_all_gather(cadre_replica *replica, cadre_tensor *const inputs[],
    size_t count, int32_t axis, const cadre_collective_options *options,
    cadre_tensor *ret_outputs[]);

/* Combines the replicas' tensors as cadre_all_reduce does, and gives each replica its part of the
 * rows: with n replicas and input [d0, ...], replica i gets rows [i * d0/n, (i + 1) * d0/n), the
 * same bits as all of it would hold there. d0 is a multiple of n, else INVALID_ARGUMENT.
 * (MPI_Reduce_scatter_block.) */
CADRE_API cadre_status cadre_reduce_scatter(cadre_replica *replica, cadre_reduce_op op,
    const cadre_tensor *input, const cadre_collective_options *options, cadre_tensor **ret_part);

/* Replaces each of the tensors by that of replica `root` (a global id, INVALID_ARGUMENT when there
 * is none of it), in place. Any type but CADRE_STRING. (MPI_Bcast.) */
CADRE_API cadre_status cadre_broadcast(
    cadre_replica *replica, uint32_t root, cadre_tensor *const tensors[], size_t count);

/* What passes back through cadre_all_gather of a tensor whose size along `axis` is own_size here:
 * the sum over all replicas of `upstream`, the gradient of the whole result, of which each gets the
 * part that its own tensor was. Of a number type. INVALID_ARGUMENT when the sizes do not come to
 * that of `upstream`. */
CADRE_API cadre_status cadre_all_gather_gradient(cadre_replica *replica,
    const cadre_tensor *upstream, int32_t axis, int64_t own_size,
    const cadre_collective_options *options, cadre_tensor **ret_gradient);

/* --- in either context --- */

/* Returns when all replicas (in a replica function) or all tasks (outside) have called it. Errors
 * as above, for either context. (MPI_Barrier.) */
CADRE_API cadre_status cadre_barrier(void);

#ifdef __cplusplus
}
#endif
#endif
