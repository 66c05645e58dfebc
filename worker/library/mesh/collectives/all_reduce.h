/* SPDX-License-Identifier: Apache-2.0
 * The two halves of all-reduce: within a host (all_reduce.c), and between hosts. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_ALL_REDUCE_H
#define CADRE_WORKER_MESH_COLLECTIVES_ALL_REDUCE_H

#include "worker/library/mesh/collectives/hosts.h"

extern const struct hosts_kind mesh_all_reduce_hosts;

/* Reduces the slots' posts, which are the one list of buffers of replica->layout, over all
 * hosts. */
cadre_status mesh_all_reduce_exchange(
    struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result);

#endif
