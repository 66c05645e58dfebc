/* SPDX-License-Identifier: Apache-2.0
 * All-gather of pieces of any size. The sizes travel with the frames; then every task sends all its
 * pieces to every other one, straight into place. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/mesh/bytes.h"
#include "worker/mesh/collective.h"
#include "worker/mesh/exchange.h"
#include "worker/mesh/fault.h"
#include "worker/mesh/rendezvous.h"

static bool small(const struct host_mesh *host)
{
    (void)host;
    return false; /* every replica gets memory of its own */
}

static size_t pack(struct host_mesh *host, uint8_t *into)
{
    for (uint32_t i = 0; i < host->local_count; i++) {
        bytes_put_u64(into + 8 * i, host->slots[i].call->gather.bytes);
    }
    return (size_t)8 * host->local_count;
}

static size_t expected(const struct host_mesh *host, uint32_t rank)
{
    return (size_t)8 * host_replicas_of(host, rank);
}

static void read_sizes(struct host_mesh *host, uint32_t rank, const uint8_t *inlined)
{
    for (uint32_t i = 0; i < host_replicas_of(host, rank); i++) {
        host->gather_sizes[host->firsts[rank] + i] = (size_t)bytes_get_u64(inlined + 8 * i);
    }
}

/* The offset of `replica`'s piece; the total for replica_count. */
static size_t offset_of(const struct host_mesh *host, uint32_t replica)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < replica; i++) {
        offset += host->gather_sizes[i];
    }
    return offset;
}

/* False, with the verdict, when the pieces are larger together than an all_gather may be. All tasks
 * find the same. */
static bool sizes_legal(struct host_mesh *host)
{
    size_t total = 0;
    for (uint32_t i = 0; i < host->replica_count; i++) {
        size_t bytes = host->gather_sizes[i];
        if (bytes > MESH_GATHER_BYTES_MAX - total) {
            snprintf(host->verdict.text, sizeof host->verdict.text,
                "collective %" PRIu64 ": with the %zu bytes of replica %" PRIu32
                " the all_gather is larger than its limit of %zu bytes",
                host->sequence, bytes, i, MESH_GATHER_BYTES_MAX);
            host->verdict.mismatch = true;
            return false;
        }
        total += bytes;
    }
    return true;
}

static cadre_status exchange_pieces(struct host_mesh *host)
{
    size_t my_low = offset_of(host, host->first_replica);
    size_t my_high = offset_of(host, host->first_replica + host->local_count);
    size_t at = 0;
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        size_t bytes = 0;
        for (uint32_t i = host->firsts[rank]; i < host->firsts[rank + 1]; i++) {
            bytes += host->gather_sizes[i];
        }
        if (rank != host->rank) {
            mesh_exchange_send(host, rank, host->gathered + my_low, my_high - my_low);
            mesh_exchange_receive(host, rank, host->gathered + at, bytes);
        }
        at += bytes;
    }
    return mesh_exchange_run(host, true);
}

/* Copies the local replicas' pieces to `into`. Between mesh_touch_begin and touch_end. */
static void collect(struct host_mesh *host, uint8_t *into)
{
    for (uint32_t i = 0; i < host->local_count; i++) {
        const struct mesh_buffer *piece = &host->slots[i].call->gather;
        if (piece->bytes > 0) {
            memcpy(into, piece->data, piece->bytes);
        }
        into += piece->bytes;
    }
}

static cadre_status prepare(struct host_mesh *host)
{
    if (!mesh_touch_begin(host)) {
        return CADRE_ABORTED;
    }
    for (uint32_t i = 0; i < host->local_count; i++) {
        host->gather_sizes[host->first_replica + i] = host->slots[i].call->gather.bytes;
    }
    mesh_touch_end(host);
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (rank != host->rank) {
            read_sizes(host, rank, host->peers[rank].inlined);
        }
    }
    if (!sizes_legal(host) || host->task_count == 1) {
        return CADRE_OK;
    }
    size_t total = offset_of(host, host->replica_count);
    host->gathered = malloc(total + 1);
    if (host->gathered == NULL) {
        return mesh_fault_raise(host, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes of an all_gather of all replicas", total);
    }
    if (!mesh_touch_begin(host)) {
        return CADRE_ABORTED;
    }
    collect(host, host->gathered + offset_of(host, host->first_replica));
    mesh_touch_end(host);
    return exchange_pieces(host);
}

static cadre_status release_gathered(struct host_mesh *host)
{
    free(host->gathered);
    host->gathered = NULL;
    return CADRE_OK;
}

static cadre_status rest(struct host_mesh *host, uint32_t local)
{
    struct call *call = host->slots[local].call;
    size_t total = offset_of(host, host->replica_count);
    uint8_t *data = malloc(total + 1);
    if (data == NULL) {
        return mesh_fault_raise(host, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes of an all_gather on replica %" PRIu32, total,
            host->first_replica + local);
    }
    if (!mesh_touch_begin(host)) {
        free(data);
        return CADRE_ABORTED;
    }
    if (host->task_count > 1) {
        memcpy(data, host->gathered, total);
    } else {
        collect(host, data);
    }
    mesh_touch_end(host);
    memcpy(call->ret_bytes, host->gather_sizes, host->replica_count * sizeof(size_t));
    cadre_status status = mesh_rendezvous_meet(host, local, CADRE_TIME_NEVER, release_gathered);
    if (status != CADRE_OK) {
        free(data);
        return status;
    }
    *call->ret_data = data;
    return CADRE_OK;
}

const struct collective_kind host_all_gather_kind = {
    .small = small,
    .pack = pack,
    .expected = expected,
    .prepare = prepare,
    .rest = rest,
};
