/* SPDX-License-Identifier: Apache-2.0
 * Collectives through the communicator, once all replicas agreed on them (calls.c calls it). The
 * calls depend on what was agreed on, never on what only this replica has: the calls on a
 * communicator must be the same on all its ranks. */
#include <sched.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "worker/library/mesh/device/device_mesh.h"

#define LAUNCH_SPIN_US UINT64_C(20)

#define PART_ALIGN 256u /* of what lies in a pack side by side */

static const enum device_reduction reductions[] = {[MESH_SUM] = DEVICE_REDUCE_SUM,
    [MESH_PROD] = DEVICE_REDUCE_PROD,
    [MESH_MIN] = DEVICE_REDUCE_MIN,
    [MESH_MAX] = DEVICE_REDUCE_MAX};

static cadre_status connected_enqueue(const struct device_call *call, struct device_comm *comm,
    enum mesh_kind kind, uint32_t root, const struct device_vector *vectors, size_t count,
    struct cadre_error *error)
{
    const struct device_comm_ops *ops = call->on->ops->comm;
    void *stream = call->on->comm;
    switch (kind) {
    case MESH_ALL_REDUCE:
        return ops->all_reduce(comm, reductions[call->op], vectors, count, stream, error);
    case MESH_REDUCE_SCATTER:
        return ops->reduce_scatter(comm, reductions[call->op], vectors, stream, error);
    case MESH_BROADCAST:
        return ops->broadcast(comm, root, vectors, count, stream, error);
    default:
        return ops->all_gather(comm, vectors->from, vectors->count, vectors->to, stream, error);
    }
}

/* Waits until the library has launched it: not until it is done. */
static cadre_status await_enqueued(const struct device_call *call, struct cadre_error *error)
{
    struct device_replica *device_replica = call->device_replica;
    uint64_t begun_us = clock_monotonic_us();
    cadre_status status;
    while ((status = comms_test(device_replica->mesh->comms, device_replica->local, error)) ==
           CADRE_PENDING) {
        CADRE_TRY(device_mesh_stop(device_replica, error));
        uint64_t waited_us = clock_monotonic_us() - begun_us;
        if (call->timeout_us > 0 && waited_us > call->timeout_us) {
            return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                "the communicator did not take it within %llu ms",
                (unsigned long long)(call->timeout_us / CADRE_US_PER_MS));
        }
        (void)sched_yield();
    }
    return status;
}

/* Waits until the other replicas of this task have launched the same: a kernel of one waits for
 * those of the others, and the next call of this thread may wait for that kernel, in a driver that
 * blocks their launch meanwhile (to load a kernel that is launched for the first time, to get
 * memory). They will launch it, because all have just agreed on the call. */
static cadre_status await_others(const struct device_call *call, struct cadre_error *error)
{
    struct device_replica *device_replica = call->device_replica;
    struct device_mesh *mesh = device_replica->mesh;
    struct host_mesh *host = device_mesh_host(mesh);
    uint64_t own = atomic_fetch_add(&device_replica->launched, 1) + 1;
    uint64_t begun_us = clock_monotonic_us();
    for (uint32_t i = 0; i < mesh->local_count; i++) {
        while (atomic_load(&mesh->device_replicas[i].launched) < own) {
            if (mesh_fault_raised(host)) {
                return mesh_fault_error(host, true, error);
            }
            uint64_t waited_us = clock_monotonic_us() - begun_us;
            if (call->timeout_us > 0 && waited_us > call->timeout_us) {
                return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
                    "replica %u did not launch it within %llu ms", mesh->device_replicas[i].global,
                    (unsigned long long)(call->timeout_us / CADRE_US_PER_MS));
            }
            if (waited_us > LAUNCH_SPIN_US) {
                (void)sched_yield();
            }
        }
    }
    return CADRE_OK;
}

cadre_status device_comm_call(const struct device_call *call, enum mesh_kind kind, uint32_t root,
    const struct device_vector *vectors, size_t count, struct cadre_error *error)
{
    struct device_replica *device_replica = call->device_replica;
    struct cadre_error reason = {.text = "its communicator was ended"};
    cadre_status status = CADRE_ABORTED;
    bool others = device_replica->mesh->local_count > 1;
    if (others) {
        device_launch_begin();
    }
    struct device_comm *comm = comms_enter(device_replica->mesh->comms, device_replica->local);
    if (comm != NULL) {
        device_track_enter(device_replica);
        status = connected_enqueue(call, comm, kind, root, vectors, count, &reason);
        comms_leave(device_replica->mesh->comms, device_replica->local);
        if (status == CADRE_PENDING) {
            status = await_enqueued(call, &reason);
        }
        device_track_leave(device_replica);
    }
    if (others) {
        status = status == CADRE_OK ? await_others(call, &reason) : status;
        device_launch_end();
    }
    return status == CADRE_OK
               ? status
               : device_mesh_fail(device_replica, status, "could not call NCCL", &reason, error);
}

/* Other failures in between are the device's. */
static cadre_status connected_checked(struct device_replica *device_replica, cadre_status status,
    struct cadre_error *reason, struct cadre_error *error)
{
    return status == CADRE_OK ? status
                              : device_mesh_fail(device_replica, status, "could not use its device",
                                    reason, error);
}

/* The library cannot read at an address that is not a multiple of the element's size. */
static bool connected_aligned(const void *address, enum mesh_dtype dtype)
{
    return (uintptr_t)address % mesh_dtype_bytes(dtype) == 0;
}

/* Uses memory of the mesh where an address is not aligned, which the other replicas do not know. */
static cadre_status scatter_aside(struct device_call *call, size_t whole, struct cadre_error *error)
{
    const struct mesh_buffer *part = call->buffers;
    const struct device_ops *ops = call->on->ops;
    struct cadre_error reason;
    void *memory = NULL;
    cadre_status status =
        ops->memory_get(call->on->index, whole + part->bytes, call->on->comm, &memory, &reason);
    if (status == CADRE_OK) {
        status = ops->copy(memory, part->from, whole, call->on->comm, &reason);
    }
    CADRE_TRY(connected_checked(call->device_replica, status, &reason, error));
    void *result = (uint8_t *)memory + whole;
    struct device_vector vector = {.from = memory,
        .to = result,
        .count = part->bytes / mesh_dtype_bytes(part->dtype),
        .dtype = device_mesh_dtype(part->dtype)};
    status = device_comm_call(call, MESH_REDUCE_SCATTER, 0, &vector, 1, error);
    if (status == CADRE_OK) {
        status = connected_checked(call->device_replica,
            ops->copy(part->data, result, part->bytes, call->on->comm, &reason), &reason, error);
    }
    ops->memory_give(call->on->index, memory, call->on->comm);
    return status;
}

static cadre_status reduce_scatter(struct device_call *call, struct cadre_error *error)
{
    const struct mesh_buffer *part = call->buffers;
    if (part->bytes == 0) {
        return CADRE_OK;
    }
    if (!connected_aligned(part->from, part->dtype) ||
        !connected_aligned(part->data, part->dtype)) {
        return scatter_aside(call, part->bytes * call->device_replica->mesh->replica_count, error);
    }
    struct device_vector vector = {.from = part->from,
        .to = part->data,
        .count = part->bytes / mesh_dtype_bytes(part->dtype),
        .dtype = device_mesh_dtype(part->dtype)};
    return device_comm_call(call, MESH_REDUCE_SCATTER, 0, &vector, 1, error);
}

/* Each to all, one after the other: for sizes too far apart to be padded. */
static cadre_status gather_by_broadcasts(struct device_call *call, struct cadre_error *error)
{
    const struct mesh_buffer *own = call->buffers;
    uint8_t *into = own->data;
    for (uint32_t i = 0; i < call->device_replica->mesh->replica_count; i++) {
        struct device_vector vector = {
            .from = i == call->device_replica->global ? own->from : into,
            .to = into,
            .count = call->sizes[i],
            .dtype = CADRE_U8,
        };
        if (vector.count > 0) {
            CADRE_TRY(device_comm_call(call, MESH_BROADCAST, i, &vector, 1, error));
        }
        into += call->sizes[i];
    }
    return CADRE_OK;
}

/* Gathers rows of one length in the pack; the last one is the own. */
static cadre_status gather_padded(struct device_call *call, size_t row, struct cadre_error *error)
{
    struct device_replica *device_replica = call->device_replica;
    const struct mesh_buffer *own = call->buffers;
    const struct device_ops *ops = call->on->ops;
    uint32_t replicas = device_replica->mesh->replica_count;
    struct cadre_error reason;
    struct device_piece *pieces =
        scratch_reserve(&device_replica->pieces, replicas, sizeof *pieces);
    cadre_status status =
        pieces != NULL
            ? device_pack_room(device_replica, row * (replicas + 1), &reason)
            : cadre_error_set(&reason, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of pieces");
    void *last = (uint8_t *)device_replica->pack + row * replicas;
    if (status == CADRE_OK && own->bytes > 0) {
        status = ops->copy(last, own->from, own->bytes, call->on->comm, &reason);
    }
    CADRE_TRY(connected_checked(device_replica, status, &reason, error));
    struct device_vector vector = {
        .from = last, .to = device_replica->pack, .count = row, .dtype = CADRE_U8};
    CADRE_TRY(device_comm_call(call, MESH_ALL_GATHER, 0, &vector, 1, error));
    size_t count = 0;
    uint8_t *into = own->data;
    for (uint32_t i = 0; i < replicas; i++) {
        if (call->sizes[i] > 0) {
            pieces[count++] =
                (struct device_piece){.data = into, .offset = row * i, .bytes = call->sizes[i]};
        }
        into += call->sizes[i];
    }
    return connected_checked(device_replica,
        ops->unpack(pieces, count, device_replica->pack, call->on->comm, &reason), &reason, error);
}

static cadre_status all_gather(struct device_call *call, struct cadre_error *error)
{
    const struct mesh_buffer *own = call->buffers;
    uint32_t replicas = call->device_replica->mesh->replica_count;
    size_t longest = own->bytes;
    bool even = true;
    for (uint32_t i = 0; call->sizes != NULL && i < replicas; i++) {
        longest = call->sizes[i] > longest ? call->sizes[i] : longest;
        even = even && call->sizes[i] == call->sizes[0];
    }
    if (longest == 0) {
        return CADRE_OK;
    }
    if (even) {
        struct device_vector vector = {
            .from = own->from, .to = own->data, .count = own->bytes, .dtype = CADRE_U8};
        return device_comm_call(call, MESH_ALL_GATHER, 0, &vector, 1, error);
    }
    size_t row = (longest + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    return row <= PACK_BYTES_MAX / (replicas + 1) ? gather_padded(call, row, error)
                                                  : gather_by_broadcasts(call, error);
}

cadre_status device_connected_run(struct device_call *call, struct cadre_error *error)
{
    bool reduces = call->kind == MESH_ALL_REDUCE || call->kind == MESH_REDUCE_SCATTER;
    for (size_t i = 0; reduces && i < call->count; i++) {
        if (!call->on->ops->comm->takes(device_mesh_dtype(call->buffers[i].dtype))) {
            return device_staged_run(call, call->total > STAGE_BYTES, error);
        }
    }
    switch (call->kind) {
    case MESH_REDUCE_SCATTER:
        return reduce_scatter(call, error);
    case MESH_ALL_GATHER:
        return all_gather(call, error);
    default:
        return device_pack_run(call, error);
    }
}
