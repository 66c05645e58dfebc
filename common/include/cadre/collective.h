/* SPDX-License-Identifier: Apache-2.0
 * Collectives: operations that all replicas of all tasks do together.
 * (tf.distribute.ReplicaContext.all_reduce.)
 *
 * All replicas make the same calls in the same order, with the same types and shapes. Where they
 * disagree every replica gets INVALID_ARGUMENT, which says who called what, and nobody a wrong sum;
 * where one makes fewer calls
 * than the others they wait until it comes to its next one. Sums are made in one order
 * that depends on the number of replicas alone: the same bits on every replica and in every run. */
#ifndef CADRE_COLLECTIVE_H
#define CADRE_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/replica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tf.distribute.ReduceOp. */
typedef enum cadre_reduce_op {
    CADRE_SUM = 0,
    CADRE_MEAN = 1 /* the sum divided by the number of replicas */
} cadre_reduce_op;

/* tf.distribute.experimental.CommunicationOptions. Zeroed: the defaults. */
typedef struct cadre_collective_options {
    /* Tensors are sent in packs: a new pack begins once the current one is larger than this. 0: one
     * pack. Changes speed only, never results. */
    size_t bytes_per_pack;
} cadre_collective_options;

/* --- in replica context: called by the thread that runs the replica's function, with its replica.
 * Tensors are not shared between replicas, nor listed twice, and not touched by others meanwhile.
 * INVALID_ARGUMENT also for a tensor that is NULL or of a wrong type, and for more than 4096 of
 * them. ABORTED, UNAVAILABLE, CANCELLED, DEADLINE_EXCEEDED: another replica or task failed or went
 * away; the function returns, whatever it returns, and the step is done again with those that are
 * left. Any other failure here fails the step, also if the function does not look. --- */

/* Replaces each of the `count` tensors by its sum (or mean) over all replicas, in place, on every
 * replica. Tensors are dense and the program's own (not inputs), of any type but CADRE_BOOL and
 * CADRE_STRING; CADRE_MEAN needs a floating type. Integers wrap around. On error their content is
 * undefined. `options` may be NULL. (tf.distribute.ReplicaContext.all_reduce.) */
CADRE_API cadre_status cadre_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options);

/* Replaces each of the tensors by that of replica `root` (a global id, INVALID_ARGUMENT when there
 * is none of it), in place. Any type but CADRE_STRING. (MPI_Bcast.) */
CADRE_API cadre_status cadre_broadcast(
    cadre_replica *replica, uint32_t root, cadre_tensor *const tensors[], size_t count);

/* --- in either context --- */

/* Returns when all replicas (in a replica function) or all tasks (outside) have called it. Errors
 * as above, for either context. (MPI_Barrier.) */
CADRE_API cadre_status cadre_barrier(void);

#ifdef __cplusplus
}
#endif
#endif
