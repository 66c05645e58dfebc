/* SPDX-License-Identifier: Apache-2.0
 * The steps of every collective: describe the call, post it, wait for the posts of the host's other
 * slots, compare (protocol, rule 14). The rest belongs to the kind: a small call has all data at
 * hand, a large one is made in steps, and at each of them all slots wait for each other. */
#ifndef CADRE_WORKER_MESH_COLLECTIVES_COLLECTIVE_H
#define CADRE_WORKER_MESH_COLLECTIVES_COLLECTIVE_H

#include "worker/library/mesh/agreement.h"
#include "worker/library/mesh/wire/host.h"

/* One call of one replica, on its stack. */
struct call {
    struct call_shape shape;
    const struct mesh_buffer *buffers;
    const char *text; /* NULL, or how the call reads to people */
    uint64_t timeout_us;
    bool wrong; /* by itself: replica->text has the reason */
    bool small; /* the data are sent with the post */
    /* What the host's other replicas reach, when not small. */
    uint32_t given_times; /* of each buffer's bytes, where it is read; 0: no data are given */
    bool written;         /* results are written by others too */
    bool moves;           /* broadcast, on the root: its own buffers are written, too */
    const size_t *sizes;  /* all_gather: of all replicas; NULL: all have the bytes of this one */
};

struct hosts_kind;

/* What the kinds of collective do differently. A failure has raised the fault. */
struct collective_kind {
    /* Writes what this replica gives into its post. */
    void (*pack)(struct replica *replica, const struct call *call, uint8_t *payload);
    /* All posts are here, and equal. */
    cadre_status (*small)(struct replica *replica, const struct call *call);
    cadre_status (*large)(struct replica *replica, const struct call *call);
    const struct hosts_kind *hosts; /* how it continues between several hosts */
};

/* Finds the replica that calls; fails when the mesh is not formed, or ended. */
cadre_status mesh_call_begin(struct mesh *mesh, uint32_t local, enum mesh_kind kind,
    struct call *ret_call, struct replica **ret_replica, struct cadre_error *error);

/* Takes a list of buffers: checks it, and writes the call's shape. */
void mesh_call_take(struct replica *replica, struct call *call, const struct mesh_buffer *buffers,
    size_t count, const struct mesh_note *note);

/* The same for an all_reduce, whose operation is checked too. */
void mesh_take_all_reduce(struct replica *replica, struct call *call, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note);
/* The same for a reduce_scatter: `part` is the own part, its `from` the whole vector. */
void mesh_take_reduce_scatter(struct replica *replica, struct call *call, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note);
/* The same for a broadcast from global replica `root`. */
void mesh_take_broadcast(struct replica *replica, struct call *call, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note);
/* The same for an all_gather. `own`: `from` is what this replica gives, `data` where the result of
 * all goes; it must stay as long as the call. */
void mesh_take_all_gather(struct replica *replica, struct call *call, const struct mesh_buffer *own,
    const size_t *sizes, const struct mesh_note *note);

/* The bytes that an all_gather gathers, of all replicas together. */
static inline uint64_t mesh_gathered_bytes(const struct replica *replica, const struct call *call)
{
    uint64_t bytes = call->shape.bytes;
    return call->sizes != NULL ? bytes : bytes * replica->host->replica_count;
}

/* Records what is wrong with a call by itself; the other replicas receive the text too. */
void mesh_call_blame(struct replica *replica, struct call *call, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs the whole collective, and returns its error. */
cadre_status mesh_call_run(struct replica *replica, struct call *call,
    const struct collective_kind *kind, struct cadre_error *error);

/* Runs only its agreement: a barrier of those that make this call, whatever its kind. No data are
 * moved. */
cadre_status mesh_call_agree(struct replica *replica, struct call *call, struct cadre_error *error);

/* Marks this replica's progress, and waits until all slots of the host came as far. */
cadre_status mesh_step(struct replica *replica, const struct call *call);

/* The same where the leader may be waiting for other hosts meanwhile: it names the late one. */
cadre_status mesh_step_carried(struct replica *replica, const struct call *call);

/* The group is broken: ABORTED, once the reason is in this task's fault. */
cadre_status mesh_broken(struct replica *replica);

/* The post of one slot of the host. */
static inline const struct group_post *mesh_posted(const struct replica *replica, uint32_t slot)
{
    return &replica->host->group.slots[slot].posts[replica->sequence & 1];
}

/* mesh_ops.all_reduce of the host mesh. */
cadre_status host_all_reduce(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);
/* mesh_ops.reduce_scatter of the host mesh. */
cadre_status host_reduce_scatter(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error);
/* mesh_ops.broadcast of the host mesh. */
cadre_status host_broadcast(struct mesh *mesh, uint32_t local_replica, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error);
/* mesh_ops.all_gather of the host mesh. */
cadre_status host_all_gather(struct mesh *mesh, uint32_t local_replica, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error);
/* mesh_ops.barrier of the host mesh. */
cadre_status host_barrier(struct mesh *mesh, uint32_t local_replica, const struct mesh_note *note,
    struct cadre_error *error);

/* --- The second comparison, of calls that are not equal. Texts are not part of a post, because
 * posting must stay cheap. Every slot has seen all posts, so all slots come here, and write their
 * texts only now. --- */

/* The state of the host's calls when all of them are equal to this one. */
struct call_record mesh_agree_record(const struct replica *replica, const struct call *call);

/* The state of the host's calls when they differ. OK, or the mesh has a fault. */
cadre_status mesh_agree_fold(
    struct replica *replica, const struct call *call, struct agreement *ret_agreement);

/* With one host: leaves the sentence about the calls of this host's slots, the same in all of them,
 * in replica->text: INVALID_ARGUMENT. Anything else: the mesh has a fault. */
cadre_status mesh_agree_explain(struct replica *replica, const struct call *call);

/* --- Reaching the buffers of the host's other replicas. Within one task they are addresses. In
 * another task's memory they are reached when they are in its arena, which every task of the host
 * maps. Anything else is attached to (attach.h), or staged: copied into shared chunks by its owner,
 * piece by piece. --- */

/* Posts the addresses of the buffers from `first` on, as many as fit. Returns flags for the post:
 * GROUP_PRIVATE when any buffer of the whole call is in memory that the tasks do not share. */
uint8_t mesh_reach_post(
    struct replica *replica, const struct call *call, struct group_post *post, size_t first);

/* The `bytes` bytes of buffer `buffer` of the call that `slot` posted, where it is read. NULL: the
 * posted address is outside of the task's memory; the fault is raised. */
const uint8_t *mesh_reach_from(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes);
/* The same, where the result of the buffer goes. */
uint8_t *mesh_reach_data(struct replica *replica, uint32_t slot, size_t buffer, size_t bytes);

/* The addresses in its task that `slot`, with GROUP_PRIVATE, posted of buffers [first, first +
 * count); valid until the same call for the next ones. NULL: they were spoilt; the fault is
 * raised. */
const struct span *mesh_reach_addresses(
    struct replica *replica, uint32_t slot, size_t first, size_t count);

/* The work on buffers [first, first + count) of a call. */
typedef cadre_status reach_work(
    struct replica *replica, const struct call *call, size_t first, size_t count);
/* Calls `work` for windows of buffers that can all be reached, until all of a call's are done, each
 * between two steps; after the second one `finish`, which may be NULL and touches no other task's
 * buffers. */
cadre_status mesh_reach_run(
    struct replica *replica, const struct call *call, reach_work *work, reach_work *finish);

/* A long pass over memory is made in blocks of so many bytes, with a check of the group in between,
 * so that a replica that leaves does not have to wait for long. */
#define REACH_BLOCK_BYTES ((size_t)256 << 10)

/* Where one replica's data are read. */
static inline const uint8_t *mesh_source(const struct mesh_buffer *buffer)
{
    return buffer->from != NULL ? buffer->from : buffer->data;
}

#endif
