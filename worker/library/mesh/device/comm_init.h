/* SPDX-License-Identifier: Apache-2.0
 * How devices become ranks of a communicator, in steps that all replicas of all tasks take
 * together, on the host mesh:
 *
 *    gather      who I am and on which device       all find the same in it
 *    broadcast   the id, from replica 0             or why there is none
 *    gather      my ranks are posted                or why not
 *    gather      mine are ready                     or why not, or not yet: then once more
 *
 * After each gather all know whether to go on, and the reason if not: the first one that failed.
 * The last one is repeated, since who has failed would be waited for by the others' library. Where
 * each replica has a communicator for itself a barrier is all that is left of the first two. */
#ifndef CADRE_WORKER_MESH_DEVICE_COMM_INIT_H
#define CADRE_WORKER_MESH_DEVICE_COMM_INIT_H

#include "worker/library/mesh/device/device_mesh.h"

/* One replica on its way through the steps. */
struct comm_init {
    struct device_replica *device_replica;
    const struct device *device; /* with which it comes; NULL: it is on the host */
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
    /* Filled in on the way. */
    struct host_mesh *host;
    uint64_t begun_us;
    uint64_t deadline_us;
};

/* ret_reason: "" when it is there for all replicas, else why not, the same words for all. An error
 * is one of the host mesh. The first one in a mesh, by local replica 0, makes its comms. */
cadre_status device_comm_init(
    struct comm_init *comm_init, char *ret_reason, size_t size, struct cadre_error *error);

#endif
