/* SPDX-License-Identifier: Apache-2.0
 * The base of all collectives: sums over the replicas, in a step and outside of one, with a key by
 * which replicas notice that they disagree. */
#ifndef CADRE_RUNTIME_COLLECTIVE_H
#define CADRE_RUNTIME_COLLECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/sparse.h"
#include "common/base/error.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/runtime/replica/collective_key.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

#define COLLECTIVE_TENSORS_MAX 4096 /* in one call */

/* The type's number in the mesh. INVALID_ARGUMENT for those that cannot be summed. */
cadre_status collective_dtype(
    cadre_dtype dtype, enum mesh_dtype *ret_dtype, struct cadre_error *error);

/* INVALID_ARGUMENT when it is not a list of 0 to COLLECTIVE_TENSORS_MAX tensors. */
cadre_status collective_check(
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error);

/* --- on one replica, in any thread of it --- */

/* Reduces `count` buffers of a collective_list_room over all replicas, in one call of the mesh.
 * Where replicas disagree: INVALID_ARGUMENT, on every replica, naming two of them by their notes.
 * As all functions of this header, the first one in a step also sends the piggyback: with a sum,
 * but in a call of its own where a replica of the generation is on a device. */
cadre_status collective_reduce(cadre_strategy *strategy, uint32_t local, enum mesh_op op,
    struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);

/* Before a call of the mesh that is no sum, with the same note: sends the piggyback if it is due.
 */
cadre_status collective_send_piggyback(cadre_strategy *strategy, uint32_t local,
    const struct mesh_note *note, struct cadre_error *error);

/* Adds to the error of a call of the mesh that the replicas disagree, if so. Returns `status`. */
cadre_status collective_explain(cadre_status status, struct cadre_error *error);

/* Sums `count` buffers over all replicas, in a collective of the library itself. The numbers that
 * `key` was made of must be equal on all; where they differ, the error has the text of the
 * strategy_between_steps around it. At most COLLECTIVE_TENSORS_MAX buffers. */
cadre_status collective_sum(cadre_strategy *strategy, uint32_t local,
    const struct mesh_buffer *buffers, size_t count, uint64_t key, struct cadre_error *error);

/* The same with a note of its own, which is borrowed for the call. */
cadre_status collective_sum_noted(cadre_strategy *strategy, uint32_t local,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);

/* Sums nothing, in a meeting of all that is no strategy_between_steps: `what` names it in the
 * errors of replicas that do something else, of at most STRATEGY_CALL_TEXT_BYTES - 1. */
cadre_status collective_meet_between_steps(cadre_strategy *strategy, uint32_t local,
    const char *what, uint64_t key, struct cadre_error *error);

/* --- in replica context, in the thread of the replica --- */

/* Before each collective of a replica whose function runs: waits for what the replica has started,
 * and for the admission, once a step. *ret_note is the note for each call of the mesh that the
 * collective makes. step_collective_end comes after it. A call without a timeout has the
 * strategy's. INVALID_ARGUMENT as of step_collective_begin. */
cadre_status collective_enter(cadre_replica *replica, const struct step_call *call,
    struct step_note *ret_note, struct cadre_error *error);

/* Sums buffers as one of the step's collectives. */
cadre_status collective_meet_in_step(cadre_replica *replica, const struct step_call *call,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error);

/* cadre_all_reduce. */
cadre_status collective_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    struct cadre_error *error);
/* cadre_all_reduce_sparse. */
cadre_status collective_all_reduce_sparse(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const cadre_collective_options *options, cadre_sparse *ret_sparse,
    struct cadre_error *error);
/* INVALID_ARGUMENT: its values and indices, in memory of the host, are no sparse value together. */
cadre_status collective_sparse_check(const cadre_sparse *sparse, struct cadre_error *error);
/* cadre_broadcast, from replica `root`. */
cadre_status collective_broadcast(cadre_replica *replica, uint32_t root,
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error);

/* The collective of a step that has no other (protocol, rule 25). */
cadre_status collective_implicit(cadre_replica *replica, struct cadre_error *error);

/* --- errors that are shared --- */

/* All tasks receive why the task of rank `rank`, whose error is `own`, could not do its part, so
 * that each reports the reason, whichever ends first. *ret_theirs is an error of this task
 * (ABORTED) with that reason; filled in by local replica 0. */
cadre_status collective_share_error(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error);

/* The same of the lowest rank whose `own` is an error, when all have found that there is one. */
cadre_status collective_share_first_error(cadre_strategy *strategy, uint32_t local,
    const struct cadre_error *own, struct cadre_error *ret_theirs, struct cadre_error *error);

/* --- collective_options.c: those of the call, and the strategy's for what it leaves out --- */

struct collective_settings {
    size_t bytes_per_pack;
    uint64_t timeout_us; /* 0: the job's */
};

/* Field by field: `options` (may be NULL) where it is not the default, else the strategy's.
 * INVALID_ARGUMENT for a timeout or an implementation that is not allowed. */
cadre_status collective_options_settle(const cadre_strategy *strategy,
    const cadre_collective_options *options, struct collective_settings *ret_settings,
    struct cadre_error *error);

/* How long a collective of the strategy that has no options waits; 0: as long as the job's. */
uint64_t collective_options_timeout_us(const cadre_strategy *strategy);

/* --- collective_pack.c: which tensors of a list are reduced together --- */

/* How many of `count` tensors go into the next pack: one more while the pack is not larger than
 * bytes_per_pack; all of them when that is 0. So a pack holds at least one, and its last one may
 * make it much larger. `bytes` is the size of the first tensor, that of each further one is
 * `stride` bytes further on. Pure. (tf.distribute: group_by_size.) */
size_t collective_pack(const size_t *bytes, size_t stride, size_t count, size_t bytes_per_pack);

/* --- collective_gather.c: sizes are exchanged first, then the bytes --- */

/* The numbers of all replicas, `count` of each: ret_all[replica * count + i], the caller's to free.
 */
cadre_status collective_gather_sizes(cadre_strategy *strategy, uint32_t local, const int64_t *own,
    size_t count, const struct mesh_note *note, int64_t **ret_all, struct cadre_error *error);

/* Joins each of `count` tensors with those of the other replicas along `axis`, in order of replica
 * ids. All but the sizes along it must be equal, which the note's key checks. On error all of
 * ret_outputs are NULL. RESOURCE_EXHAUSTED may be this replica's alone; INVALID_ARGUMENT all get.
 */
cadre_status collective_gather(cadre_strategy *strategy, uint32_t local,
    cadre_tensor *const inputs[], size_t count, uint32_t axis, const struct mesh_note *note,
    cadre_tensor *ret_outputs[], struct cadre_error *error);

/* INVALID_ARGUMENT when a tensor of so many dimensions has no such `axis`. */
cadre_status collective_check_axis(uint32_t rank, int32_t axis, struct cadre_error *error);

#endif
