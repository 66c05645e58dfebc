/* SPDX-License-Identifier: Apache-2.0
 * A mesh carries the collectives of one generation: all replicas of all its tasks. One table of
 * functions, several peers behind it (host: threads of one process and TCP between processes;
 * devices: the same, and NCCL between GPUs) that pass one conformance suite.
 *
 * The rules of every peer:
 * - Forming never blocks: form_post starts, form_test is polled and returns CADRE_OK, CADRE_PENDING
 *   or an error.
 * - A mesh is bound to one generation (number and nonce). A connection or message of another one is
 *   refused (protocol, rule 13).
 * - A connection between tasks is admitted only after a mutual challenge with the generation's key,
 *   checked before any length field of it is used.
 * - Collectives match by call order (protocol, rule 14). Each carries (sequence, kind, op, dtype,
 *   bytes); a mismatch is INVALID_ARGUMENT on every replica and names both sides, never a sum and
 *   never a hang. The mesh stays usable.
 * - abort may be called from any thread at any time; blocked calls return CADRE_ABORTED soon after,
 *   for ever after. A call that is interrupted by another fault returns that fault's code
 *   (DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, ...); every later call returns CADRE_ABORTED.
 * - A task that closes its mesh after the last collective disturbs no other task (protocol, rule
 *   17); a task that calls another collective gets CADRE_ABORTED, which names the task that closed.
 * - One listener serves the meshes of one generation, in any order and several at a time, then
 *   those of the next. A connection waits for its mesh until this task forms it, and for a newer
 *   generation; what is left of older ones is refused.
 * - Sums are made in one canonical order: the balanced pairwise tree over global replica index
 *   (padded to a power of two), ((0+1)+(2+3))+..., whatever the transport or the split into tasks:
 *   the same bits on every replica and in every run. Half-width floats are summed in float32 and
 *   rounded once per pairwise sum. Integers wrap. MIN and MAX give NaN when a side is NaN. (Which
 *   of several NaNs, that is its payload, is not promised.) */
#ifndef CADRE_WORKER_MESH_H
#define CADRE_WORKER_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/port_range.h"
struct device; /* worker/library/device/device.h */

#define MESH_KEY_BYTES        32
#define MESH_ADDRESS_BYTES    64 /* "127.0.0.1:40123/5e1c07a9d2f4", terminated */
#define MESH_MEMBERS_MAX      16384
#define MESH_REPLICAS_MAX     (UINT32_C(1) << 20) /* of all tasks together */
#define MESH_GATHER_BYTES_MAX ((size_t)1 << 36)   /* of one all_gather, all replicas together */
#define MESH_NOTE_BYTES       192

enum mesh_op { MESH_SUM, MESH_PROD, MESH_MIN, MESH_MAX };

enum mesh_dtype {
    MESH_F64,
    MESH_F32,
    MESH_F16,
    MESH_BF16,
    MESH_I64,
    MESH_I32,
    MESH_I16,
    MESH_I8,
    MESH_U32,
    MESH_U16,
    MESH_U8
};

/* The bytes of one element. */
size_t mesh_dtype_bytes(enum mesh_dtype dtype);

/* One task of the roster; its index in `members` is its rank. Global replica indices run over the
 * ranks in order. */
struct mesh_member {
    char address[MESH_ADDRESS_BYTES]; /* of its mesh listener; unused in a mesh of one task */
    uint32_t replicas;                /* at least 1 */
};

struct mesh_config {
    uint64_t generation;
    uint64_t nonce;
    uint32_t rank;
    const struct mesh_member *members; /* borrowed until form_post returns */
    uint32_t member_count;
    /* How errors name the tasks, by rank; borrowed until form_post returns. NULL: by their ranks. A
     * mesh of some tasks of a job names them by their ranks in the job. */
    const uint32_t *numbers;
    uint8_t key[MESH_KEY_BYTES];
    /* This task's; NULL for a mesh of one task. It outlives the mesh. */
    struct mesh_listener *listener;
    /* On the monotonic clock: after it form_test gives DEADLINE_EXCEEDED, naming who is missing. */
    uint64_t form_deadline_us;
    /* A replica or task that does not come to a collective for so long is DEADLINE_EXCEEDED, naming
     * it; counted from the entry of the replica that waits for it. 0: wait for ever. */
    uint64_t collective_timeout_us;
    /* Called when a thread has been in a collective for so long without any progress: after one
     * second, then after each further five. It waits for the task of `rank` first of all; the own
     * rank: for the devices of other tasks, without knowing whose (mesh_device.h). Called by that
     * thread, which holds no lock of the mesh. NULL: no call. */
    void (*stalled)(void *user, uint32_t rank, uint64_t waited_us);
    void *stalled_user;
    /* Of the peer for devices (mesh_device.h): the device in whose memory each local replica's
     * buffers may be; NULL for a replica of the host. Borrowed as long as the mesh. NULL: all are
     * in the host's memory. */
    struct device *const *devices;
};

/* One tensor of a collective: read at `from`, the result goes to `data`; NULL: in place. The two do
 * not overlap otherwise. `bytes` = elements * mesh_dtype_bytes(dtype). */
struct mesh_buffer {
    void *data;
    size_t bytes;
    enum mesh_dtype dtype;
    const void *from;
    /* The device that has both in its memory; NULL: the host. Only the peer for devices takes
     * others, and one call's are all alike. */
    struct device *on;
};

/* What identifies a call beyond its arguments. A NULL note is an empty one. */
struct mesh_note {
    uint64_t key; /* of all that must be equal on all replicas and is not in the arguments */
    /* How this replica's call reads to people, at most MESH_NOTE_BYTES - 1: "replica 3 calls
     * cadre_all_reduce(CADRE_SUM) with f32 [2, 3]". A mismatch names two replicas by it. NULL: the
     * mesh describes the call by its shape. Borrowed for the call; the caller keeps the text from
     * one call to the next. */
    const char *text;
    uint64_t timeout_us; /* 0: the mesh's */
    /* Of all_gather: the device that has both `data` and `into` in its memory, as a buffer's
     * `on`. */
    struct device *on;
};

struct mesh {
    const struct mesh_ops *ops;
    struct mesh *next; /* of those that a task has attached: the task's */
};

struct mesh_ops {
    const char *name;
    /* Starts forming. On success the mesh is the caller's, to close() also when forming fails. */
    cadre_status (*form_post)(
        const struct mesh_config *config, struct mesh **ret_mesh, struct cadre_error *error);
    /* Does what can be done now without blocking. One thread at a time. After an error the mesh
     * never forms; collectives may start once this returned OK. */
    cadre_status (*form_test)(struct mesh *mesh, struct cadre_error *error);
    /* While form_test returns PENDING: becomes readable when it may get further, at the deadline
     * too; -1 when polling with a timeout is needed instead (a host mesh of one task, which is
     * never PENDING). The mesh's: stop watching it after the final result. */
    int (*form_fd)(struct mesh *mesh);
    /* While form_test returns PENDING: the first rank that has not come; UINT32_MAX: none is
     * missing. For the thread that polls. */
    uint32_t (*form_missing)(const struct mesh *mesh);
    /* Collectives: called by every local replica with its local index, from one thread at a time,
     * not always the same one (a replica has a thread that communicates while it computes); they
     * block until the result is in its buffers on this replica, or fail. After a call has returned,
     * no thread touches its buffers. After INVALID_ARGUMENT they are unchanged and the mesh is
     * usable; after any other failure the mesh is aborted and their content is undefined. `buffers`
     * is a list that is reduced as if packed into one; its element types may differ, and neither
     * addresses nor sizes need be aligned. An empty list is legal. */
    cadre_status (*all_reduce)(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
        const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
        struct cadre_error *error);
    /* Every replica gives one vector of replica_count equal parts and gets the reduced part of its
     * global index: `part` has the bytes of one part, its `from` (not NULL, and apart from `data`)
     * the whole vector. The same bits as all_reduce gives there. */
    cadre_status (*reduce_scatter)(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
        const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error);
    /* From global replica `root` to all. `from` counts on the root alone. */
    cadre_status (*broadcast)(struct mesh *mesh, uint32_t local_replica, uint32_t root,
        const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
        struct cadre_error *error);
    /* Every replica's `bytes` to all: at `into`, one after the other in global order, which must
     * not overlap `data`. `sizes`: those of all replicas, equal on all of them (a mismatch is
     * INVALID_ARGUMENT); NULL: all give `bytes`. */
    cadre_status (*all_gather)(struct mesh *mesh, uint32_t local_replica, const void *data,
        size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
        struct cadre_error *error);
    /* Returns once every replica of the mesh has called it. */
    cadre_status (*barrier)(struct mesh *mesh, uint32_t local_replica, const struct mesh_note *note,
        struct cadre_error *error);
    /* Any thread, any number of times; the first reason is kept and shown in the errors that
     * follow. Returns at once. The other tasks receive it: their mesh is aborted too. */
    void (*abort)(struct mesh *mesh, const char *reason);
    /* After all local replicas have left it; accepts NULL. */
    void (*close)(struct mesh *mesh);
};

/* The host peer: threads of this process, and TCP between tasks. */
extern const struct mesh_ops mesh_host_ops;

/* all_gather where the replicas do not know each other's sizes: two collectives. Into memory that
 * the caller frees, never NULL; ret_sizes[replica_count]. After an error *ret_data is NULL. */
cadre_status mesh_gather_any(struct mesh *mesh, uint32_t local_replica, uint32_t replica_count,
    const void *data, size_t bytes, void **ret_data, size_t *ret_sizes, struct cadre_error *error);

/* The key and the nonce of a mesh of some of the tasks of another one, which all of these make
 * alike and no process can without the other's `key`. `which`: numbers that no two such meshes of
 * `key` have in common, `count` of them. */
#define MESH_DERIVE_MAX 4
void mesh_key_derive(const uint8_t key[MESH_KEY_BYTES], const uint64_t *which, size_t count,
    uint8_t ret_key[MESH_KEY_BYTES], uint64_t *ret_nonce);

/* A task's listening socket for its peers: made once, used by every generation. */
struct mesh_listener;
/* `host` is a numeric address of this host ("127.0.0.1"); the port is the first free one of `ports`
 * (NULL: any). ret_address gets "host:port/token", which goes into the roster as it is.
 * RESOURCE_EXHAUSTED when all of `ports` are in use. */
cadre_status mesh_listener_open(const char *host, const struct port_range *ports,
    struct mesh_listener **ret_listener, char ret_address[MESH_ADDRESS_BYTES],
    struct cadre_error *error);
/* To be called after the meshes that use it are closed; accepts NULL. */
void mesh_listener_close(struct mesh_listener *listener);

/* To be called first in a program, which may leave by exit() while threads of the mesh are in a
 * handshake: what they use then stays allocated. */
void mesh_prepare_process(void);

#endif
