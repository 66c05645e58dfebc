/* SPDX-License-Identifier: Apache-2.0
 * How devices become ranks of a communicator (protocol, rule 13: a new id for each generation), in
 * steps that all replicas of all tasks take together, on the host mesh:
 *
 *    gather      own identity and device            all find the same in it
 *    broadcast   the id, from replica 0             or why there is none
 *    gather      own ranks are posted               or why not
 *    gather      own ranks are ready                or why not, or not yet: then once more
 *
 * After each gather all have the same decision to continue, or the reason why not: the first one
 * that failed. The last one is repeated, since the others' library would wait for a replica that
 * failed. Where each replica has a communicator for itself, a barrier replaces the first two. */
#ifndef CADRE_WORKER_MESH_DEVICE_COMM_INIT_H
#define CADRE_WORKER_MESH_DEVICE_COMM_INIT_H

#include "worker/library/mesh/device/device_mesh.h"

/* One replica's state in these steps. */
struct comm_init {
    struct device_replica *device_replica;
    const struct device *device; /* the one that it gives; NULL: it is on the host */
    uint32_t world;              /* ranks of the communicator */
    bool by_itself;              /* all of them are this replica's: it makes the id */
    /* Ranks that it posts, which may be other local replicas' as well; and those that it waits
     * for. */
    const struct comms_rank *posts;
    uint32_t post_count;
    const struct comms_rank *ranks;
    uint32_t rank_count;
    struct mesh_note note;
    uint64_t timeout_us; /* 0: never */
    /* Set by device_comm_init. */
    struct host_mesh *host;
    uint64_t begun_us;
    uint64_t deadline_us;
};

/* ret_reason: "" when the communicator is there for all replicas, else why not, the same text for
 * all. An error is one of the host mesh. The first one in a mesh, by local replica 0, makes its
 * comms. */
cadre_status device_comm_init(
    struct comm_init *comm_init, char *ret_reason, size_t size, struct cadre_error *error);

#endif
