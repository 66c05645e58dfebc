/* SPDX-License-Identifier: Apache-2.0
 * Reduce-scatter: each replica reduces its own part of all vectors. Staged, a step moves as many
 * bytes of every part as make a chunk together. Called through the host mesh's table of functions
 * (host.c). */
#include <string.h>

#include "worker/library/mesh/collectives/hosts.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/collectives/collective.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

#define STRIDE_MIN ((size_t)64) /* of one replica's share of a chunk; whole elements */

static void collectives_reduce_scatter_pack(
    struct replica *replica, const struct call *call, uint8_t *payload)
{
    size_t bytes = call->buffers[0].bytes * replica->host->replica_count;
    if (bytes > 0) {
        memcpy(payload, call->buffers[0].from, bytes);
    }
}

/* Reduces replica->ins + at into the own part from `at` on. */
static void collectives_reduce_scatter_reduce(
    struct replica *replica, const struct call *call, uint8_t *into, size_t at, size_t bytes)
{
    mesh_reduce_many((enum mesh_op)call->shape.op, call->buffers[0].dtype, &(uint8_t *){into}, 1,
        replica->ins, replica->host->group.slot_count, at, bytes, replica->scratch);
}

static cadre_status collectives_reduce_scatter_small(
    struct replica *replica, const struct call *call)
{
    const struct mesh_buffer *part = &call->buffers[0];
    for (uint32_t slot = 0; slot < replica->host->group.slot_count; slot++) {
        replica->ins[slot] =
            mesh_posted(replica, slot)->payload.data + part->bytes * replica->global;
    }
    collectives_reduce_scatter_reduce(replica, call, part->data, 0, part->bytes);
    return CADRE_OK;
}

static cadre_status reduce_part(
    struct replica *replica, const struct call *call, size_t first, size_t count)
{
    (void)first;
    (void)count;
    const struct group *group = &replica->host->group;
    const struct mesh_buffer *part = &call->buffers[0];
    size_t whole = part->bytes * replica->host->replica_count;
    for (uint32_t slot = 0; slot < group->slot_count; slot++) {
        const uint8_t *from = mesh_reach_from(replica, slot, 0, whole);
        if (from == NULL) {
            return mesh_broken(replica);
        }
        replica->ins[slot] = from + part->bytes * replica->global;
    }
    for (size_t done = 0; done < part->bytes; done += REACH_BLOCK_BYTES) {
        size_t left = part->bytes - done;
        if (group_is_broken(group)) {
            return mesh_broken(replica);
        }
        collectives_reduce_scatter_reduce(
            replica, call, part->data, done, left < REACH_BLOCK_BYTES ? left : REACH_BLOCK_BYTES);
    }
    return CADRE_OK;
}

/* Stages [low, high) of the parts of all slots, one after the other. */
static void collectives_reduce_scatter_stage(const struct replica *replica, const struct call *call,
    size_t low, size_t high, unsigned parity)
{
    const struct host_mesh *host = replica->host;
    const struct mesh_buffer *part = &call->buffers[0];
    uint8_t *at = group_stage(&host->group, replica->slot, parity);
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        memcpy(
            at, (const uint8_t *)part->from + part->bytes * host->globals[slot] + low, high - low);
        at += high - low;
    }
}

static cadre_status collectives_reduce_scatter_staged(
    struct replica *replica, const struct call *call)
{
    const struct group *group = &replica->host->group;
    const struct mesh_buffer *part = &call->buffers[0];
    size_t stride = group->chunk_bytes / group->slot_count / STRIDE_MIN * STRIDE_MIN;
    unsigned parity = 0;
    for (size_t low = 0; low < part->bytes; low += stride, parity ^= 1) {
        size_t high = part->bytes - low < stride ? part->bytes : low + stride;
        collectives_reduce_scatter_stage(replica, call, low, high, parity);
        CADRE_TRY(mesh_step(replica, call));
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            replica->ins[slot] = group_stage(group, slot, parity) + (high - low) * replica->slot;
        }
        collectives_reduce_scatter_reduce(
            replica, call, (uint8_t *)part->data + low, 0, high - low);
    }
    return CADRE_OK;
}

static cadre_status collectives_reduce_scatter_large(
    struct replica *replica, const struct call *call)
{
    return replica->staged ? collectives_reduce_scatter_staged(replica, call)
                           : mesh_reach_run(replica, call, reduce_part, NULL);
}

static bool is_half(const struct call *call)
{
    enum mesh_dtype dtype = call->buffers[0].dtype;
    return dtype == MESH_F16 || dtype == MESH_BF16;
}

/* The bytes of a root for `bytes` bytes of a part. */
static size_t collectives_reduce_scatter_wide(const struct call *call, size_t bytes)
{
    return is_half(call) ? 2 * bytes : bytes;
}

/* All hosts sum the whole vector. */
static cadre_status collectives_reduce_scatter_exchange(
    struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result)
{
    struct cadre_error error;
    struct mesh_buffer whole = call->buffers[0];
    whole.bytes *= replica->host->replica_count;
    cadre_status status = mesh_layout_set(&replica->layout, &whole, 1, &error);
    return status == CADRE_OK ? mesh_all_reduce_exchange(replica, call, wire, result)
                              : mesh_fault_raise(replica->host, status, "%s", error.text);
}

/* Copies what is due to this replica, of rows that have `bytes` bytes each, to `at` in its part. */
static void take_row(
    struct replica *replica, const struct call *call, const uint8_t *rows, size_t at, size_t bytes)
{
    const struct mesh_buffer *part = &call->buffers[0];
    const uint8_t *row = rows + collectives_reduce_scatter_wide(call, bytes) * replica->global;
    uint8_t *into = (uint8_t *)part->data + at;
    if (is_half(call)) {
        mesh_narrow(part->dtype, into, (const float *)(const void *)row, bytes / 2);
    } else if (bytes > 0) {
        memcpy(into, row, bytes);
    }
}

static void collectives_reduce_scatter_take(
    struct replica *replica, const struct call *call, const uint8_t *result)
{
    take_row(replica, call, result, 0, call->buffers[0].bytes);
}

static size_t collectives_reduce_scatter_size(
    const struct replica *replica, const struct call *call)
{
    (void)replica;
    return call->buffers[0].bytes;
}

static size_t collectives_reduce_scatter_cut(
    const struct replica *replica, const struct call *call, size_t low, size_t high)
{
    (void)call;
    const struct host_mesh *host = replica->host;
    size_t stride = host->chunk_bytes / host->replica_count / STRIDE_MIN * STRIDE_MIN;
    return high - low < stride ? high : low + stride;
}

static void stage_rows(
    struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *stage)
{
    const struct mesh_buffer *part = &call->buffers[0];
    for (uint32_t row = 0; row < replica->host->replica_count; row++) {
        memcpy(stage, (const uint8_t *)part->from + part->bytes * row + low, high - low);
        stage += high - low;
    }
}

static cadre_status collectives_reduce_scatter_make(struct replica *replica,
    const struct call *call, size_t low, size_t high, uint8_t *chunk, uint32_t share,
    uint32_t shares)
{
    const struct group *group = &replica->host->group;
    const struct mesh_buffer *part = &call->buffers[0];
    uint32_t count = replica->host->replica_count;
    uint32_t from = (uint32_t)((uint64_t)count * share / shares);
    uint32_t to = (uint32_t)((uint64_t)count * (share + 1) / shares);
    for (uint32_t row = from; row < to; row++) {
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            if (replica->staged) {
                replica->ins[slot] = group_stage(group, slot, replica->parity) + (high - low) * row;
                continue;
            }
            const uint8_t *whole = mesh_reach_from(replica, slot, 0, part->bytes * count);
            if (whole == NULL) {
                return mesh_broken(replica);
            }
            replica->ins[slot] = whole + part->bytes * row + low;
        }
        mesh_reduce_part((enum mesh_op)call->shape.op, part->dtype,
            chunk + collectives_reduce_scatter_wide(call, high - low) * row, replica->ins,
            group->slot_count, 0, high - low, replica->scratch);
    }
    return CADRE_OK;
}

static cadre_status collectives_reduce_scatter_carry(
    struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *chunk)
{
    struct host_mesh *host = replica->host;
    const struct mesh_buffer *part = &call->buffers[0];
    size_t bytes = collectives_reduce_scatter_wide(call, high - low);
    for (uint32_t row = 0; row < host->replica_count; row++) {
        replica->rows[row] = chunk + bytes * row;
    }
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        replica->outs[slot] = replica->rows[host->globals[slot]];
    }
    return mesh_wire_reduce_scatter(host, (enum mesh_op)call->shape.op,
        mesh_reduce_part_dtype(part->dtype), (const uint8_t *const *)replica->rows, replica->outs,
        bytes, high == part->bytes);
}

static void collectives_reduce_scatter_deliver(
    struct replica *replica, const struct call *call, size_t low, size_t high, const uint8_t *chunk)
{
    take_row(replica, call, chunk, low, high - low);
}

static const struct hosts_kind hosts = {
    .exchange = collectives_reduce_scatter_exchange,
    .take = collectives_reduce_scatter_take,
    .size = collectives_reduce_scatter_size,
    .cut = collectives_reduce_scatter_cut,
    .stage = stage_rows,
    .make = collectives_reduce_scatter_make,
    .carry = collectives_reduce_scatter_carry,
    .deliver = collectives_reduce_scatter_deliver,
};

void mesh_take_reduce_scatter(struct replica *replica, struct call *call, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note)
{
    call->shape.op = (uint8_t)op;
    mesh_call_take(replica, call, part, 1, note);
    if (!mesh_op_valid((unsigned)op)) {
        mesh_call_blame(replica, call, "operation %u, which does not exist", (unsigned)op);
    } else if (!call->wrong && part->bytes > PTRDIFF_MAX / replica->host->replica_count) {
        mesh_call_blame(replica, call, "more bytes than fit into memory");
    } else if (!call->wrong && part->bytes > 0 && part->from == NULL) {
        mesh_call_blame(replica, call, "a vector at NULL");
    }
}

cadre_status host_reduce_scatter(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *part, const struct mesh_note *note, struct cadre_error *error)
{
    static const struct collective_kind kind = {.pack = collectives_reduce_scatter_pack,
        .small = collectives_reduce_scatter_small,
        .large = collectives_reduce_scatter_large,
        .hosts = &hosts};
    struct call call;
    struct replica *replica;
    CADRE_TRY(mesh_call_begin(mesh, local_replica, MESH_REDUCE_SCATTER, &call, &replica, error));
    uint32_t count = replica->host->replica_count;
    mesh_take_reduce_scatter(replica, &call, op, part, note);
    call.small = call.shape.bytes <= replica->host->small_bytes / count;
    call.given_times = count;
    return mesh_call_run(replica, &call, &kind, error);
}
