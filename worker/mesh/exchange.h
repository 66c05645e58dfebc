/* SPDX-License-Identifier: Apache-2.0
 * The TCP phase: one thread, the leader, moves what is queued on all connections at once, both
 * ways, without ever blocking in one of them. Queue with mesh_exchange_send and
 * mesh_exchange_receive, then run. */
#ifndef CADRE_WORKER_MESH_EXCHANGE_H
#define CADRE_WORKER_MESH_EXCHANGE_H

#include "worker/mesh/host.h"

/* Queues `bytes` at `data`, which stay where they are until the run ends; zero bytes are nothing.
 * At most local roots + 2 pieces out and 2 in on a connection. */
void mesh_exchange_send(struct host_mesh *host, uint32_t rank, const void *data, size_t bytes);
void mesh_exchange_receive(struct host_mesh *host, uint32_t rank, void *data, size_t bytes);

/* Runs until everything queued was sent and received. A closed connection, a fault, and the
 * collective timeout without any progress (naming the lowest rank that is due) end it; the fault is
 * then raised. `last` tells that this task says nothing more in this collective. */
cadre_status mesh_exchange_run(struct host_mesh *host, bool last);

/* Sends `frame` and its inline bytes to every other task and receives theirs into peers[].frame and
 * peers[].inlined. What a frame says is checked before it is used: magic, generation, nonce, rank,
 * sequence and the inline size. A FAULT frame raises the fault it carries. */
cadre_status mesh_exchange_frames(struct host_mesh *host, const struct frame *frame, bool last);

#endif
