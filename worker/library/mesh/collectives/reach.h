/* SPDX-License-Identifier: Apache-2.0
 * Reaching the buffers of the host's other replicas. Within one task they are just addresses. In
 * another task's memory they are reached when they lie in its arena, which every task of the host
 * maps; anything else is staged: copied into shared chunks by its owner, piece by piece. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_REACH_H
#define CADRE_WORKER_MESH_COLLECTIVES_REACH_H

#include "worker/library/mesh/collectives/collective.h"

/* Posts where the buffers from `first` on lie, as many as fit. Returns flags for the post:
 * GROUP_PRIVATE when any buffer of the whole call cannot be reached by the others. */
uint8_t mesh_reach_post(
    const struct replica *replica, const struct call *call, struct group_post *post, size_t first);

/* The `bytes` bytes of buffer `buffer` of the call, as `slot` posted it: where it reads, or where
 * the result is to go. NULL: what it posted lies nowhere; the fault is raised. */
const uint8_t *mesh_reach_from(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes);
uint8_t *mesh_reach_data(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes);

/* Calls `work` for buffers [first, first + count) while all of them can be reached: all of a call's
 * in turn, between two steps each. */
typedef cadre_status reach_work(
    struct replica *replica, const struct call *call, size_t first, size_t count);
cadre_status mesh_reach_run(struct replica *replica, const struct call *call, reach_work *work);

/* A long pass over memory is made in blocks of so many bytes, with a look at the group in between,
 * so that nobody who leaves has to wait for long. */
#define REACH_BLOCK_BYTES ((size_t)256 << 10)

/* What one replica reads, or gives. */
static inline const uint8_t *mesh_source(const struct mesh_buffer *buffer)
{
    return buffer->from != NULL ? buffer->from : buffer->data;
}

#endif
