/* SPDX-License-Identifier: Apache-2.0
 * All-reduce over several hosts: the slots of each host reduce to one root, the wire joins the
 * roots. Between hosts, sums of 16-bit types are float32, and rounded where they are delivered.
 * Called by the turns in hosts.c through mesh_all_reduce_hosts. */
#include <string.h>

#include "worker/library/mesh/collectives/hosts.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/collectives/collective.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

/* Where the slots' bytes are found. */
enum source { POSTED, STAGED, REACHED, OWN };

static cadre_status all_reduce_hosts_widen(struct replica *replica, const struct call *call)
{
    (void)call;
    struct cadre_error error;
    cadre_status status = mesh_layout_widen(&replica->wide, &replica->layout, &error);
    return status == CADRE_OK ? status : mesh_fault_raise(replica->host, status, "%s", error.text);
}

/* Points replica->ins at one piece of all slots; `begin` is the chunk's, `at` the piece's packed
 * offset. */
static bool all_reduce_hosts_find(struct replica *replica, const struct call *call,
    enum source source, const struct layout_piece *piece, size_t begin, size_t at)
{
    const struct group *group = &replica->host->group;
    for (uint32_t slot = 0; slot < group->slot_count; slot++) {
        const uint8_t *from = NULL;
        if (source == POSTED) {
            from = mesh_posted(replica, slot)->payload.data + at;
        } else if (source == STAGED) {
            from = group_stage(group, slot, replica->parity) + (at - begin);
        } else if (source == OWN) {
            const struct mesh_buffer *buffer = &call->buffers[piece->buffer];
            const void *base = buffer->from != NULL ? buffer->from : buffer->data;
            from = (const uint8_t *)base + piece->at;
        } else {
            size_t bytes = call->buffers[piece->buffer].bytes;
            from = mesh_reach_from(replica, slot, piece->buffer, bytes);
            from = from != NULL ? from + piece->at : NULL;
        }
        if (from == NULL) {
            return false;
        }
        replica->ins[slot] = from;
    }
    return true;
}

/* Reduces [low, high) of this host's slots into a chunk that begins at `begin`. */
static cadre_status all_reduce_hosts_reduce(struct replica *replica, const struct call *call,
    enum source source, size_t begin, size_t low, size_t high, uint8_t *chunk)
{
    const struct layout *layout = &replica->layout;
    size_t origin = mesh_layout_widened(&replica->wide, layout, begin);
    struct layout_piece piece;
    for (size_t at = low; mesh_layout_next(layout, &low, high, &piece); at = low) {
        if (!all_reduce_hosts_find(replica, call, source, &piece, begin, at)) {
            return mesh_broken(replica);
        }
        uint8_t *into = chunk + (mesh_layout_widened(&replica->wide, layout, at) - origin);
        mesh_reduce_part((enum mesh_op)call->shape.op, piece.dtype, into, replica->ins,
            replica->host->group.slot_count, 0, piece.bytes, replica->scratch);
    }
    return CADRE_OK;
}

cadre_status mesh_all_reduce_exchange(
    struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result)
{
    CADRE_TRY(all_reduce_hosts_widen(replica, call));
    enum source source = call->small ? POSTED : OWN;
    CADRE_TRY(all_reduce_hosts_reduce(replica, call, source, 0, 0, replica->layout.bytes, result));
    return mesh_wire_all_reduce_small(
        replica->host, wire, (enum mesh_op)call->shape.op, &replica->wide, result);
}

static void all_reduce_hosts_deliver(
    struct replica *replica, const struct call *call, size_t low, size_t high, const uint8_t *chunk)
{
    struct layout_piece piece;
    while (mesh_layout_next(&replica->layout, &low, high, &piece)) {
        uint8_t *into = (uint8_t *)call->buffers[piece.buffer].data + piece.at;
        if (piece.dtype == MESH_F16 || piece.dtype == MESH_BF16) {
            mesh_narrow(piece.dtype, into, (const float *)(const void *)chunk, piece.bytes / 2);
            chunk += piece.bytes * 2;
        } else {
            memcpy(into, chunk, piece.bytes);
            chunk += piece.bytes;
        }
    }
}

static void all_reduce_hosts_take(
    struct replica *replica, const struct call *call, const uint8_t *result)
{
    all_reduce_hosts_deliver(replica, call, 0, replica->layout.bytes, result);
}

static size_t all_reduce_hosts_size(const struct replica *replica, const struct call *call)
{
    (void)call;
    return replica->layout.bytes;
}

static size_t all_reduce_hosts_cut(
    const struct replica *replica, const struct call *call, size_t low, size_t high)
{
    (void)call;
    (void)high;
    return mesh_layout_chunk_end(&replica->layout, low, replica->host->chunk_bytes);
}

static void all_reduce_hosts_stage(
    struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *stage)
{
    mesh_layout_gather(&replica->layout, call->buffers, low, high, stage);
}

static cadre_status all_reduce_hosts_make(struct replica *replica, const struct call *call,
    size_t low, size_t high, uint8_t *chunk, uint32_t share, uint32_t shares)
{
    size_t from;
    size_t to;
    mesh_layout_part(&replica->layout, low, high, share, shares, &from, &to);
    return all_reduce_hosts_reduce(
        replica, call, replica->staged ? STAGED : REACHED, low, from, to, chunk);
}

static cadre_status all_reduce_hosts_carry(
    struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *chunk)
{
    struct wire_vector vector = {
        .layout = &replica->wide,
        .low = mesh_layout_widened(&replica->wide, &replica->layout, low),
        .high = mesh_layout_widened(&replica->wide, &replica->layout, high),
        .packed = chunk,
    };
    return mesh_wire_all_reduce(replica->host, (enum mesh_op)call->shape.op, &vector);
}

/* One slot a host: the wire takes the buffers themselves. */
static cadre_status all_reduce_hosts_whole(struct replica *replica, const struct call *call)
{
    struct wire_vector vector = {
        .layout = &replica->layout, .high = replica->layout.bytes, .buffers = call->buffers};
    return mesh_wire_all_reduce(replica->host, (enum mesh_op)call->shape.op, &vector);
}

const struct hosts_kind mesh_all_reduce_hosts = {
    .exchange = mesh_all_reduce_exchange,
    .lone_exchange = true,
    .take = all_reduce_hosts_take,
    .prepare = all_reduce_hosts_widen,
    .whole = all_reduce_hosts_whole,
    .size = all_reduce_hosts_size,
    .cut = all_reduce_hosts_cut,
    .stage = all_reduce_hosts_stage,
    .make = all_reduce_hosts_make,
    .carry = all_reduce_hosts_carry,
    .deliver = all_reduce_hosts_deliver,
};
