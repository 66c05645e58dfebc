/* SPDX-License-Identifier: Apache-2.0
 * The host mesh from inside: what its files share. Who may touch what:
 *  - fault:    any thread, under its lock; `raised` alone may be read without.
 *  - forming:  the one thread that polls form_test.
 *  - group:    any replica's thread, as in group.h; other processes as well.
 *  - replicas: each the thread that calls for it.
 *  - wire:     the leader, which is slot 0's thread of the host's lead task.
 * All else is fixed once the mesh has formed. */
#ifndef CADRE_WORKER_MESH_WIRE_HOST_H
#define CADRE_WORKER_MESH_WIRE_HOST_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "worker/library/mesh/connect/attach.h"
#include "worker/library/mesh/wire/group.h"
#include "worker/library/mesh/layout.h"
#include "worker/library/mesh/connect/links.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/mesh/connect/topology.h"
#include "worker/library/mesh/wire/watch.h"
#include "worker/library/trace/trace.h"

/* Why the mesh has ended. `streams`: who may write to the connections. */
struct fault {
    pthread_mutex_t lock;
    atomic_bool raised;
    cadre_status code;
    char text[CADRE_ERROR_TEXT_BYTES];
    int event_fd;      /* readable for ever after the fault: wakes every poll */
    bool streams_open; /* formed */
    bool streams_busy; /* the leader is between mesh_fault_enter_streams and
                          mesh_fault_leave_streams */
};

struct forming;
struct wire;
struct arena_view;

/* Where the addresses in a slot's posts are found: base + address, with address < `bytes`. */
struct slab_allocator {
    uintptr_t base;
    uint64_t bytes;
};

/* A group_span that no other process can change. */
struct span {
    uint64_t data;
    uint64_t from;
};

/* One of this task's replicas. Only the thread that calls for it reads and writes it. */
struct replica {
    alignas(GROUP_CACHE_LINE_BYTES) struct host_mesh *host;
    uint32_t local;
    uint32_t slot;
    uint32_t global;
    uint32_t done;          /* the value of its done word */
    uint64_t sequence;      /* of its last collective; the first is 1 */
    struct trace_mark mark; /* where its last collective began */
    uint64_t arrived_ns;    /* when all others had come to it; 0: not known */
    bool staged;            /* its last collective has buffers that are in no shared memory */
    bool attached;          /* and they can be attached to */
    bool lists_addresses;   /* its own post of that collective has addresses, not offsets */
    unsigned parity;        /* of the staged chunk that is read */
    struct layout layout;
    struct layout wide;          /* the same with 16-bit types as they are sent between hosts */
    size_t *offsets;             /* [replicas of the mesh + 1]: of an all_gather's pieces */
    uint8_t **rows;              /* [replicas of the mesh] */
    const uint8_t **ins;         /* [slots of the host] */
    uint8_t **outs;              /* [slots of the host] */
    uint8_t *scratch;            /* for the kernels */
    bool *by_address;            /* [slots]: whether the slot's spans are addresses */
    struct span *spans;          /* [slots * GROUP_SPANS_MAX]: those posted, once checked */
    uint8_t *copies;             /* [slots * host.copy_bytes]: of others' data */
    char text[GROUP_TEXT_BYTES]; /* why its call was wrong, or not equal to the others */
};

struct host_mesh {
    struct mesh mesh; /* first: the public handle */
    uint64_t generation;
    uint64_t nonce;
    uint64_t roster;
    uint8_t key[MESH_KEY_BYTES];
    uint32_t rank;
    uint32_t task_count;
    uint32_t replica_count;
    uint32_t first_replica;
    uint32_t local_count;
    uint32_t *firsts;  /* [task_count + 1]: the first replica of each rank */
    uint32_t *numbers; /* [task_count]: how errors name the task of each rank */
    struct mesh_member *members;
    struct mesh_listener *listener;
    uint64_t form_deadline_us;
    uint64_t timeout_us;
    void (*stalled)(void *user, uint32_t rank, uint64_t waited_us); /* NULL: no call */
    void *stalled_user;
    struct forming *forming; /* NULL for one task */
    atomic_bool formed;

    struct topology topology;
    struct links links; /* to the other tasks of this host */
    struct wire *wire;  /* between hosts; NULL: this task does not lead its host, or is alone */
    struct group group;
    const uint32_t *globals;         /* [slots]: the replica of each slot of this host */
    struct slab_allocator *memories; /* [slots] */
    struct arena_view *views;        /* [links.count]: the other tasks' arenas */
    struct replica *replicas;        /* [local_count] */
    struct attach_sentinel sentinel; /* of this task */
    struct attach_peer *attaches;    /* [slots] */
    bool attachable;                 /* this task can attach to all of the host */
    size_t copy_bytes;               /* how much of a slot's data is attached at a time */
    size_t small_bytes;              /* the most bytes that are sent with a post */
    size_t chunk_bytes;              /* of staging; 0: none is needed */
    bool lone_slots;                 /* no host has more than one */

    struct watch watch;

    struct fault fault;
};

static inline struct host_mesh *host_of(struct mesh *mesh)
{
    return (struct host_mesh *)mesh;
}

/* How many replicas the task of `rank` has. */
static inline uint32_t host_replicas_of(const struct host_mesh *host, uint32_t rank)
{
    return host->firsts[rank + 1] - host->firsts[rank];
}

/* How errors name the task of `rank`. */
static inline uint32_t host_number(const struct host_mesh *host, uint32_t rank)
{
    return host->numbers[rank];
}

/* The rank of the task that has a replica. */
uint32_t mesh_host_rank_of(const struct host_mesh *host, uint32_t replica);

#endif
