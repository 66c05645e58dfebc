/* SPDX-License-Identifier: Apache-2.0
 * Broadcast. Small: the root's bytes travel with the frame of its task. Large between tasks, chunk
 * by chunk: the root's task sends every task one slice, and every task hands its slice on to the
 * others. */
#include <string.h>

#include "common/base/clock.h"
#include "worker/mesh/collective.h"
#include "worker/mesh/exchange.h"
#include "worker/mesh/rendezvous.h"

static bool small(const struct host_mesh *host)
{
    size_t bytes = (size_t)host->shape.bytes;
    if (host->task_count == 1) {
        return host->local_count == 1 || bytes <= HOST_SMALL_BYTES;
    }
    return bytes <= host->inline_max;
}

static uint32_t root_rank(const struct host_mesh *host)
{
    uint32_t rank = 0;
    while (host->firsts[rank + 1] <= host->shape.root) {
        rank++;
    }
    return rank;
}

/* The root's local index; local_count when it is in another task. */
static uint32_t local_root(const struct host_mesh *host)
{
    bool here = root_rank(host) == host->rank;
    return here ? host->shape.root - host->first_replica : host->local_count;
}

static size_t pack(struct host_mesh *host, uint8_t *into)
{
    uint32_t root = local_root(host);
    if (!small(host) || root == host->local_count) {
        return 0;
    }
    mesh_layout_gather(&host->layout, host->slots[root].call->buffers, 0, host->layout.bytes, into);
    return host->layout.bytes;
}

static size_t expected(const struct host_mesh *host, uint32_t rank)
{
    return small(host) && rank == root_rank(host) ? (size_t)host->shape.bytes : 0;
}

/* From the root's buffers to those of local replica `local`. */
static void copy_from_root(struct host_mesh *host, uint32_t local)
{
    const struct mesh_buffer *from = host->slots[local_root(host)].call->buffers;
    const struct mesh_buffer *to = host->slots[local].call->buffers;
    for (size_t i = 0; i < host->layout.count; i++) {
        if (from[i].bytes > 0 && from[i].data != to[i].data) {
            memcpy(to[i].data, from[i].data, from[i].bytes);
        }
    }
}

static cadre_status finish(struct host_mesh *host)
{
    uint32_t root = local_root(host);
    for (uint32_t i = 0; i < host->local_count; i++) {
        if (root < host->local_count && i != root) {
            copy_from_root(host, i);
        } else if (i != root) {
            mesh_layout_scatter(&host->layout, host->slots[i].call->buffers, 0, host->layout.bytes,
                host->peers[root_rank(host)].inlined);
        }
    }
    return CADRE_OK;
}

static cadre_status prepare(struct host_mesh *host)
{
    return host->task_count > 1 ? host_claim_staging(host) : CADRE_OK;
}

/* Queues slice `slice` of the chunk [low, high) of `chunk`, out to or in from `rank`. */
static void queue_slice(struct host_mesh *host, uint8_t *chunk, size_t low, size_t high,
    uint32_t slice, uint32_t rank, bool out)
{
    size_t from;
    size_t to;
    mesh_layout_part(&host->layout, low, high, slice, host->task_count, &from, &to);
    if (out) {
        mesh_exchange_send(host, rank, chunk + (from - low), to - from);
    } else {
        mesh_exchange_receive(host, rank, chunk + (from - low), to - from);
    }
}

/* The leader: scatter from the root's task, then everybody's slice to everybody who lacks it. */
static cadre_status exchange_chunk(struct host_mesh *host)
{
    size_t low = host->chunk_end;
    size_t high = host_chunk_end(host, low);
    uint32_t me = host->rank;
    uint32_t root = root_rank(host);
    host->chunk_end = high;
    if (me == root) {
        memcpy(host->result, host->staging, high - low);
        for (uint32_t rank = 0; rank < host->task_count; rank++) {
            if (rank != me) {
                queue_slice(host, host->result, low, high, rank, rank, true);
            }
        }
    } else {
        queue_slice(host, host->result, low, high, me, root, false);
    }
    CADRE_TRY(mesh_exchange_run(host, false));
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (rank != me && rank != root) {
            queue_slice(host, host->result, low, high, me, rank, true);
        }
        if (rank != me && me != root) {
            queue_slice(host, host->result, low, high, rank, rank, false);
        }
    }
    return mesh_exchange_run(host, high == host->layout.bytes);
}

static cadre_status rest(struct host_mesh *host, uint32_t local)
{
    const struct mesh_buffer *buffers = host->slots[local].call->buffers;
    uint32_t root = local_root(host);
    if (host->task_count == 1) {
        if (!mesh_touch_begin(host)) {
            return CADRE_ABORTED;
        }
        if (local != root) {
            copy_from_root(host, local);
        }
        mesh_touch_end(host);
        return mesh_rendezvous_meet(host, local, CADRE_TIME_NEVER, NULL);
    }
    size_t high;
    for (size_t low = 0; low < host->layout.bytes; low = high) {
        high = host_chunk_end(host, low);
        if (local == root) {
            mesh_layout_gather(&host->layout, buffers, low, high, host->staging);
        }
        CADRE_TRY(mesh_rendezvous_meet(host, local, CADRE_TIME_NEVER, exchange_chunk));
        if (local != root) {
            mesh_layout_scatter(&host->layout, buffers, low, high, host->result);
        }
    }
    return CADRE_OK;
}

const struct collective_kind host_broadcast_kind = {
    .small = small,
    .pack = pack,
    .expected = expected,
    .finish = finish,
    .prepare = prepare,
    .rest = rest,
};
