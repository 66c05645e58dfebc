/* SPDX-License-Identifier: Apache-2.0
 * All-gather on one replica: the replicas exchange how long their tensors are along the axis, then
 * their bytes. */
#ifndef CADRE_RUNTIME_COLLECTIVE_GATHER_H
#define CADRE_RUNTIME_COLLECTIVE_GATHER_H

#include "worker/library/runtime/collectives/collective.h"

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
