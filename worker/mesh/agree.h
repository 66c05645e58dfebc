/* SPDX-License-Identifier: Apache-2.0
 * Whether everybody called the same collective: first the local replicas, then the tasks. Every
 * replica of every task finds the same answer, because all look at the same calls in the same
 * order. */
#ifndef CADRE_WORKER_MESH_AGREE_H
#define CADRE_WORKER_MESH_AGREE_H

#include "worker/mesh/host.h"

/* The leader: compares the local calls (between mesh_touch_begin and mesh_touch_end). Fills
 * host->shape, and host->verdict on a mismatch. */
void mesh_agree_local(struct host_mesh *host);

/* The leader, after the frames were exchanged: host->verdict on a mismatch of this or any other
 * task. */
void mesh_agree_tasks(struct host_mesh *host);

#endif
