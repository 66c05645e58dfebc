/* SPDX-License-Identifier: Apache-2.0
 * Which tasks share a host, and the slot of each replica: a pure function of the roster, so all
 * tasks get the same.
 *
 *     roster                                hosts, in the order of their lowest rank
 *       rank 0  10.0.0.1:4000/...  2 rep.     host 0: tasks 0, 2   lead task 0
 *       rank 1  10.0.0.2:4000/...  1 rep.       slots 0 1 2 = replicas 0 1 3
 *       rank 2  10.0.0.1:4001/...  1 rep.     host 1: task 1       lead task 1
 *                                               slot 0 = replica 2
 *
 * Two tasks are on one host when their addresses are the same up to the port, and both have a token
 * (address.h): a task that could not open its Unix socket has none, and counts as a host of its
 * own, which others reach over TCP. A slot is the index of a replica on its host: the replicas of
 * the host's tasks in rank order. The canonical order of replicas is (host, slot). */
#ifndef CADRE_WORKER_MESH_CONNECT_TOPOLOGY_H
#define CADRE_WORKER_MESH_CONNECT_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/mesh/mesh.h"

struct topology_host {
    uint32_t lead;       /* its lowest rank */
    uint32_t first_task; /* in topology.tasks */
    uint32_t task_count;
    uint32_t first_slot; /* in topology.replicas */
    uint32_t slot_count;
};

struct topology_location {
    uint32_t host;
    uint32_t slot;
};

struct topology {
    uint32_t host_count;
    uint32_t task_count;
    uint32_t replica_count;
    struct topology_host *hosts; /* [host_count] */
    uint32_t *tasks;             /* [task_count]: the ranks, host by host, ascending in each */
    uint32_t *task_hosts;        /* [task_count]: the host of each rank */
    uint32_t *task_slots;        /* [task_count]: the slot of each rank's first replica */
    uint32_t *replicas;          /* [replica_count]: replicas in canonical order, host by host */
    struct topology_location *locations; /* [replica_count]: where each replica is */
};

/* Of a roster that was checked: at least one member, each with at least one replica. */
cadre_status mesh_topology_make(struct topology *ret_topology, const struct mesh_member *members,
    uint32_t member_count, struct cadre_error *error);

/* Frees what topology_make allocated; accepts a zeroed topology. */
void mesh_topology_finish(struct topology *topology);

/* The ranks of a host's tasks, ascending: [task_count of that host]. */
static inline const uint32_t *mesh_topology_tasks(const struct topology *topology, uint32_t host)
{
    return topology->tasks + topology->hosts[host].first_task;
}

/* The replicas of a host by slot: [slot_count of that host]. */
static inline const uint32_t *mesh_topology_replicas(const struct topology *topology, uint32_t host)
{
    return topology->replicas + topology->hosts[host].first_slot;
}

static inline bool mesh_topology_is_lead(const struct topology *topology, uint32_t rank)
{
    return topology->hosts[topology->task_hosts[rank]].lead == rank;
}

/* How the tasks of two ranks can be connected. */
enum topology_connection {
    TOPOLOGY_UNCONNECTED, /* not at all: different hosts, and not both lead their host; or one
                           * task */
    TOPOLOGY_LINK,        /* one host: a Unix socket */
    TOPOLOGY_WIRE         /* lead tasks of two hosts: TCP */
};
/* How the tasks of ranks `a` and `b` are connected. */
enum topology_connection mesh_topology_connection(
    const struct topology *topology, uint32_t a, uint32_t b);

#endif
