/* SPDX-License-Identifier: Apache-2.0
 * All-reduce within a host. Every sum is made along the canonical tree, in one of four ways:
 * - small: each replica reduces the posts of all slots into its own buffers.
 * - large, all buffers within reach: each replica reduces its share of the elements of all, and
 *   writes it to all: one pass over memory.
 * - large, other memory, where the tasks can attach to it: the same (attached.c).
 *   Each replica says how far it came, and all stage the rest.
 * - large, staged, chunk by chunk: each replica copies its chunk to where the others read it. Few
 *   slots: each reduces the whole chunk into its own buffers. More: each its share, into a shared
 *   result, while the next chunk is copied.
 *
 * Called through the host mesh's table of functions (host.c). Order of the sums: protocol, rule
 * 14. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/mesh/collectives/attached.h"
#include "worker/library/mesh/collectives/hosts.h"
#include "worker/library/mesh/collectives/collective.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"
#include "worker/library/mesh/wire/fault.h"

#define STAGED_WHOLE_MAX 3 /* slots: above, shares of a chunk are less work than whole chunks */
/* Up to so many slots attach, to so many bytes or more; under it chunks cost less (measured). */
#define ATTACHED_SLOTS_MAX  4
#define ATTACHED_BYTES_TWO  ((size_t)12 << 10)
#define ATTACHED_BYTES_MORE ((size_t)4 << 20)

static void collectives_all_reduce_pack(
    struct replica *replica, const struct call *call, uint8_t *payload)
{
    (void)replica;
    for (size_t i = 0; i < call->shape.count; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        if (buffer->bytes > 0) {
            memcpy(payload, mesh_source(buffer), buffer->bytes);
            payload += buffer->bytes;
        }
    }
}

/* Reduces replica->ins[slot] + at[slot's own] of all slots into each of `outs`. */
static void collectives_all_reduce_reduce(const struct replica *replica, const struct call *call,
    enum mesh_dtype dtype, uint8_t *const *outs, size_t out_count, size_t at, size_t bytes)
{
    mesh_reduce_many((enum mesh_op)call->shape.op, dtype, outs, out_count, replica->ins,
        replica->host->group.slot_count, at, bytes, replica->scratch);
}

static cadre_status collectives_all_reduce_small(struct replica *replica, const struct call *call)
{
    size_t packed = 0;
    for (size_t i = 0; i < call->shape.count; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        for (uint32_t slot = 0; slot < replica->host->group.slot_count; slot++) {
            replica->ins[slot] = mesh_posted(replica, slot)->payload.data + packed;
        }
        uint8_t *into = buffer->data;
        if (buffer->bytes > 0) {
            collectives_all_reduce_reduce(replica, call, buffer->dtype, &into, 1, 0, buffer->bytes);
        }
        packed += buffer->bytes;
    }
    return CADRE_OK;
}

/* The share of `slot` in a window of buffers, packed. */
static void share_of(const struct replica *replica, uint32_t slot, size_t first, size_t count,
    size_t *ret_low, size_t *ret_high)
{
    const struct layout *layout = &replica->layout;
    mesh_layout_part(layout, layout->entries[first].start, layout->entries[first + count].start,
        slot, replica->host->group.slot_count, ret_low, ret_high);
}

/* Reduces the own share of a window of buffers into all replicas' buffers. */
static cadre_status reduce_share(
    struct replica *replica, const struct call *call, size_t first, size_t count)
{
    const struct group *group = &replica->host->group;
    const struct layout *layout = &replica->layout;
    struct layout_piece piece;
    size_t low;
    size_t high;
    share_of(replica, replica->slot, first, count, &low, &high);
    while (mesh_layout_next(layout, &low, high, &piece)) {
        size_t all = call->buffers[piece.buffer].bytes;
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            replica->ins[slot] = mesh_reach_from(replica, slot, piece.buffer, all);
            replica->outs[slot] = mesh_reach_data(replica, slot, piece.buffer, all);
            if (replica->ins[slot] == NULL || replica->outs[slot] == NULL) {
                return mesh_broken(replica);
            }
        }
        for (size_t done = 0; done < piece.bytes; done += REACH_BLOCK_BYTES) {
            size_t left = piece.bytes - done;
            if (group_is_broken(group)) {
                return mesh_broken(replica);
            }
            collectives_all_reduce_reduce(replica, call, piece.dtype, replica->outs,
                group->slot_count, piece.at + done,
                left < REACH_BLOCK_BYTES ? left : REACH_BLOCK_BYTES);
        }
    }
    return CADRE_OK;
}

/* Reduces [low, high) of the staged chunk that begins at `begin` into the own buffers, or packed at
 * `result`, which holds the chunk. */
static void reduce_staged(struct replica *replica, const struct call *call, size_t begin,
    size_t low, size_t high, unsigned parity, uint8_t *result)
{
    const struct group *group = &replica->host->group;
    struct layout_piece piece;
    for (size_t at = low; mesh_layout_next(&replica->layout, &low, high, &piece); at = low) {
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            replica->ins[slot] = group_stage(group, slot, parity) + (at - begin);
        }
        uint8_t *into = result != NULL ? result + (at - begin)
                                       : (uint8_t *)call->buffers[piece.buffer].data + piece.at;
        collectives_all_reduce_reduce(replica, call, piece.dtype, &into, 1, 0, piece.bytes);
    }
}

/* Where a chunk that begins at `low` of a part that ends at `end` does. */
static size_t chunk_end(const struct replica *replica, size_t low, size_t end)
{
    size_t high = mesh_layout_chunk_end(&replica->layout, low, replica->host->group.chunk_bytes);
    return high < end ? high : end;
}

/* Copies one chunk to where the others read it. */
static void collectives_all_reduce_stage(
    struct replica *replica, const struct call *call, size_t low, size_t high, unsigned parity)
{
    mesh_layout_gather(&replica->layout, call->buffers, low, high,
        group_stage(&replica->host->group, replica->slot, parity));
}

static cadre_status whole_chunks(
    struct replica *replica, const struct call *call, size_t low, size_t end)
{
    size_t high;
    unsigned parity = 0;
    for (; low < end; low = high, parity ^= 1) {
        high = chunk_end(replica, low, end);
        collectives_all_reduce_stage(replica, call, low, high, parity);
        CADRE_TRY(mesh_step(replica, call));
        reduce_staged(replica, call, low, low, high, parity, NULL);
    }
    return CADRE_OK;
}

static cadre_status shared_chunks(
    struct replica *replica, const struct call *call, size_t low, size_t end)
{
    const struct group *group = &replica->host->group;
    const struct layout *layout = &replica->layout;
    size_t high;
    unsigned parity = 0;
    collectives_all_reduce_stage(replica, call, low, chunk_end(replica, low, end), 0);
    CADRE_TRY(mesh_step(replica, call));
    for (; low < end; low = high, parity ^= 1) {
        size_t from;
        size_t to;
        high = chunk_end(replica, low, end);
        mesh_layout_part(layout, low, high, replica->slot, group->slot_count, &from, &to);
        reduce_staged(replica, call, low, from, to, parity, group_result(group, parity));
        if (high < end) {
            collectives_all_reduce_stage(
                replica, call, high, chunk_end(replica, high, end), parity ^ 1);
        }
        CADRE_TRY(mesh_step(replica, call));
        mesh_layout_scatter(layout, call->buffers, low, high, group_result(group, parity));
    }
    return CADRE_OK;
}

/* Chunk by chunk; before it and between two of them is a step. */
static cadre_status reduce_in_chunks(
    struct replica *replica, const struct call *call, size_t low, size_t high)
{
    return replica->host->group.slot_count <= STAGED_WHOLE_MAX
               ? whole_chunks(replica, call, low, high)
               : shared_chunks(replica, call, low, high);
}

static cadre_status reduce_share_attached(
    struct replica *replica, const struct call *call, size_t first, size_t count)
{
    size_t low;
    size_t high;
    uint64_t reached;
    share_of(replica, replica->slot, first, count, &low, &high);
    if (!mesh_attached_reduce(replica, call, first, count, low, high, &reached)) {
        return mesh_broken(replica);
    }
    /* For all to see after the next step. */
    atomic_store_explicit(
        &replica->host->group.slots[replica->slot].attached, reached, memory_order_relaxed);
    return CADRE_OK;
}

static cadre_status unwritten_by(struct replica *replica, uint32_t slot, uint64_t reached)
{
    struct host_mesh *host = replica->host;
    uint64_t other = ATTACHED_UNWRITTEN - reached;
    uint32_t global = host->globals[other < host->group.slot_count ? other : slot];
    return mesh_fault_raise(host, CADRE_ABORTED,
        "replica %" PRIu32 " could not write the result of collective %" PRIu64
        " to the memory of the task of rank %" PRIu32 ", which may have ended",
        host->globals[slot], replica->sequence, host_number(host, mesh_host_rank_of(host, global)));
}

/* Stages what was not reduced of each slot's share; all slots find the same. */
static cadre_status stage_rest(
    struct replica *replica, const struct call *call, size_t first, size_t count)
{
    const struct group *group = &replica->host->group;
    for (uint32_t slot = 0; slot < group->slot_count; slot++) {
        size_t low;
        size_t high;
        share_of(replica, slot, first, count, &low, &high);
        uint64_t reached = atomic_load_explicit(&group->slots[slot].attached, memory_order_relaxed);
        /* On the page another process may have written anything. */
        if (reached < low || reached > high ||
            mesh_layout_cut(&replica->layout, (size_t)reached) != reached) {
            return unwritten_by(replica, slot, reached);
        }
        if (reached < high) {
            CADRE_TRY(reduce_in_chunks(replica, call, (size_t)reached, high));
            CADRE_TRY(mesh_step(replica, call));
        }
    }
    return CADRE_OK;
}

/* The sum of one vector is that vector. */
static cadre_status copy_out(const struct call *call)
{
    for (size_t i = 0; i < call->shape.count; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        if (buffer->bytes > 0 && mesh_source(buffer) != buffer->data) {
            memcpy(buffer->data, buffer->from, buffer->bytes);
        }
    }
    return CADRE_OK;
}

static bool attaches(const struct replica *replica, const struct call *call)
{
    uint32_t slots = replica->host->group.slot_count;
    size_t least = slots == 2 ? ATTACHED_BYTES_TWO : ATTACHED_BYTES_MORE;
    return replica->attached && slots <= ATTACHED_SLOTS_MAX && call->shape.bytes >= least;
}

static cadre_status collectives_all_reduce_large(struct replica *replica, const struct call *call)
{
    if (replica->host->group.slot_count == 1) {
        return copy_out(call);
    }
    if (!replica->staged) {
        return mesh_reach_run(replica, call, reduce_share, NULL);
    }
    return attaches(replica, call)
               ? mesh_reach_run(replica, call, reduce_share_attached, stage_rest)
               : reduce_in_chunks(replica, call, 0, replica->layout.bytes);
}

void mesh_take_all_reduce(struct replica *replica, struct call *call, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note)
{
    call->shape.op = (uint8_t)op;
    mesh_call_take(replica, call, buffers, count, note);
    if (!mesh_op_valid((unsigned)op)) {
        mesh_call_blame(replica, call, "operation %u, which does not exist", (unsigned)op);
    }
}

cadre_status host_all_reduce(struct mesh *mesh, uint32_t local_replica, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    static const struct collective_kind kind = {.pack = collectives_all_reduce_pack,
        .small = collectives_all_reduce_small,
        .large = collectives_all_reduce_large,
        .hosts = &mesh_all_reduce_hosts};
    struct call call;
    struct replica *replica;
    CADRE_TRY(mesh_call_begin(mesh, local_replica, MESH_ALL_REDUCE, &call, &replica, error));
    mesh_take_all_reduce(replica, &call, op, buffers, count, note);
    call.small = call.shape.bytes <= replica->host->small_bytes;
    call.given_times = 1;
    call.written = true;
    return mesh_call_run(replica, &call, &kind, error);
}
