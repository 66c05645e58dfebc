/* SPDX-License-Identifier: Apache-2.0
 * The end of a mesh: the first reason is kept, everybody who waits is woken, the other tasks are
 * told. */
#ifndef CADRE_WORKER_MESH_WIRE_FAULT_H
#define CADRE_WORKER_MESH_WIRE_FAULT_H

#include "worker/library/mesh/wire/host.h"
#include "worker/library/mesh/wire/wire_frame.h"

cadre_status mesh_fault_open(struct fault *fault, struct cadre_error *error);
void mesh_fault_close(struct fault *fault);

/* Any thread. Keeps the first reason only. Returns `code`. */
cadre_status mesh_fault_raise(struct host_mesh *host, cadre_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Another task said in a FAULT frame, followed by its reason, that its mesh is gone: so is this
 * one, for the same reason. */
cadre_status mesh_fault_catch(
    struct host_mesh *host, uint32_t rank, const struct wire_frame *frame, const uint8_t *reason);

static inline bool mesh_fault_raised(const struct host_mesh *host)
{
    return atomic_load(&host->fault.raised);
}

/* The fault as the error of a call that it interrupted (its own code), or that came later
 * (ABORTED). */
cadre_status mesh_fault_error(struct host_mesh *host, bool interrupted, struct cadre_error *error);

/* The connections stand: from now on a fault is told to the other tasks. False when the mesh is
 * gone already. */
bool mesh_fault_open_streams(struct host_mesh *host);
/* They are about to end: nobody else touches them from now on. */
void mesh_fault_close_streams(struct host_mesh *host);

/* Brackets the leader's use of the connections; false when the mesh is gone. A fault raised
 * meanwhile is told to the other tasks at the end, so that nobody writes into the middle of a
 * message. */
bool mesh_fault_enter_streams(struct host_mesh *host);
void mesh_fault_leave_streams(struct host_mesh *host);

#endif
