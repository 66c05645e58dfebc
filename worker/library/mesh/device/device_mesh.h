/* SPDX-License-Identifier: Apache-2.0
 * The mesh for devices from inside. Who may touch what:
 *  - host:     a mesh of its own; any thread, as in mesh.h.
 *  - device_replicas: each the thread that calls for it, and close.
 *  - comms:    made by local replica 0 in mesh_device_connect, before the others use it; comms.h.
 *              Groups are the replicas' own, their communicators in slots of comms.
 *  - reason:   set once by the replica that first has it, under the lock; all have the same.
 * All else is fixed when forming is posted. */
#ifndef CADRE_WORKER_MESH_DEVICE_DEVICE_MESH_H
#define CADRE_WORKER_MESH_DEVICE_DEVICE_MESH_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/library/mesh/collectives/collective.h"
#include "worker/library/mesh/device/comms.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/mesh_device.h"

/* In a mesh that is not connected, calls of more bytes go in pieces of so many. */
#define STAGE_BYTES ((size_t)8 << 20)

/* Vectors of fewer bytes are packed where there are so many of them; the pack's limit. */
#define PACK_VECTOR_BYTES ((size_t)256 << 10)
#define PACK_VECTORS_MIN  4u
#define PACK_BYTES_MAX    ((size_t)64 << 20)

/* A list that grows, and is kept from one call to the next. */
struct scratch {
    void *memory;
    size_t bytes;
};

/* Page-locked memory (or the host's, where there is none) for one piece. */
struct stage_block {
    uint8_t *memory;
    size_t bytes;
    int kind;    /* enum tensor_memory_kind */
    void *event; /* what was enqueued into it has arrived */
};

/* A call of the communicator, in the order of the comm stream; an event that is NULL is over. */
struct tracked_call {
    void *reached; /* all before it is done */
    void *gone;    /* it is over */
};

#define TRACKED_CALLS 16u

/* A replica's state of a group that all have formed. */
struct device_replica_group {
    char reason[256]; /* why there is none; "": there is */
    uint32_t rank_count;
    struct comms_rank ranks[]; /* its own */
};

struct device_replica {
    struct device_mesh *mesh;
    uint32_t local;
    uint32_t global;
    struct device *device; /* NULL: a replica of the host */
    bool connected;
    bool lent;                     /* the program has handles; its own thread's */
    atomic_uint_fast64_t launched; /* calls of the communicator; read by the others of the task */
    struct scratch vectors;        /* struct device_vector[] */
    struct scratch pieces;         /* struct device_piece[] */
    struct scratch buffers;        /* struct mesh_buffer[] */
    struct scratch sizes;          /* size_t[] */
    struct layout layout;
    void *pack; /* on the device, in the order of its comm stream */
    size_t pack_bytes;
    struct stage_block blocks[2];
    struct tracked_call calls[TRACKED_CALLS]; /* a ring; the oldest one is not over */
    uint32_t tracked_first;
    uint32_t tracked;
    bool tracking;     /* the call that is being enqueued */
    atomic_bool waits; /* it waits in synchronize for the devices of others */
    struct device_replica_group *groups[DEVICES_MAX]; /* NULL: not formed; groups.c numbers them */
    char text[MESH_NOTE_BYTES];
};

struct device_mesh {
    struct mesh mesh; /* first: the public handle */
    struct mesh *host;
    uint32_t replica_count;
    uint32_t local_count;
    bool plain; /* no replica is on a device, of any task: it is the host mesh */
    struct device_replica *device_replicas;
    struct comms *comms;
    pthread_mutex_t lock;
    atomic_bool decided; /* how the replicas are connected: reason is final */
    char reason[CADRE_ERROR_TEXT_BYTES];
};

static inline struct device_mesh *device_mesh_of(struct mesh *mesh)
{
    return (struct device_mesh *)mesh;
}

static inline struct host_mesh *device_mesh_host(const struct device_mesh *mesh)
{
    return host_of(mesh->host);
}

/* Slots of a task's communicators: the replicas' own, and for each device one in a group across
 * replicas and one within. */
static inline uint32_t device_mesh_slots(const struct device_mesh *mesh)
{
    return mesh->local_count + 2 * DEVICES_MAX;
}

/* The state of the replica's group communicators: the first that failed, else CADRE_OK. */
cadre_status device_groups_test(struct device_replica *device_replica, struct cadre_error *error);
/* Frees the replica's groups. */
void device_groups_finish(struct device_replica *device_replica);

/* One call of one replica, on its stack. An all_gather's only buffer has `from` and its bytes as
 * what the replica gives, `data` as where all goes. */
struct device_call {
    struct device_replica *device_replica;
    enum mesh_kind kind;
    enum mesh_op op;
    uint32_t root;
    const struct mesh_buffer *buffers;
    size_t count;
    const size_t *sizes; /* of an all_gather; may be NULL */
    const struct mesh_note *note;
    struct device *on;   /* where all of them are; NULL: the host's memory */
    const char *wrong;   /* about their memory; NULL: nothing */
    uint64_t total;      /* bytes that go through a replica's stage */
    uint64_t timeout_us; /* after the agreement */
};

/* At least `count` elements of `bytes`; the content is not kept. NULL: no memory. */
void *scratch_reserve(struct scratch *scratch, size_t count, size_t bytes);

#define FAULT_RELAY_MS 200
/* The thread that ends a mesh raises the reason on the host mesh as well: waits for that a
 * little. */
void device_mesh_await_fault(struct device_replica *device_replica);

/* Ends the mesh for this replica's failure, unless it has ended already; the error of the call. */
cadre_status device_mesh_fail(struct device_replica *device_replica, cadre_status status,
    const char *doing, const struct cadre_error *reason, struct cadre_error *error);

/* A device_stop of the replica: the mesh's fault, and the state of its communicators. */
cadre_status device_mesh_stop(void *device_replica, struct cadre_error *error);

/* The call as the host mesh makes it, with other buffers; also a call that it has to refuse. */
cadre_status device_call_host(const struct device_call *call, const struct mesh_buffer *buffers,
    size_t count, const size_t *sizes, const struct mesh_note *note, struct cadre_error *error);

/* --- the collectives of the table: calls.c, as in mesh_ops --- */
cadre_status device_mesh_all_reduce(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);
/* mesh_ops.reduce_scatter. */
cadre_status device_mesh_reduce_scatter(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error);
/* mesh_ops.broadcast. */
cadre_status device_mesh_broadcast(struct mesh *mesh, uint32_t local_replica, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);
/* mesh_ops.all_gather. */
cadre_status device_mesh_all_gather(struct mesh *mesh, uint32_t local_replica, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error);
/* mesh_ops.barrier. */
cadre_status device_mesh_barrier(struct mesh *mesh, uint32_t local_replica,
    const struct mesh_note *note, struct cadre_error *error);

/* Through NCCL; after the agreement. */
cadre_status device_connected_run(struct device_call *call, struct cadre_error *error);

/* Through the host's memory. `pieces`: all replicas agreed on the call, and that it goes in pieces;
 * else it is one collective of the host mesh, which also agrees on it. */
cadre_status device_staged_run(struct device_call *call, bool pieces, struct cadre_error *error);
/* Frees the blocks; `at_rest` false: the device may still write to them, so they are lost. */
void device_staged_finish(struct device_replica *device_replica, bool at_rest);

/* Reduces or broadcasts lists; connected.c has the rest. */
cadre_status device_pack_run(struct device_call *call, struct cadre_error *error);
/* Memory on the device for `bytes`, kept, in the order of its comm stream. */
cadre_status device_pack_room(
    struct device_replica *device_replica, size_t bytes, struct cadre_error *error);

/* One call on the communicator, until it is enqueued on the device. The arguments are read by
 * `kind`: all_reduce and broadcast take `vectors`, reduce_scatter one, all_gather the bytes of
 * one. */
cadre_status device_comm_call(const struct device_call *call, enum mesh_kind kind, uint32_t root,
    const struct device_vector *vectors, size_t count, struct cadre_error *error);

/* Records that a call of the communicator begins: track.c. All of these by the thread that calls
 * for the replica. */
void device_track_enter(struct device_replica *device_replica);
/* Records that the call was enqueued. */
void device_track_leave(struct device_replica *device_replica);
/* Whether the device is in one of these calls, waiting for others, and not at earlier work. */
bool device_track_waits(struct device_replica *device_replica);
/* Frees the events. */
void device_track_finish(struct device_replica *device_replica);

/* NCCL's handle of a slot of the replica's, lent to the program. */
cadre_status device_comm_raw(struct device_replica *device_replica, uint32_t slot, void **ret_comm,
    struct cadre_error *error);

/* The device's element type for one of the mesh. */
cadre_dtype device_mesh_dtype(enum mesh_dtype dtype);

#endif
