/* SPDX-License-Identifier: Apache-2.0
 * The end of a mesh: the first reason is kept, every thread that waits is woken, the other tasks
 * receive it. */
#ifndef CADRE_WORKER_MESH_WIRE_FAULT_H
#define CADRE_WORKER_MESH_WIRE_FAULT_H

#include "worker/library/mesh/wire/host.h"
#include "worker/library/mesh/wire/wire_frame.h"

/* Makes the lock and the eventfd. */
cadre_status mesh_fault_open(struct fault *fault, struct cadre_error *error);
/* Accepts a fault that was never opened. */
void mesh_fault_close(struct fault *fault);

/* Any thread. Keeps the first reason only. Returns `code`. */
cadre_status mesh_fault_raise(struct host_mesh *host, cadre_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Another task sent in a FAULT frame, followed by its reason, that its mesh has ended: this mesh
 * ends too, for the same reason. */
cadre_status mesh_fault_catch(
    struct host_mesh *host, uint32_t rank, const struct wire_frame *frame, const uint8_t *reason);

static inline bool mesh_fault_raised(const struct host_mesh *host)
{
    return atomic_load(&host->fault.raised);
}

/* The fault as the error of a call that it interrupted (its own code), or of a call after it
 * (ABORTED). */
cadre_status mesh_fault_error(struct host_mesh *host, bool interrupted, struct cadre_error *error);

/* The connections are established: from now on a fault is sent to the other tasks. False when the
 * mesh has ended already. */
bool mesh_fault_open_streams(struct host_mesh *host);
/* The connections are about to end: no other thread touches them from now on. */
void mesh_fault_close_streams(struct host_mesh *host);

/* Begins the leader's use of the connections; false when the mesh has ended. */
bool mesh_fault_enter_streams(struct host_mesh *host);
/* Ends it. A fault that was raised meanwhile is sent to the other tasks here, so that it is not
 * written into the middle of a message. */
void mesh_fault_leave_streams(struct host_mesh *host);

#endif
