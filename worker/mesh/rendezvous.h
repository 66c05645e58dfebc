/* SPDX-License-Identifier: Apache-2.0
 * How the local replicas meet. The one that comes last leads: it does the work of the meeting while
 * the others wait, then releases them. Waiting spins for a short while where every thread can have
 * a CPU, then sleeps in a futex.
 *
 * Memory safety after a fault: a replica that returns with an error gives its buffers back to the
 * program, so nobody may be in them any more. Whoever is about to touch buffers of other replicas
 * says so (mesh_touch_begin) and looks for a fault after that; whoever leaves with an error waits
 * until nobody touches (mesh_touch_settle), which is never for long, because nothing in between
 * blocks. */
#ifndef CADRE_WORKER_MESH_RENDEZVOUS_H
#define CADRE_WORKER_MESH_RENDEZVOUS_H

#include "worker/mesh/host.h"

/* The leader's part of a meeting. A failure has already raised the fault. */
typedef cadre_status rendezvous_work(struct host_mesh *host);

/* Waits until every local replica has come and `work` (may be NULL) is done. With a deadline, a
 * replica that has not entered this collective by then is a fault that names it. Not OK: the mesh
 * has a fault. */
cadre_status mesh_rendezvous_meet(
    struct host_mesh *host, uint32_t local, uint64_t deadline_us, rendezvous_work *work);

/* Wakes everybody, for ever. */
void mesh_rendezvous_break(struct rendezvous *rendezvous);

/* False when the mesh has a fault: nothing may be touched then, and touch_end is not called. */
bool mesh_touch_begin(struct host_mesh *host);
void mesh_touch_end(struct host_mesh *host);
void mesh_touch_settle(struct host_mesh *host);

#endif
