/* SPDX-License-Identifier: Apache-2.0
 * What this task shares with the others of its host: the control page and the arenas; and the state
 * of its own replicas in them. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_SHARE_H
#define CADRE_WORKER_MESH_COLLECTIVES_SHARE_H

#include "worker/library/mesh/wire/host.h"

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
