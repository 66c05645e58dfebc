/* SPDX-License-Identifier: Apache-2.0
 * Forming: of two tasks that are to be connected (topology.h), the higher rank connects and the
 * lower one admits, by steps that never block. Tasks of one host then exchange their handovers
 * (links.h). A connection that is refused or ends is tried again after a pause (the other task may
 * not listen yet, or still be in an older generation); a peer that answers but cannot prove the key
 * ends the forming at once. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_FORM_H
#define CADRE_WORKER_MESH_COLLECTIVES_FORM_H

#include "worker/library/mesh/wire/host.h"

/* For a mesh of several tasks that has its topology and links; host->forming is the caller's to
 * close also after an error. */
cadre_status mesh_form_open(struct host_mesh *host, struct cadre_error *error);

/* One step, in a mesh without a fault. CADRE_PENDING, or CADRE_OK once all connections are
 * established and all handovers have come, or the code of the fault it raised. */
cadre_status mesh_form_step(struct host_mesh *host);

/* After a fault: ends all connections, so that the other tasks need not wait for the message. For
 * the thread that polls, before the mesh has formed. */
void mesh_form_drop(struct host_mesh *host);

/* The descriptor that becomes readable when a step may get further. */
int mesh_form_watch_fd(const struct host_mesh *host);

/* The lowest rank that is still to come; UINT32_MAX: none. */
uint32_t mesh_form_missing(const struct host_mesh *host);

/* Established connections are the mesh's and stay open; accepts NULL. */
void mesh_form_close(struct forming *forming);

/* --- What this task shares with the others of its host: the control page and the arenas; and the
 * state of its own replicas in them. --- */

/* Where another task's arena is mapped, with some room before it. */
struct arena_view {
    void *memory;
    size_t bytes;
};

/* Makes the page, unless another task leads this host, and the handover of this task. */
cadre_status mesh_share_open(struct host_mesh *host, struct cadre_error *error);

/* Called when all links are connected: maps the page and the arenas that came. A failure has raised
 * the fault. */
cadre_status mesh_share_take(struct host_mesh *host);

/* Accepts what a failed open left. */
void mesh_share_close(struct host_mesh *host);

#endif
