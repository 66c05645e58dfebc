/* SPDX-License-Identifier: Apache-2.0
 * The entry of all collectives of the mesh for devices (its table is in mesh_device.c): the memory
 * that a call's buffers are in decides how it is made.
 *
 *    all in the host's memory       the host mesh, as it is
 *    on devices, connected          agreement on the host mesh, then the communicator
 *    on devices, or among others    staged, in one collective of the host mesh, which agrees on it;
 *    that are, not connected        large ones in pieces, after an agreement and a vote on whether
 *                                   any replica needs them */
#include <inttypes.h>
#include <stdio.h>

#include "common/pure/prng.h"
#include "worker/library/mesh/device/device_mesh.h"
#include "worker/library/trace/trace.h"

/* Of the keys of agreements, so that a call in a device's memory equals none in the host's. */
#define KEY_ON_DEVICES UINT64_C(0x6f6e20646576)
#define KEY_IN_PIECES  UINT64_C(0x696e20706965)
#define KEY_VOTE       UINT64_C(0x766f7465)

cadre_status device_call_host(const struct device_call *call, const struct mesh_buffer *buffers,
    size_t count, const size_t *sizes, const struct mesh_note *note, struct cadre_error *error)
{
    struct mesh *host = call->device_replica->mesh->host;
    uint32_t local = call->device_replica->local;
    switch (call->kind) {
    case MESH_ALL_REDUCE:
        return mesh_host_ops.all_reduce(host, local, call->op, buffers, count, note, error);
    case MESH_REDUCE_SCATTER:
        return mesh_host_ops.reduce_scatter(host, local, call->op, buffers, note, error);
    case MESH_BROADCAST:
        return mesh_host_ops.broadcast(host, local, call->root, buffers, count, note, error);
    default:
        return mesh_host_ops.all_gather(
            host, local, buffers->from, buffers->bytes, sizes, buffers->data, note, error);
    }
}

static uint64_t calls_gathered(const struct device_call *call)
{
    uint64_t total = 0;
    uint32_t replicas = call->device_replica->mesh->replica_count;
    if (call->sizes == NULL) {
        return call->buffers[0].bytes * (uint64_t)replicas;
    }
    for (uint32_t i = 0; i < replicas; i++) {
        total += call->sizes[i];
    }
    return total;
}

/* Finds the device of the buffers, and their bytes. */
static void calls_find_memory(struct device_call *call)
{
    call->on = call->count > 0 && call->buffers != NULL ? call->buffers[0].on : NULL;
    for (size_t i = 0; i < call->count && call->buffers != NULL; i++) {
        call->total += call->buffers[i].bytes;
        if (call->buffers[i].on != call->on) {
            call->wrong = "buffers in more than one memory, which one call cannot take";
        }
    }
    if (call->on != NULL && call->on != call->device_replica->device && call->wrong == NULL) {
        call->wrong = "buffers on a device that is not this replica's";
    }
    if (call->kind == MESH_REDUCE_SCATTER) {
        call->total *= call->device_replica->mesh->replica_count;
    } else if (call->kind == MESH_ALL_GATHER) {
        call->total = calls_gathered(call);
    }
}

static void device_calls_take(
    const struct device_call *call, struct replica *replica, struct call *ret_seen)
{
    switch (call->kind) {
    case MESH_ALL_REDUCE:
        mesh_take_all_reduce(replica, ret_seen, call->op, call->buffers, call->count, call->note);
        break;
    case MESH_REDUCE_SCATTER:
        mesh_take_reduce_scatter(replica, ret_seen, call->op, call->buffers, call->note);
        break;
    case MESH_BROADCAST:
        mesh_take_broadcast(replica, ret_seen, call->root, call->buffers, call->count, call->note);
        break;
    default:
        mesh_take_all_gather(replica, ret_seen, call->buffers, call->sizes, call->note);
        break;
    }
    if (call->wrong != NULL && !ret_seen->wrong) {
        mesh_call_blame(replica, ret_seen, "%s", call->wrong);
    }
}

/* Describes the call to people, with the memory it is in; unless the caller's note does that. */
static void describe_call(const struct device_call *call, struct call *seen)
{
    struct device_replica *device_replica = call->device_replica;
    if (seen->text == NULL) {
        char shape[112];
        mesh_call_shape_describe(&seen->shape, shape, sizeof shape);
        snprintf(device_replica->text, sizeof device_replica->text,
            "replica %" PRIu32 " called %s, on a device", device_replica->global, shape);
        seen->text = device_replica->text;
    }
}

/* After the calls were found equal: whether any of them is on a device. */
static cadre_status calls_vote(
    const struct device_call *call, bool *ret_any, struct cadre_error *error)
{
    uint8_t any = call->on != NULL;
    struct mesh_buffer buffer = {.data = &any, .bytes = 1, .dtype = MESH_U8};
    struct mesh_note note = {.timeout_us = call->timeout_us};
    if (call->note != NULL) {
        note = *call->note;
    }
    note.key = prng_mix(note.key ^ KEY_VOTE);
    CADRE_TRY(mesh_host_ops.all_reduce(call->device_replica->mesh->host,
        call->device_replica->local, MESH_MAX, &buffer, 1, &note, error));
    *ret_any = any != 0;
    return CADRE_OK;
}

static cadre_status run_on_devices(struct device_call *call, struct cadre_error *error)
{
    struct device_replica *device_replica = call->device_replica;
    struct call seen;
    struct replica *replica;
    bool any = true;
    CADRE_TRY(mesh_call_begin(
        device_replica->mesh->host, device_replica->local, call->kind, &seen, &replica, error));
    device_calls_take(call, replica, &seen);
    call->timeout_us = seen.timeout_us;
    if (!seen.wrong && !device_replica->connected && call->total <= STAGE_BYTES) {
        return device_staged_run(call, false, error);
    }
    if (!seen.wrong) {
        seen.shape.key =
            prng_mix(seen.shape.key ^ (device_replica->connected ? KEY_ON_DEVICES : KEY_IN_PIECES));
    }
    if (!seen.wrong && device_replica->connected) {
        describe_call(call, &seen);
    }
    CADRE_TRY(mesh_call_agree(replica, &seen, error));
    if (device_replica->connected) {
        return device_connected_run(call, error);
    }
    CADRE_TRY(calls_vote(call, &any, error));
    return any ? device_staged_run(call, true, error)
               : device_call_host(call, call->buffers, call->count, call->sizes, call->note, error);
}

static cadre_status device_calls_run(
    struct device_call *call, struct mesh *mesh, uint32_t local_replica, struct cadre_error *error)
{
    struct device_mesh *own = device_mesh_of(mesh);
    struct device_replica no_replica = {.mesh = own, .local = local_replica};
    bool exists = local_replica < own->local_count;
    call->device_replica = exists ? &own->device_replicas[local_replica] : &no_replica;
    calls_find_memory(call);
    bool whole = call->device_replica->connected || call->total <= STAGE_BYTES;
    if (!exists || (call->on == NULL && call->wrong == NULL && whole)) {
        return device_call_host(call, call->buffers, call->count, call->sizes, call->note, error);
    }
    static const enum trace_kind kinds[] = {[MESH_ALL_REDUCE] = TRACE_ALL_REDUCE,
        [MESH_BROADCAST] = TRACE_BROADCAST,
        [MESH_ALL_GATHER] = TRACE_ALL_GATHER,
        [MESH_REDUCE_SCATTER] = TRACE_REDUCE_SCATTER};
    /* As the host sees it: where devices are connected they go on behind it. */
    struct trace_mark mark = trace_begin();
    cadre_status status = run_on_devices(call, error);
    trace_put_collective(mark, kinds[call->kind], local_replica, 0, call->total, 0);
    return status;
}

cadre_status device_mesh_all_reduce(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct device_mesh *own_mesh = device_mesh_of(mesh);
    if (own_mesh->plain) {
        return mesh_host_ops.all_reduce(
            own_mesh->host, local_replica, op, buffers, count, note, error);
    }
    struct device_call call = {
        .kind = MESH_ALL_REDUCE, .op = op, .buffers = buffers, .count = count, .note = note};
    return device_calls_run(&call, mesh, local_replica, error);
}

cadre_status device_mesh_reduce_scatter(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error)
{
    struct device_mesh *own_mesh = device_mesh_of(mesh);
    if (own_mesh->plain) {
        return mesh_host_ops.reduce_scatter(own_mesh->host, local_replica, op, part, note, error);
    }
    struct device_call call = {
        .kind = MESH_REDUCE_SCATTER, .op = op, .buffers = part, .count = 1, .note = note};
    return device_calls_run(&call, mesh, local_replica, error);
}

cadre_status device_mesh_broadcast(struct mesh *mesh, uint32_t local_replica, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct device_mesh *own_mesh = device_mesh_of(mesh);
    if (own_mesh->plain) {
        return mesh_host_ops.broadcast(
            own_mesh->host, local_replica, root, buffers, count, note, error);
    }
    struct device_call call = {
        .kind = MESH_BROADCAST, .root = root, .buffers = buffers, .count = count, .note = note};
    return device_calls_run(&call, mesh, local_replica, error);
}

cadre_status device_mesh_all_gather(struct mesh *mesh, uint32_t local_replica, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct device_mesh *own_mesh = device_mesh_of(mesh);
    if (own_mesh->plain) {
        return mesh_host_ops.all_gather(
            own_mesh->host, local_replica, data, bytes, sizes, into, note, error);
    }
    struct mesh_buffer own = {.data = into,
        .bytes = bytes,
        .dtype = MESH_U8,
        .from = data,
        .on = note != NULL ? note->on : NULL};
    struct device_call call = {
        .kind = MESH_ALL_GATHER, .buffers = &own, .count = 1, .sizes = sizes, .note = note};
    return device_calls_run(&call, mesh, local_replica, error);
}

cadre_status device_mesh_barrier(struct mesh *mesh, uint32_t local_replica,
    const struct mesh_note *note, struct cadre_error *error)
{
    return mesh_host_ops.barrier(device_mesh_of(mesh)->host, local_replica, note, error);
}
