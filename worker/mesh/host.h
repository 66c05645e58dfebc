/* SPDX-License-Identifier: Apache-2.0
 * The host mesh from inside: what its parts share. Who may touch what:
 *  - fault:       any thread, under its lock; `raised` alone may be read without.
 *  - forming:     the one thread that polls form_test.
 *  - everything between two rendezvous: the leader, which is whichever local replica came last. The
 *    others only read it after the leader has released them. */
#ifndef CADRE_WORKER_MESH_HOST_H
#define CADRE_WORKER_MESH_HOST_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "worker/mesh/frame.h"
#include "worker/mesh/layout.h"
#include "worker/mesh/links.h"
#include "worker/mesh/mesh.h"
#include "worker/mesh/topology.h"
#include "worker/mesh/tree.h"
#include "worker/mesh/watch.h"

/* A chunk of a large collective over TCP. */
#define HOST_CHUNK_BYTES ((size_t)2 << 20)
/* Up to this, one thread does all of a collective within one task. */
#define HOST_SMALL_BYTES ((size_t)32 << 10)
/* Up to this, over TCP, the data travel with the frame (up to 64 tasks). */
#define HOST_INLINE_BYTES ((size_t)16 << 10)
/* How long a waiting thread spins before it sleeps. */
#define HOST_SPIN_US       UINT64_C(50)
#define HOST_PROBLEM_BYTES FRAME_TEXT_BYTES

/* Why the mesh is gone, once it is. `streams` says who may write to the connections. */
struct fault {
    pthread_mutex_t lock;
    atomic_bool raised;
    cadre_status code;
    char text[CADRE_ERROR_TEXT_BYTES];
    int event_fd;      /* readable for ever after the fault: wakes whoever polls */
    bool streams_open; /* formed */
    bool streams_busy; /* the leader is between mesh_fault_enter_streams and
                          mesh_fault_leave_streams */
};

/* Where local replicas wait for each other. */
struct rendezvous {
    atomic_uint word;    /* a count of meetings, and the top bit once the mesh is gone; the futex */
    atomic_uint arrived; /* at the next meeting */
    atomic_uint sleepers; /* in the futex */
    atomic_uint touching; /* threads that may be in another replica's buffers */
};

/* One replica's call, on its stack: others look at it only between mesh_touch_begin and
 * mesh_touch_end (rendezvous.h). */
struct call {
    struct call_shape shape;
    const struct mesh_buffer *buffers;
    struct mesh_buffer gather;     /* all_gather: the one buffer, as a list */
    const char *problem;           /* NULL, or why the call is wrong by itself */
    const char *note;              /* NULL, or how the call reads to people */
    uint64_t timeout_us;           /* 0: the mesh's */
    void **ret_data;               /* all_gather */
    size_t *ret_bytes;             /* all_gather */
    char text[HOST_PROBLEM_BYTES]; /* holds the problem */
};

struct replica_slot {
    _Atomic uint64_t entered; /* collectives this replica has come to */
    struct call *call;
    uint8_t *scratch;       /* tiles for the tree */
    const uint8_t **leaves; /* one per leaf of the larger tree */
};

/* One other task and what is on its connection now. */
struct peer {
    int fd;
    struct iovec *out;
    struct iovec in[2];
    uint32_t out_at;
    uint32_t out_count;
    uint32_t in_at;
    uint32_t in_count;
    bool ready;  /* worth trying: new, or poll said so */
    bool broken; /* writing failed; what it still says is read first */
    bool
        between_frames; /* nothing of an unfinished collective was sent: a FAULT frame may follow */
    uint8_t frame_bytes[FRAME_BYTES];
    struct frame frame;
    uint8_t *inlined; /* [inline_max] */
};

/* What the leader found out when all local replicas had come, and all tasks had spoken. */
struct verdict {
    bool mismatch;
    bool finished; /* the result is in place */
    char text[HOST_PROBLEM_BYTES];
};

struct forming;
struct wire;

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
    uint32_t *firsts; /* [task_count + 1]: the first replica of each rank */
    struct mesh_member *members;
    struct mesh_listener *listener;
    uint64_t form_deadline_us;
    uint64_t timeout_us;
    void (*stalled)(void *user, uint32_t rank, uint64_t waited_us); /* NULL: nobody asks */
    void *stalled_user;
    uint64_t spin_us;
    struct forming *forming; /* NULL for one task */
    atomic_bool formed;

    struct topology topology;
    struct links links; /* to the other tasks of this host */
    struct wire *wire;  /* between hosts; NULL: this task does not lead its host, or is alone */

    struct watch watch;
    bool wired; /* the wire is in use, and has the connections between hosts */

    struct fault fault;
    struct rendezvous rendezvous;
    struct replica_slot *slots; /* [local_count] */

    struct tree local_tree;  /* over this task's replicas */
    struct tree global_tree; /* over all tasks' roots, rank by rank */
    uint32_t *block_firsts;  /* [task_count + 1]: the first leaf of each rank in global_tree */
    uint32_t blocks_max;     /* of one task */

    uint64_t sequence;       /* of the collective under way; the first is 1 */
    struct call_shape shape; /* what it was called with, once the local replicas agree */
    struct layout layout;
    struct verdict verdict;
    struct peer *peers;   /* [task_count]; the own one has fd -1 */
    struct pollfd *polls; /* [task_count + 1] */
    size_t inline_max;
    uint8_t *inline_out;
    uint8_t *staging;  /* a chunk of each local root */
    uint8_t *result;   /* a chunk of the result */
    uint8_t *arriving; /* the same slice of every other task's roots */
    size_t slice_max;
    size_t chunk_end;     /* how far the leaders of this collective have come */
    uint8_t *gathered;    /* all_gather over TCP: everybody's bytes */
    size_t *gather_sizes; /* [replica_count] */
};

/* The kinds of collective, as the leader and the replicas run them. */
struct collective_kind {
    /* Whether the whole of it is done by the leader, with the frames of the tasks. */
    bool (*small)(const struct host_mesh *host);
    /* Writes what goes with this task's frame (at most inline_max); returns its size. */
    size_t (*pack)(struct host_mesh *host, uint8_t *into);
    /* What must have come with the frame of `rank`. */
    size_t (*expected)(const struct host_mesh *host, uint32_t rank);
    /* The leader, when small: puts the results in place. ABORTED when a fault stopped it. */
    cadre_status (*finish)(struct host_mesh *host);
    /* The leader, when not small: memory and whatever else the replicas need. A failure has raised
     * the fault. */
    cadre_status (*prepare)(struct host_mesh *host);
    /* Every replica, when not small. */
    cadre_status (*rest)(struct host_mesh *host, uint32_t local);
};

extern const struct collective_kind host_all_reduce_kind;
extern const struct collective_kind host_broadcast_kind;
extern const struct collective_kind host_all_gather_kind;
extern const struct collective_kind host_barrier_kind;

static inline struct host_mesh *host_of(struct mesh *mesh)
{
    return (struct host_mesh *)mesh;
}

/* How many replicas the task of `rank` has. */
static inline uint32_t host_replicas_of(const struct host_mesh *host, uint32_t rank)
{
    return host->firsts[rank + 1] - host->firsts[rank];
}

#endif
