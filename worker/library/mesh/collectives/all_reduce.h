/* SPDX-License-Identifier: Apache-2.0
 * The ways of a large all-reduce within a host that are called from one file into another. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_ALL_REDUCE_H
#define CADRE_WORKER_MESH_COLLECTIVES_ALL_REDUCE_H

#include "worker/library/mesh/collectives/collective.h"

/* Chunk by chunk through shared memory: the part [low, high) of the packed buffers. Between two
 * such calls, and before one, is a step. */
cadre_status mesh_all_reduce_staged(
    struct replica *replica, const struct call *call, size_t low, size_t high);

/* Where the tasks can attach to each other: in place, whatever memory it is. */
cadre_status mesh_all_reduce_attached(struct replica *replica, const struct call *call);

#endif
