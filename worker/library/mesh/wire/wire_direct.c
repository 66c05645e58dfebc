/* SPDX-License-Identifier: Apache-2.0
 * The loop of the direct exchange, which wire_large.c runs for each kind of large collective. */
#include "worker/library/mesh/wire/wire_direct.h"

#include <stdlib.h>

#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"

#define SHARE_BYTES     ((size_t)128 << 10)
#define SHARE_BYTES_MIN ((size_t)16 << 10)
#define ARRIVING_BYTES                                                                             \
    ((size_t)4 << 20) /* of all contributions together, while that is possible                     \
                       */
#define ALIGNMENT 64

size_t mesh_direct_share_max(const struct host_mesh *host)
{
    size_t others = host->topology.host_count - 1;
    size_t rows = 0; /* of a reduce_scatter: a cache line of each slot of the largest host */
    for (uint32_t i = 0; i < host->topology.host_count; i++) {
        size_t least = (size_t)host->topology.hosts[i].slot_count * ALIGNMENT;
        rows = least > rows ? least : rows;
    }
    size_t share = ARRIVING_BYTES / DIRECT_DEPTH / others / SHARE_BYTES_MIN * SHARE_BYTES_MIN;
    share = share < SHARE_BYTES ? share : SHARE_BYTES;
    share = share > SHARE_BYTES_MIN ? share : SHARE_BYTES_MIN;
    return share > rows ? share : rows;
}

/* Cuts at elements make a share longer by less than an element at each end. */
static size_t stride_of(const struct host_mesh *host)
{
    return mesh_direct_share_max(host) + ALIGNMENT;
}

uint8_t *mesh_direct_arriving(const struct direct *direct, uint32_t from, uint64_t chunk)
{
    const struct wire *wire = direct->host->wire;
    size_t index = (from < wire->own ? from : from - 1) * DIRECT_DEPTH + chunk % DIRECT_DEPTH;
    return wire->arriving + index * stride_of(direct->host);
}

static uint64_t chunks_ahead(const struct direct *direct)
{
    return direct->chunk_count < DIRECT_DEPTH ? direct->chunk_count : DIRECT_DEPTH;
}

/* Which item is under way on a lane. */
static enum direct_item item_of(
    const struct direct *direct, const struct direct_lane *lane, uint64_t *ret_chunk)
{
    uint64_t ahead = chunks_ahead(direct);
    if (!lane->results || !lane->contributes) {
        *ret_chunk = lane->item;
        return lane->results ? DIRECT_RESULT : DIRECT_CONTRIBUTION;
    }
    if (lane->item < ahead) {
        *ret_chunk = lane->item;
        return DIRECT_CONTRIBUTION;
    }
    uint64_t alternating = lane->item - ahead;
    uint64_t pairs = direct->chunk_count - ahead;
    if (alternating >= 2 * pairs) {
        *ret_chunk = alternating - pairs;
        return DIRECT_RESULT;
    }
    *ret_chunk = alternating % 2 == 0 ? alternating / 2 : ahead + alternating / 2;
    return alternating % 2 == 0 ? DIRECT_RESULT : DIRECT_CONTRIBUTION;
}

/* Whether a lane has passed its contribution to `chunk`. */
static bool has_come(const struct direct *direct, const struct direct_lane *lane, uint64_t chunk)
{
    uint64_t ahead = chunks_ahead(direct);
    uint64_t index = lane->results && chunk >= ahead ? ahead + 2 * (chunk - ahead) + 1 : chunk;
    return !lane->contributes || lane->item > index;
}

static struct direct_lane lane_of(const struct direct *direct, uint32_t from, uint32_t to)
{
    struct direct_lane lane = {.item = 0};
    if (from != to) {
        lane.contributes = direct->kind->contributes(direct, from, to);
        lane.results = direct->kind->results(direct, from, to);
    }
    lane.count = ((lane.contributes ? 1u : 0u) + (lane.results ? 1u : 0u)) * direct->chunk_count;
    return lane;
}

/* Advances one item, if it can; *ret_moved stays as it was when no bytes moved. */
static cadre_status move_out(
    struct direct *direct, uint32_t to, struct direct_lane *lane, bool *ret_moved)
{
    struct host_mesh *host = direct->host;
    uint32_t own = host->wire->own;
    struct wire_peer *peer = &host->wire->peers[to];
    uint64_t chunk = 0;
    peer->wants_out = false;
    if (lane->item == lane->count) {
        return CADRE_OK;
    }
    enum direct_item item = item_of(direct, lane, &chunk);
    if (item == DIRECT_RESULT && chunk >= direct->reduced) {
        return CADRE_OK;
    }
    uint32_t share = item == DIRECT_RESULT ? own : to;
    size_t size = direct->kind->size(direct, chunk, share);
    size_t moved = 0;
    if (lane->at < size) {
        struct iovec pieces[DIRECT_PIECES];
        size_t count = direct->kind->pieces(direct, item, chunk, share, lane->at, false, pieces);
        CADRE_TRY(mesh_wire_send(host, to, pieces, count, &moved));
        lane->at += moved;
    }
    *ret_moved = *ret_moved || moved > 0;
    peer->wants_out = true;
    if (lane->at == size) {
        lane->at = 0;
        lane->item++;
        peer->wants_out = lane->item < lane->count;
        *ret_moved = true;
    }
    return CADRE_OK;
}

static cadre_status move_in(
    struct direct *direct, uint32_t from, struct direct_lane *lane, bool *ret_moved)
{
    struct host_mesh *host = direct->host;
    uint32_t own = host->wire->own;
    struct wire_peer *peer = &host->wire->peers[from];
    uint64_t chunk = 0;
    peer->wants_in = false;
    if (lane->item == lane->count) {
        return CADRE_OK;
    }
    enum direct_item item = item_of(direct, lane, &chunk);
    if (item == DIRECT_CONTRIBUTION && chunk >= direct->reduced + DIRECT_DEPTH) {
        return CADRE_OK; /* its memory is still in use */
    }
    uint32_t share = item == DIRECT_RESULT ? from : own;
    size_t size = direct->kind->size(direct, chunk, share);
    size_t moved = 0;
    if (lane->at < size) {
        struct iovec pieces[DIRECT_PIECES];
        size_t count = 1;
        if (item == DIRECT_CONTRIBUTION && direct->kind->reduce != NULL) {
            pieces[0] = (struct iovec){
                .iov_base = mesh_direct_arriving(direct, from, chunk) + lane->at,
                .iov_len = size - lane->at,
            };
        } else {
            count = direct->kind->pieces(direct, item, chunk, share, lane->at, true, pieces);
        }
        CADRE_TRY(mesh_wire_receive(host, from, pieces, count, &moved));
        lane->at += moved;
    }
    *ret_moved = *ret_moved || moved > 0;
    peer->wants_in = true;
    if (lane->at == size) {
        lane->at = 0;
        lane->item++;
        peer->wants_in = lane->item < lane->count;
        *ret_moved = true;
    }
    return CADRE_OK;
}

/* Whether all contributions to the own share of the next chunk are there. */
static bool is_ready(const struct direct *direct, const struct direct_lane *in)
{
    const struct wire *wire = direct->host->wire;
    if (direct->reduced == direct->chunk_count) {
        return false;
    }
    for (uint32_t i = 0; i < wire->host_count; i++) {
        if (!has_come(direct, &in[i], direct->reduced)) {
            return false;
        }
    }
    return true;
}

static cadre_status wire_direct_turn(
    struct direct *direct, struct direct_lane *in, struct direct_lane *out, bool *ret_done)
{
    struct wire *wire = direct->host->wire;
    bool moved = false;
    *ret_done = true;
    /* Each host begins with the next one, so that not all send to the same. */
    for (uint32_t i = 1; i < wire->host_count; i++) {
        uint32_t to = (wire->own + i) % wire->host_count;
        uint32_t from = (wire->own + wire->host_count - i) % wire->host_count;
        CADRE_TRY(move_out(direct, to, &out[to], &moved));
        CADRE_TRY(move_in(direct, from, &in[from], &moved));
    }
    while (is_ready(direct, in)) {
        if (direct->kind->reduce != NULL) {
            direct->kind->reduce(direct, direct->reduced);
        }
        direct->reduced++;
        moved = true;
    }
    for (uint32_t i = 0; i < wire->host_count; i++) {
        bool done = in[i].item == in[i].count && out[i].item == out[i].count;
        *ret_done = *ret_done && done;
    }
    *ret_done = *ret_done && direct->reduced == direct->chunk_count;
    return *ret_done ? CADRE_OK : mesh_wire_wait(direct->host, moved);
}

/* Allocates the memory that contributions arrive in, at the first use; it is kept. */
static cadre_status wire_direct_claim(struct host_mesh *host)
{
    struct wire *wire = host->wire;
    size_t scratch = mesh_reduce_scratch_bytes(wire->host_count) + ALIGNMENT;
    size_t arriving = (wire->host_count - 1) * DIRECT_DEPTH * stride_of(host);
    if (wire->arriving != NULL) {
        return CADRE_OK;
    }
    wire->scratch = aligned_alloc(ALIGNMENT, (scratch + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    wire->arriving = aligned_alloc(ALIGNMENT, (arriving + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    wire->ins = calloc(wire->host_count, sizeof *wire->ins);
    wire->lanes = calloc((size_t)2 * wire->host_count, sizeof *wire->lanes);
    if (wire->scratch == NULL || wire->arriving == NULL || wire->ins == NULL ||
        wire->lanes == NULL) {
        free(wire->arriving);
        wire->arriving = NULL; /* so that the next call does not take it for complete */
        return mesh_fault_raise(host, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu KiB that large collectives between hosts need",
            (scratch + arriving) / 1024);
    }
    return CADRE_OK;
}

cadre_status mesh_direct_run(struct direct *direct)
{
    struct host_mesh *host = direct->host;
    struct wire *wire = host->wire;
    CADRE_TRY(wire_direct_claim(host));
    struct direct_lane *in = wire->lanes;
    struct direct_lane *out = wire->lanes + wire->host_count;
    for (uint32_t i = 0; i < wire->host_count; i++) {
        in[i] = lane_of(direct, i, wire->own);
        out[i] = lane_of(direct, wire->own, i);
    }
    if (!mesh_fault_enter_streams(host)) {
        return CADRE_ABORTED;
    }
    wire->idle_since_us = 0;
    wire->raw = true;
    for (uint32_t i = 0; i < wire->host_count; i++) {
        wire->peers[i].wants_in = wire->peers[i].wants_out = false;
        wire->peers[i].between = false;
    }
    cadre_status status = CADRE_OK;
    bool done = false;
    while (status == CADRE_OK && !done) {
        status = wire_direct_turn(direct, in, out, &done);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < wire->host_count; i++) {
        wire->peers[i].between = direct->last && !wire->peers[i].broken;
    }
    wire->open = !direct->last;
    mesh_fault_leave_streams(host);
    return status;
}
