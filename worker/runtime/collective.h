/* SPDX-License-Identifier: Apache-2.0
 * Collectives with an error, in a step and outside of one, and the words that make replicas notice
 * that they disagree. */
#ifndef CADRE_RUNTIME_COLLECTIVE_H
#define CADRE_RUNTIME_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/collective.h"
#include "common/base/error.h"
#include "worker/mesh/mesh.h"
#include "worker/runtime/strategy.h"

#define COLLECTIVE_TENSORS_MAX 4096 /* in one call */

/* The type's number in the mesh. INVALID_ARGUMENT for those that cannot be summed. */
cadre_status collective_dtype(
    cadre_dtype dtype, enum mesh_dtype *ret_dtype, struct cadre_error *error);

/* In replica context, inside a step. */
cadre_status collective_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, size_t bytes_per_pack, struct cadre_error *error);
cadre_status collective_broadcast(cadre_replica *replica, uint32_t root,
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error);

/* The one-word all-reduce of a step without a collective. */
cadre_status collective_implicit(cadre_replica *replica, struct cadre_error *error);

/* Sums `count` buffers over all replicas, for one of them. The numbers that `key` was made of must
 * be equal everywhere: else INVALID_ARGUMENT, on every replica. At most COLLECTIVE_TENSORS_MAX
 * buffers. */
cadre_status collective_sum(cadre_strategy *strategy, uint32_t local,
    const struct mesh_buffer *buffers, size_t count, uint64_t key, struct cadre_error *error);

/* All hear why the task of rank `rank`, whose error is `own`, could not do its part: whichever of
 * them ends first, people are told the reason. *ret_theirs is an error of this task (ABORTED) that
 * says so; filled in by local replica 0. */
cadre_status collective_hear(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error);

/* The same of the lowest rank whose `own` is one, when all know that there is one. */
cadre_status collective_hear_lowest(cadre_strategy *strategy, uint32_t local,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error);

/* Folds one more number into a key. */
uint64_t collective_key(uint64_t key, uint64_t number);

#endif
