/* SPDX-License-Identifier: Apache-2.0
 * Reducing memory that the tasks of a host do not share, in place (connect/attach.h). */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_ATTACHED_H
#define CADRE_WORKER_MESH_COLLECTIVES_ATTACHED_H

#include "worker/library/mesh/collectives/collective.h"

#define ATTACHED_UNWRITTEN UINT64_MAX

/* Reduces [low, high) (packed) of the buffers [first, first + count), which all slots have posted,
 * into the buffers of all of them. *ret_reached: the end of what was reduced; what follows is as it
 * was, because some of it cannot be read (memory of a device, say). ATTACHED_UNWRITTEN - slot: that
 * slot's task could not be written to, and others may have the result. False: the mesh is broken.
 */
bool mesh_attached_reduce(struct replica *replica, const struct call *call, size_t first,
    size_t count, size_t low, size_t high, uint64_t *ret_reached);

#endif
