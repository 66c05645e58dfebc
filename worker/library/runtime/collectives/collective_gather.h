/* SPDX-License-Identifier: Apache-2.0
 * All-gather on one replica: the replicas tell each other how long their tensors are along the
 * axis, then give their bytes. */
#ifndef CADRE_RUNTIME_COLLECTIVE_GATHER_H
#define CADRE_RUNTIME_COLLECTIVE_GATHER_H

#include "worker/library/runtime/collectives/collective.h"

/* The numbers of all replicas, `count` of each: ret_all[replica * count + i], the caller's to free.
 */
cadre_status collective_gather_sizes(cadre_strategy *strategy, uint32_t local, const int64_t *own,
    size_t count, const struct mesh_note *note, int64_t **ret_all, struct cadre_error *error);

/* Joins each of `count` tensors with those of the other replicas along `axis`, in order of replica
 * ids. All but the sizes along it must be equal: the note's key tells. On error all places are
 * NULL. RESOURCE_EXHAUSTED is this replica's own; INVALID_ARGUMENT all come to alike. */
cadre_status collective_gather(cadre_strategy *strategy, uint32_t local,
    cadre_tensor *const inputs[], size_t count, uint32_t axis, const struct mesh_note *note,
    cadre_tensor *ret_outputs[], struct cadre_error *error);

/* INVALID_ARGUMENT when `axis` is none of a tensor of so many dimensions. */
cadre_status collective_check_axis(uint32_t rank, int32_t axis, struct cadre_error *error);

#endif
