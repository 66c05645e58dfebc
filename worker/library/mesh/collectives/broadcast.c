/* SPDX-License-Identifier: Apache-2.0
 * Broadcast. Within reach, each replica copies its share of the root's buffers to all others, so
 * that all cores work; staged, the root copies chunk after chunk to where the others read. Called
 * through the host mesh's table of functions (host.c). */
#include <string.h>

#include "worker/library/mesh/collectives/hosts.h"
#include "worker/library/mesh/collectives/collective.h"

#define TILE_BYTES ((size_t)16 << 10) /* read once from memory, then from the cache */

static bool is_root(const struct replica *replica, const struct call *call)
{
    return replica->global == call->shape.root;
}

static uint32_t root_slot(const struct replica *replica, const struct call *call)
{
    return replica->host->topology.locations[call->shape.root].slot;
}

static void broadcast_pack(struct replica *replica, const struct call *call, uint8_t *payload)
{
    if (is_root(replica, call)) {
        for (size_t i = 0; i < call->shape.count; i++) {
            const struct mesh_buffer *buffer = &call->buffers[i];
            if (buffer->bytes > 0) {
                memcpy(payload, mesh_source(buffer), buffer->bytes);
                payload += buffer->bytes;
            }
        }
    }
}

static cadre_status collectives_broadcast_small(struct replica *replica, const struct call *call)
{
    const uint8_t *payload = mesh_posted(replica, root_slot(replica, call))->payload.data;
    for (size_t i = 0; i < call->shape.count && (!is_root(replica, call) || call->moves); i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        if (buffer->bytes > 0) {
            memcpy(buffer->data, payload, buffer->bytes);
            payload += buffer->bytes;
        }
    }
    return CADRE_OK;
}

/* Copies `bytes` bytes at `at` of the root's buffer to all results. */
static cadre_status broadcast_copy(
    const struct replica *replica, const uint8_t *from, size_t at, size_t bytes)
{
    const struct group *group = &replica->host->group;
    for (size_t done = 0; done < bytes; done += TILE_BYTES) {
        size_t tile = bytes - done < TILE_BYTES ? bytes - done : TILE_BYTES;
        if (group_is_broken(group)) {
            return CADRE_ABORTED;
        }
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            if (replica->outs[slot] != from) {
                /* Spoilt addresses on the control page may overlap. */
                memmove(replica->outs[slot] + at + done, from + at + done, tile);
            }
        }
    }
    return CADRE_OK;
}

static cadre_status copy_share(
    struct replica *replica, const struct call *call, size_t first, size_t count)
{
    const struct group *group = &replica->host->group;
    const struct layout *layout = &replica->layout;
    struct layout_piece piece;
    size_t low = layout->entries[first].start;
    size_t high = layout->entries[first + count].start;
    mesh_layout_part(layout, low, high, replica->slot, group->slot_count, &low, &high);
    while (mesh_layout_next(layout, &low, high, &piece)) {
        size_t all = call->buffers[piece.buffer].bytes;
        const uint8_t *from = mesh_reach_from(replica, root_slot(replica, call), piece.buffer, all);
        bool reached = from != NULL;
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            replica->outs[slot] = mesh_reach_data(replica, slot, piece.buffer, all);
            reached = reached && replica->outs[slot] != NULL;
        }
        if (!reached || broadcast_copy(replica, from, piece.at, piece.bytes) != CADRE_OK) {
            return mesh_broken(replica);
        }
    }
    return CADRE_OK;
}

static cadre_status broadcast_staged(struct replica *replica, const struct call *call)
{
    const struct group *group = &replica->host->group;
    const struct layout *layout = &replica->layout;
    bool root = is_root(replica, call);
    unsigned parity = 0;
    size_t high;
    for (size_t low = 0; low < layout->bytes; low = high, parity ^= 1) {
        uint8_t *chunk = group_stage(group, root_slot(replica, call), parity);
        high = mesh_layout_chunk_end(layout, low, group->chunk_bytes);
        if (root) {
            mesh_layout_gather(layout, call->buffers, low, high, chunk);
        }
        CADRE_TRY(mesh_step(replica, call));
        if (!root || call->moves) {
            mesh_layout_scatter(layout, call->buffers, low, high, chunk);
        }
    }
    return CADRE_OK;
}

static cadre_status collectives_broadcast_large(struct replica *replica, const struct call *call)
{
    return replica->staged ? broadcast_staged(replica, call)
                           : mesh_reach_run(replica, call, copy_share, NULL);
}

static uint32_t root_host(const struct replica *replica, const struct call *call)
{
    return replica->host->topology.locations[call->shape.root].host;
}

static cadre_status broadcast_exchange(
    struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result)
{
    struct host_mesh *host = replica->host;
    if (root_host(replica, call) == host->topology.task_hosts[host->rank]) {
        memcpy(result, mesh_posted(replica, root_slot(replica, call))->payload.data,
            replica->layout.bytes);
    }
    return mesh_wire_broadcast_small(
        host, wire, root_host(replica, call), result, replica->layout.bytes);
}

static void broadcast_deliver(
    struct replica *replica, const struct call *call, size_t low, size_t high, const uint8_t *chunk)
{
    if (!is_root(replica, call) || call->moves) {
        mesh_layout_scatter(&replica->layout, call->buffers, low, high, chunk);
    }
}

static void broadcast_take(struct replica *replica, const struct call *call, const uint8_t *result)
{
    broadcast_deliver(replica, call, 0, replica->layout.bytes, result);
}

static cadre_status broadcast_whole(struct replica *replica, const struct call *call)
{
    struct wire_vector vector = {
        .layout = &replica->layout, .high = replica->layout.bytes, .buffers = call->buffers};
    CADRE_TRY(mesh_wire_broadcast(replica->host, root_host(replica, call), &vector));
    for (size_t i = 0; call->moves && i < call->shape.count; i++) {
        const struct mesh_buffer *buffer = &call->buffers[i];
        if (buffer->bytes > 0 && buffer->from != NULL) {
            memcpy(buffer->data, buffer->from, buffer->bytes);
        }
    }
    return CADRE_OK;
}

static size_t broadcast_size(const struct replica *replica, const struct call *call)
{
    (void)call;
    return replica->layout.bytes;
}

static size_t broadcast_cut(
    const struct replica *replica, const struct call *call, size_t low, size_t high)
{
    (void)call;
    (void)high;
    return mesh_layout_chunk_end(&replica->layout, low, 2 * replica->host->chunk_bytes);
}

/* The root copies its data; the other replicas have nothing to copy. */
static cadre_status broadcast_make(struct replica *replica, const struct call *call, size_t low,
    size_t high, uint8_t *chunk, uint32_t share, uint32_t shares)
{
    (void)share;
    (void)shares;
    if (is_root(replica, call) && !mesh_is_leader(replica)) {
        mesh_layout_gather(&replica->layout, call->buffers, low, high, chunk);
    }
    return CADRE_OK;
}

static cadre_status broadcast_carry(
    struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *chunk)
{
    struct wire_vector vector = {
        .layout = &replica->layout, .low = low, .high = high, .packed = chunk};
    if (is_root(replica, call)) {
        mesh_layout_gather(&replica->layout, call->buffers, low, high, chunk);
    }
    return mesh_wire_broadcast(replica->host, root_host(replica, call), &vector);
}

static const struct hosts_kind hosts = {
    .exchange = broadcast_exchange,
    .take = broadcast_take,
    .whole = broadcast_whole,
    .size = broadcast_size,
    .cut = broadcast_cut,
    .make = broadcast_make,
    .carry = broadcast_carry,
    .deliver = broadcast_deliver,
};

void mesh_take_broadcast(struct replica *replica, struct call *call, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note)
{
    call->shape.root = root;
    mesh_call_take(replica, call, buffers, count, note);
    if (root >= replica->host->replica_count) {
        mesh_call_blame(replica, call, "root %u in a mesh of %u replicas", (unsigned)root,
            (unsigned)replica->host->replica_count);
    }
}

cadre_status host_broadcast(struct mesh *mesh, uint32_t local_replica, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    static const struct collective_kind kind = {.pack = broadcast_pack,
        .small = collectives_broadcast_small,
        .large = collectives_broadcast_large,
        .hosts = &hosts};
    struct call call;
    struct replica *replica;
    CADRE_TRY(mesh_call_begin(mesh, local_replica, MESH_BROADCAST, &call, &replica, error));
    mesh_take_broadcast(replica, &call, root, buffers, count, note);
    call.small = call.shape.bytes <= replica->host->small_bytes;
    call.given_times = root == replica->global ? 1 : 0;
    call.written = true;
    for (size_t i = 0; !call.wrong && i < count && call.given_times > 0; i++) {
        call.moves = call.moves || buffers[i].from != NULL;
    }
    return mesh_call_run(replica, &call, &kind, error);
}
