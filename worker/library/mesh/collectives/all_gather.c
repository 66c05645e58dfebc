/* SPDX-License-Identifier: Apache-2.0
 * All-gather: each replica copies the data of all others into its own memory. Also the barrier,
 * which consists of its posts only. Called through the host mesh's table of functions (host.c) and
 * by the mesh for devices. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/mesh/collectives/hosts.h"
#include "worker/library/mesh/collectives/collective.h"

/* The bytes of the replica with global index `index`. */
static size_t size_of(const struct call *call, uint32_t index)
{
    return call->sizes != NULL ? call->sizes[index] : call->buffers[0].bytes;
}

static void all_gather_pack(struct replica *replica, const struct call *call, uint8_t *payload)
{
    (void)replica;
    if (call->buffers[0].bytes > 0) {
        memcpy(payload, call->buffers[0].from, call->buffers[0].bytes);
    }
}

static void all_gather_copy(uint8_t **into, const uint8_t *from, size_t bytes)
{
    if (bytes > 0) {
        memmove(*into, from, bytes); /* spoilt addresses on the control page may overlap */
        *into += bytes;
    }
}

static cadre_status all_gather_small(struct replica *replica, const struct call *call)
{
    const struct host_mesh *host = replica->host;
    uint8_t *into = call->buffers[0].data;
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        all_gather_copy(
            &into, mesh_posted(replica, slot)->payload.data, size_of(call, host->globals[slot]));
    }
    return CADRE_OK;
}

static cadre_status copy_all(
    struct replica *replica, const struct call *call, size_t first, size_t count)
{
    (void)first;
    (void)count;
    const struct host_mesh *host = replica->host;
    uint8_t *into = call->buffers[0].data;
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        size_t bytes = size_of(call, host->globals[slot]);
        const uint8_t *from = mesh_reach_from(replica, slot, 0, bytes);
        for (size_t done = 0; done < bytes && from != NULL; done += REACH_BLOCK_BYTES) {
            size_t left = bytes - done;
            if (group_is_broken(&host->group)) {
                return mesh_broken(replica);
            }
            all_gather_copy(
                &into, from + done, left < REACH_BLOCK_BYTES ? left : REACH_BLOCK_BYTES);
        }
        if (from == NULL) {
            return mesh_broken(replica);
        }
    }
    return CADRE_OK;
}

static cadre_status all_gather_staged(struct replica *replica, const struct call *call)
{
    const struct host_mesh *host = replica->host;
    const struct group *group = &host->group;
    const struct mesh_buffer *own = &call->buffers[0];
    size_t longest = 0;
    unsigned parity = 0;
    for (uint32_t slot = 0; slot < group->slot_count; slot++) {
        size_t bytes = size_of(call, host->globals[slot]);
        longest = bytes > longest ? bytes : longest;
    }
    for (size_t low = 0; low < longest; low += group->chunk_bytes, parity ^= 1) {
        if (low < own->bytes) {
            size_t left = own->bytes - low;
            memcpy(group_stage(group, replica->slot, parity), (const uint8_t *)own->from + low,
                left < group->chunk_bytes ? left : group->chunk_bytes);
        }
        CADRE_TRY(mesh_step(replica, call));
        uint8_t *into = own->data;
        for (uint32_t slot = 0; slot < group->slot_count; slot++) {
            size_t bytes = size_of(call, host->globals[slot]);
            if (low < bytes) {
                size_t left = bytes - low;
                memcpy(into + low, group_stage(group, slot, parity),
                    left < group->chunk_bytes ? left : group->chunk_bytes);
            }
            into += bytes;
        }
    }
    return CADRE_OK;
}

static cadre_status all_gather_large(struct replica *replica, const struct call *call)
{
    return replica->staged ? all_gather_staged(replica, call)
                           : mesh_reach_run(replica, call, copy_all, NULL);
}

/* The offset at which each replica's data begin in the result. */
static cadre_status find_offsets(struct replica *replica, const struct call *call)
{
    for (uint32_t i = 0; i < replica->host->replica_count; i++) {
        replica->offsets[i + 1] = replica->offsets[i] + size_of(call, i);
    }
    return CADRE_OK;
}

static cadre_status all_gather_exchange(
    struct replica *replica, const struct call *call, struct wire_call *wire, uint8_t *result)
{
    const struct host_mesh *host = replica->host;
    CADRE_TRY(find_offsets(replica, call));
    for (uint32_t slot = 0; slot < host->group.slot_count; slot++) {
        uint32_t global = host->globals[slot];
        memcpy(result + replica->offsets[global], mesh_posted(replica, slot)->payload.data,
            size_of(call, global));
    }
    return mesh_wire_all_gather_small(replica->host, wire, replica->offsets, result);
}

static void all_gather_deliver(
    struct replica *replica, const struct call *call, size_t low, size_t high, const uint8_t *chunk)
{
    (void)replica;
    if (high > low) {
        memcpy((uint8_t *)call->buffers[0].data + low, chunk, high - low);
    }
}

static void all_gather_take(struct replica *replica, const struct call *call, const uint8_t *result)
{
    (void)find_offsets(replica, call);
    all_gather_deliver(replica, call, 0, replica->offsets[replica->host->replica_count], result);
}

static size_t all_gather_size(const struct replica *replica, const struct call *call)
{
    (void)call;
    return replica->offsets[replica->host->replica_count];
}

static size_t all_gather_cut(
    const struct replica *replica, const struct call *call, size_t low, size_t high)
{
    (void)call;
    size_t chunk_bytes = 2 * replica->host->chunk_bytes;
    return high - low < chunk_bytes ? high : low + chunk_bytes;
}

/* Copies the part of this replica's data that is in [low, high) into the chunk. */
static void put_own(
    const struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *chunk)
{
    size_t begin = replica->offsets[replica->global];
    size_t end = replica->offsets[replica->global + 1];
    size_t from = begin > low ? begin : low;
    size_t to = end < high ? end : high;
    if (from < to) {
        memcpy(chunk + (from - low), (const uint8_t *)call->buffers[0].from + (from - begin),
            to - from);
    }
}

static cadre_status all_gather_make(struct replica *replica, const struct call *call, size_t low,
    size_t high, uint8_t *chunk, uint32_t share, uint32_t shares)
{
    (void)share;
    (void)shares;
    put_own(replica, call, low, high, chunk);
    return CADRE_OK;
}

static cadre_status all_gather_carry(
    struct replica *replica, const struct call *call, size_t low, size_t high, uint8_t *chunk)
{
    put_own(replica, call, low, high, chunk);
    return mesh_wire_all_gather(replica->host, replica->offsets, low, high, chunk);
}

static cadre_status all_gather_whole(struct replica *replica, const struct call *call)
{
    CADRE_TRY(find_offsets(replica, call));
    return all_gather_carry(
        replica, call, 0, replica->offsets[replica->host->replica_count], call->buffers[0].data);
}

static const struct hosts_kind hosts = {
    .exchange = all_gather_exchange,
    .take = all_gather_take,
    .prepare = find_offsets,
    .whole = all_gather_whole,
    .size = all_gather_size,
    .cut = all_gather_cut,
    .make = all_gather_make,
    .carry = all_gather_carry,
    .deliver = all_gather_deliver,
};

/* Checks all sizes, adds them up, and makes their digest. */
static void take_sizes(struct replica *replica, struct call *call, const size_t *sizes)
{
    size_t own = call->buffers[0].bytes;
    uint64_t total = 0;
    call->sizes = sizes;
    for (uint32_t i = 0; i < replica->host->replica_count && !call->wrong; i++) {
        size_t bytes = sizes != NULL ? sizes[i] : own;
        if (bytes > MESH_GATHER_BYTES_MAX - total) {
            mesh_call_blame(replica, call,
                "%zu bytes of replica %" PRIu32 " on top of %" PRIu64 "; the limit is %zu", bytes,
                i, total, MESH_GATHER_BYTES_MAX);
        }
        total += bytes;
        call->shape.layout = prng_mix(call->shape.layout ^ bytes);
    }
    if (!call->wrong && sizes != NULL && sizes[replica->global] != own) {
        mesh_call_blame(replica, call, "%zu bytes where its own list of sizes has %zu", own,
            sizes[replica->global]);
    }
    call->shape.bytes = sizes != NULL ? total : own;
}

void mesh_take_all_gather(struct replica *replica, struct call *call, const struct mesh_buffer *own,
    const size_t *sizes, const struct mesh_note *note)
{
    mesh_call_take(replica, call, NULL, 0, note);
    call->buffers = own;
    call->shape.count = 1;
    call->shape.dtype = MESH_U8;
    if (own->bytes > 0 && own->from == NULL) {
        mesh_call_blame(replica, call, "%zu bytes at NULL", own->bytes);
    }
    take_sizes(replica, call, sizes);
    uint64_t total = mesh_gathered_bytes(replica, call);
    if (!call->wrong && total > 0 && own->data == NULL) {
        mesh_call_blame(replica, call, "a result of %" PRIu64 " bytes at NULL", total);
    }
}

cadre_status host_all_gather(struct mesh *mesh, uint32_t local_replica, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error)
{
    static const struct collective_kind kind = {.pack = all_gather_pack,
        .small = all_gather_small,
        .large = all_gather_large,
        .hosts = &hosts};
    struct call call;
    struct replica *replica;
    CADRE_TRY(mesh_call_begin(mesh, local_replica, MESH_ALL_GATHER, &call, &replica, error));
    struct mesh_buffer own = {.data = into, .bytes = bytes, .dtype = MESH_U8, .from = data};
    mesh_take_all_gather(replica, &call, &own, sizes, note);
    call.small = mesh_gathered_bytes(replica, &call) <= replica->host->small_bytes;
    call.given_times = 1;
    return mesh_call_run(replica, &call, &kind, error);
}

static void pack_nothing(struct replica *replica, const struct call *call, uint8_t *payload)
{
    (void)replica;
    (void)call;
    (void)payload;
}

static cadre_status all_came(struct replica *replica, const struct call *call)
{
    (void)replica;
    (void)call;
    return CADRE_OK;
}

cadre_status mesh_call_agree(struct replica *replica, struct call *call, struct cadre_error *error)
{
    static const struct hosts_kind nothing = {.exchange = NULL};
    static const struct collective_kind kind = {
        .pack = pack_nothing, .small = all_came, .hosts = &nothing};
    call->small = true;
    return mesh_call_run(replica, call, &kind, error);
}

cadre_status host_barrier(struct mesh *mesh, uint32_t local_replica, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct call call;
    struct replica *replica;
    CADRE_TRY(mesh_call_begin(mesh, local_replica, MESH_BARRIER, &call, &replica, error));
    mesh_call_take(replica, &call, NULL, 0, note);
    return mesh_call_agree(replica, &call, error);
}
