/* SPDX-License-Identifier: Apache-2.0
 * Collectives over several hosts, as the slots of one host see them. Slot 0 is the leader: it alone
 * uses the wire (wire.h), and leaves the result in shared memory.
 *
 *     small                                large, chunk by chunk, three buffers in turn
 *       all     post, arrive                 others   make chunk c+1     | step | copy out chunk c
 *       leader  reduce, send over the wire   leader   carry chunk c over | step | copy out chunk c
 *       all     step, copy out */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_HOSTS_H
#define CADRE_WORKER_MESH_COLLECTIVES_HOSTS_H

#include "worker/library/mesh/collectives/collective.h"
#include "worker/library/mesh/wire/wire.h"

/* How a kind of collective continues when there are several hosts. A failure has raised the
 * fault. */
struct hosts_kind {
    /* Leader, small: this host's part into `result`, then the wire, which also compares. */
    cadre_status (*exchange)(
        struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result);
    bool lone_exchange; /* it takes larger calls too, when no host has more than one slot */
    /* All slots, small: copies what is due to this replica out of `result`. */
    void (*take)(struct replica *replica, const struct call *call, const uint8_t *result);

    /* All slots, large: allocates what the functions under it use; may be NULL. */
    cadre_status (*prepare)(struct replica *replica, const struct call *call);
    /* Large, when no host has more than one slot: all at once, without shared memory. NULL: in
     * chunks. */
    cadre_status (*whole)(struct replica *replica, const struct call *call);

    /* Large. Offsets are packed ones of what the kind sends; `size` is their end. */
    size_t (*size)(const struct replica *replica, const struct call *call);
    size_t (*cut)(const struct replica *replica, const struct call *call, size_t low, size_t high);
    /* All slots, when not all buffers can be reached: copies the own part to where others read
     * it. */
    void (*stage)(
        struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *stage);
    /* Share `share` of `shares` of the host's part of a chunk. */
    cadre_status (*make)(struct replica *replica, const struct call *call, size_t low, size_t high,
        uint8_t *chunk, uint32_t share, uint32_t shares);
    /* The leader. */
    cadre_status (*carry)(
        struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *chunk);
    void (*deliver)(struct replica *replica, const struct call *call, size_t low, size_t high,
        const uint8_t *chunk);
};

/* Runs all of the collective once the posts of this host are here; `same`: they are equal. */
cadre_status mesh_hosts_run(
    struct replica *replica, const struct call *call, const struct hosts_kind *kind, bool same);

static inline bool mesh_is_leader(const struct replica *replica)
{
    return replica->slot == 0;
}

/* --- The two halves of all-reduce: within a host (all_reduce.c), and between hosts. --- */

extern const struct hosts_kind mesh_all_reduce_hosts;

/* Reduces the slots' posts, which are the one list of buffers of replica->layout, over all
 * hosts. */
cadre_status mesh_all_reduce_exchange(
    struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result);

#endif
