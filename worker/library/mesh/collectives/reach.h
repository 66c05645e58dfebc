/* SPDX-License-Identifier: Apache-2.0
 * Reaching the buffers of the host's other replicas. Within one task they are addresses. In another
 * task's memory they are reached when they are in its arena, which every task of the host maps;
 * anything else is staged: copied into shared chunks by its owner, piece by piece. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_REACH_H
#define CADRE_WORKER_MESH_COLLECTIVES_REACH_H

#include "worker/library/mesh/collectives/collective.h"

/* Posts the addresses of the buffers from `first` on, as many as fit. Returns flags for the post:
 * GROUP_PRIVATE when any buffer of the whole call cannot be reached by the others. */
uint8_t mesh_reach_post(
    const struct replica *replica, const struct call *call, struct group_post *post, size_t first);

/* The `bytes` bytes of buffer `buffer` of the call that `slot` posted, where it is read. NULL: the
 * posted address is outside of the task's memory; the fault is raised. */
const uint8_t *mesh_reach_from(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes);
/* The same, where the result of the buffer goes. */
uint8_t *mesh_reach_data(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes);

/* The work on buffers [first, first + count) of a call. */
typedef cadre_status reach_work(
    struct replica *replica, const struct call *call, size_t first, size_t count);
/* Calls `work` for windows of buffers that can all be reached, until all of a call's are done, each
 * between two steps. */
cadre_status mesh_reach_run(struct replica *replica, const struct call *call, reach_work *work);

/* A long pass over memory is made in blocks of so many bytes, with a check of the group in between,
 * so that a replica that leaves does not have to wait for long. */
#define REACH_BLOCK_BYTES ((size_t)256 << 10)

/* Where one replica's data are read. */
static inline const uint8_t *mesh_source(const struct mesh_buffer *buffer)
{
    return buffer->from != NULL ? buffer->from : buffer->data;
}

#endif
