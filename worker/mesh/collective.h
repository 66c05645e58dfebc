/* SPDX-License-Identifier: Apache-2.0
 * The way every collective goes: check the call, meet locally, let the leader compare and talk to
 * the other tasks, then do the rest together. */
#ifndef CADRE_WORKER_MESH_COLLECTIVE_H
#define CADRE_WORKER_MESH_COLLECTIVE_H

#include "worker/mesh/host.h"

cadre_status host_all_reduce(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);
cadre_status host_reduce_scatter(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error);
cadre_status host_broadcast(struct mesh *mesh, uint32_t local_replica, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);
cadre_status host_all_gather(struct mesh *mesh, uint32_t local_replica, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error);
cadre_status host_barrier(struct mesh *mesh, uint32_t local_replica, const struct mesh_note *note,
    struct cadre_error *error);

/* The memory that large collectives over TCP need, made on first use and kept. A failure raises the
 * fault. */
cadre_status host_claim_staging(struct host_mesh *host);

/* Where the chunk that begins at `low` ends: the same on every replica. */
size_t host_chunk_end(const struct host_mesh *host, size_t low);

#endif
