/* SPDX-License-Identifier: Apache-2.0
 * All-reduce. Every sum is made along the canonical tree (tree.h): the part below a task's roots by
 * that task, the part above them by whoever holds all roots.
 *  - small, one task: the leader reduces and writes to all replicas.
 *  - large, one task: each replica reduces its share of the elements and writes it to all: one pass
 * over memory.
 *  - small, several tasks: the roots travel with the frames, every leader finishes the tree: one
 * round.
 *  - large, several tasks, chunk by chunk: replicas reduce to the task's roots; each task receives
 * its slice of all roots, finishes the tree and sends the slice back to all: two rounds. */
#include <string.h>

#include "common/base/clock.h"
#include "worker/mesh/collective.h"
#include "worker/mesh/exchange.h"
#include "worker/mesh/fault.h"
#include "worker/mesh/rendezvous.h"

#define CHUNK_STRIDE (HOST_CHUNK_BYTES + 64)

/* One use of the tree on a range of packed offsets. */
struct reduction {
    struct host_mesh *host;
    struct replica_slot *slot; /* whose scratch memory is used */
    const struct tree *tree;
    bool packed;   /* slot->leaves hold packed bytes; else the local replicas' buffers are it */
    size_t origin; /* the packed offset of the first byte in packed leaves and in `into` */
    uint8_t *into; /* roots, `stride` bytes apart; NULL: the one root, into every local replica's
                      buffers */
    size_t stride;
};

static void deliver(const struct reduction *reduction, const uint8_t *const *roots,
    const struct layout_piece *piece, size_t packed_at, size_t done, size_t bytes)
{
    struct host_mesh *host = reduction->host;
    if (reduction->into != NULL) {
        for (uint32_t root = 0; root < reduction->tree->root_count; root++) {
            memcpy(reduction->into + root * reduction->stride + packed_at, roots[root], bytes);
        }
        return;
    }
    for (uint32_t i = 0; i < host->local_count; i++) {
        uint8_t *data = host->slots[i].call->buffers[piece->buffer].data;
        /* A lone leaf is its own root. */
        if (data + piece->at + done != roots[0]) {
            memcpy(data + piece->at + done, roots[0], bytes);
        }
    }
}

/* Between mesh_touch_begin and mesh_touch_end; stops early, with no result and ABORTED, when the
 * mesh has a fault. */
static cadre_status reduce_range(const struct reduction *reduction, size_t low, size_t high)
{
    struct host_mesh *host = reduction->host;
    struct replica_slot *slot = reduction->slot;
    enum mesh_op op = (enum mesh_op)host->shape.op;
    struct layout_piece piece;
    size_t offset = low;
    for (size_t at = low; mesh_layout_next(&host->layout, &offset, high, &piece); at = offset) {
        for (uint32_t i = 0; !reduction->packed && i < reduction->tree->leaf_count; i++) {
            slot->leaves[i] = host->slots[i].call->buffers[piece.buffer].data;
        }
        size_t leaf_at = reduction->packed ? at - reduction->origin : piece.at;
        for (size_t done = 0; done < piece.bytes; done += MESH_TILE_BYTES) {
            if (mesh_fault_raised(host)) {
                return CADRE_ABORTED;
            }
            size_t left = piece.bytes - done;
            size_t bytes = left < MESH_TILE_BYTES ? left : MESH_TILE_BYTES;
            const uint8_t *roots[MESH_TREE_DEPTH_MAX];
            mesh_tree_reduce_tile(reduction->tree, op, piece.dtype, slot->leaves, leaf_at + done,
                bytes, slot->scratch, roots);
            deliver(reduction, roots, &piece, at - reduction->origin + done, done, bytes);
        }
    }
    return CADRE_OK;
}

static bool small(const struct host_mesh *host)
{
    size_t bytes = (size_t)host->shape.bytes;
    if (host->task_count == 1) {
        return host->local_count == 1 || bytes <= HOST_SMALL_BYTES;
    }
    return bytes <= host->inline_max / host->blocks_max;
}

static size_t pack(struct host_mesh *host, uint8_t *into)
{
    if (!small(host)) {
        return 0;
    }
    size_t bytes = host->layout.bytes;
    struct reduction reduction = {.host = host,
        .slot = &host->slots[0],
        .tree = &host->local_tree,
        .into = into,
        .stride = bytes};
    (void)reduce_range(&reduction, 0, bytes); /* after a fault nothing is sent */
    return bytes * host->local_tree.root_count;
}

static uint32_t blocks_of(const struct host_mesh *host, uint32_t rank)
{
    return host->block_firsts[rank + 1] - host->block_firsts[rank];
}

static size_t expected(const struct host_mesh *host, uint32_t rank)
{
    return small(host) ? (size_t)host->shape.bytes * blocks_of(host, rank) : 0;
}

/* The leaves of the global tree: blocks of `rank` lie `stride` apart from `base` on. */
static void set_leaves(struct host_mesh *host, uint32_t rank, const uint8_t *base, size_t stride)
{
    const uint8_t **leaves = host->slots[0].leaves + host->block_firsts[rank];
    for (uint32_t block = 0; block < blocks_of(host, rank); block++) {
        leaves[block] = base + block * stride;
    }
}

static cadre_status finish(struct host_mesh *host)
{
    size_t bytes = host->layout.bytes;
    struct reduction reduction = {.host = host, .slot = &host->slots[0], .tree = &host->local_tree};
    if (host->task_count > 1) {
        reduction.tree = &host->global_tree;
        reduction.packed = true;
        for (uint32_t rank = 0; rank < host->task_count; rank++) {
            bool own = rank == host->rank;
            set_leaves(host, rank, own ? host->inline_out : host->peers[rank].inlined, bytes);
        }
    } else if (host->local_count == 1) {
        return CADRE_OK;
    }
    return reduce_range(&reduction, 0, bytes);
}

static cadre_status prepare(struct host_mesh *host)
{
    return host->task_count > 1 ? host_claim_staging(host) : CADRE_OK;
}

/* The leader: the two rounds of one chunk. */
static cadre_status exchange_chunk(struct host_mesh *host)
{
    size_t low = host->chunk_end;
    size_t high = host_chunk_end(host, low);
    size_t my_low;
    size_t my_high;
    host->chunk_end = high;
    mesh_layout_part(&host->layout, low, high, host->rank, host->task_count, &my_low, &my_high);
    size_t my_bytes = my_high - my_low;
    set_leaves(host, host->rank, host->staging + (my_low - low), CHUNK_STRIDE);
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (rank != host->rank) {
            size_t from;
            size_t to;
            mesh_layout_part(&host->layout, low, high, rank, host->task_count, &from, &to);
            for (uint32_t root = 0; root < host->local_tree.root_count; root++) {
                mesh_exchange_send(
                    host, rank, host->staging + root * CHUNK_STRIDE + (from - low), to - from);
            }
            uint8_t *into = host->arriving + host->block_firsts[rank] * host->slice_max;
            mesh_exchange_receive(host, rank, into, my_bytes * blocks_of(host, rank));
            set_leaves(host, rank, into, my_bytes);
        }
    }
    CADRE_TRY(mesh_exchange_run(host, false));
    struct reduction reduction = {.host = host,
        .slot = &host->slots[0],
        .tree = &host->global_tree,
        .packed = true,
        .origin = my_low,
        .into = host->result + (my_low - low)};
    CADRE_TRY(reduce_range(&reduction, my_low, my_high));
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (rank != host->rank) {
            size_t from;
            size_t to;
            mesh_layout_part(&host->layout, low, high, rank, host->task_count, &from, &to);
            mesh_exchange_send(host, rank, host->result + (my_low - low), my_bytes);
            mesh_exchange_receive(host, rank, host->result + (from - low), to - from);
        }
    }
    return mesh_exchange_run(host, high == host->layout.bytes);
}

static cadre_status rest_over_tasks(struct host_mesh *host, uint32_t local)
{
    const struct mesh_buffer *buffers = host->slots[local].call->buffers;
    struct reduction reduction = {
        .host = host,
        .slot = &host->slots[local],
        .tree = &host->local_tree,
        .into = host->staging,
        .stride = CHUNK_STRIDE,
    };
    size_t high;
    for (size_t low = 0; low < host->layout.bytes; low = high) {
        size_t from;
        size_t to;
        high = host_chunk_end(host, low);
        mesh_layout_part(&host->layout, low, high, local, host->local_count, &from, &to);
        reduction.origin = low;
        if (!mesh_touch_begin(host)) {
            return CADRE_ABORTED;
        }
        cadre_status status = reduce_range(&reduction, from, to);
        mesh_touch_end(host);
        CADRE_TRY(status);
        CADRE_TRY(mesh_rendezvous_meet(host, local, CADRE_TIME_NEVER, exchange_chunk));
        mesh_layout_scatter(&host->layout, buffers, low, high, host->result);
    }
    return CADRE_OK;
}

static cadre_status rest(struct host_mesh *host, uint32_t local)
{
    if (host->task_count > 1) {
        return rest_over_tasks(host, local);
    }
    size_t from;
    size_t to;
    mesh_layout_part(&host->layout, 0, host->layout.bytes, local, host->local_count, &from, &to);
    if (!mesh_touch_begin(host)) {
        return CADRE_ABORTED;
    }
    cadre_status status = reduce_range(
        &(struct reduction){.host = host, .slot = &host->slots[local], .tree = &host->local_tree},
        from, to);
    mesh_touch_end(host);
    CADRE_TRY(status);
    return mesh_rendezvous_meet(host, local, CADRE_TIME_NEVER, NULL);
}

const struct collective_kind host_all_reduce_kind = {
    .small = small,
    .pack = pack,
    .expected = expected,
    .finish = finish,
    .prepare = prepare,
    .rest = rest,
};
