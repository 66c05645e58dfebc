/* SPDX-License-Identifier: Apache-2.0
 * The kinds of large collective between hosts, each as a direct exchange (wire_direct.h). hosts.c
 * and all_reduce_hosts.c call them after the agreement. */
#include "common/pure/assert.h"
#include "worker/library/mesh/reduce/reduce_kernels.h"
#include "worker/library/mesh/wire/wire_direct.h"

static bool wire_large_always(const struct direct *direct, uint32_t from, uint32_t to)
{
    (void)direct;
    (void)from;
    (void)to;
    return true;
}

static bool wire_large_never(const struct direct *direct, uint32_t from, uint32_t to)
{
    (void)direct;
    (void)from;
    (void)to;
    return false;
}

/* --- vectors: all_reduce and broadcast --- */

/* The packed range of a share of a chunk. */
static void share_of(
    const struct direct *direct, uint64_t chunk, uint32_t share, size_t *ret_low, size_t *ret_high)
{
    const struct wire_vector *vector = direct->vector;
    const struct layout *layout = vector->layout;
    size_t low = vector->low + (size_t)chunk * direct->chunk_bytes;
    size_t high =
        vector->high - low > direct->chunk_bytes ? low + direct->chunk_bytes : vector->high;
    low = chunk > 0 ? mesh_layout_cut(layout, low) : low;
    high = high < vector->high ? mesh_layout_cut(layout, high) : high;
    mesh_layout_part(
        layout, low, high, share, direct->host->topology.host_count, ret_low, ret_high);
}

static size_t vector_size(const struct direct *direct, uint64_t chunk, uint32_t share)
{
    size_t low;
    size_t high;
    share_of(direct, chunk, share, &low, &high);
    return high - low;
}

/* The address in one buffer where a piece is read, or its result goes. */
static uint8_t *buffer_of(
    const struct wire_vector *vector, const struct layout_piece *piece, size_t offset, bool result)
{
    if (vector->buffers == NULL) {
        return vector->packed + (offset - vector->low);
    }
    const struct mesh_buffer *buffer = &vector->buffers[piece->buffer];
    const void *base = !result && buffer->from != NULL ? buffer->from : buffer->data;
    return (uint8_t *)(uintptr_t)base + piece->at;
}

static size_t vector_pieces(const struct direct *direct, enum direct_item item, uint64_t chunk,
    uint32_t share, size_t at, bool into, struct iovec *ret_pieces)
{
    size_t low;
    size_t high;
    struct layout_piece piece;
    size_t count = 0;
    /* All that arrives, and all that is sent on, is in the result's memory. */
    bool result = into || (item == DIRECT_RESULT && !direct->is_root);
    share_of(direct, chunk, share, &low, &high);
    size_t offset = low + at;
    for (size_t begin = offset;
         count < DIRECT_PIECES && mesh_layout_next(direct->vector->layout, &offset, high, &piece);
         begin = offset) {
        ret_pieces[count++] = (struct iovec){
            .iov_base = buffer_of(direct->vector, &piece, begin, result),
            .iov_len = piece.bytes,
        };
        if (direct->vector->buffers == NULL) {
            ret_pieces[0].iov_len = high - (low + at); /* packed: all of it at once */
            return 1;
        }
    }
    return count;
}

static void vector_reduce(struct direct *direct, uint64_t chunk)
{
    const struct wire *wire = direct->host->wire;
    size_t low;
    size_t high;
    struct layout_piece piece;
    share_of(direct, chunk, wire->own, &low, &high);
    size_t offset = low;
    for (size_t begin = low; mesh_layout_next(direct->vector->layout, &offset, high, &piece);
         begin = offset) {
        for (uint32_t i = 0; i < wire->host_count; i++) {
            wire->ins[i] = i == wire->own ? buffer_of(direct->vector, &piece, begin, false)
                                          : mesh_direct_arriving(direct, i, chunk) + (begin - low);
        }
        uint8_t *out = buffer_of(direct->vector, &piece, begin, true);
        mesh_reduce_many(direct->op, piece.dtype, &out, 1, wire->ins, wire->host_count, 0,
            piece.bytes, wire->scratch);
    }
}

static cadre_status run_vector(struct direct *direct)
{
    const struct wire_vector *vector = direct->vector;
    CADRE_ASSERT(vector->low <= vector->high && vector->high <= vector->layout->bytes);
    direct->chunk_bytes = mesh_direct_share_max(direct->host) * direct->host->topology.host_count;
    direct->chunk_count =
        (vector->high - vector->low + direct->chunk_bytes - 1) / direct->chunk_bytes;
    direct->last = vector->high == vector->layout->bytes;
    return mesh_direct_run(direct);
}

cadre_status mesh_wire_all_reduce(
    struct host_mesh *host, enum mesh_op op, const struct wire_vector *vector)
{
    static const struct direct_kind kind = {.contributes = wire_large_always,
        .results = wire_large_always,
        .size = vector_size,
        .pieces = vector_pieces,
        .reduce = vector_reduce};
    struct direct direct = {.host = host, .kind = &kind, .op = op, .vector = vector};
    return run_vector(&direct);
}

/* The root cuts every chunk into shares and sends each to its host, which sends it on to all but
 * the root. */
static bool from_root(const struct direct *direct, uint32_t from, uint32_t to)
{
    (void)to;
    return from == direct->root;
}

static bool not_to_root(const struct direct *direct, uint32_t from, uint32_t to)
{
    (void)from;
    return to != direct->root;
}

cadre_status mesh_wire_broadcast(
    struct host_mesh *host, uint32_t root, const struct wire_vector *vector)
{
    static const struct direct_kind kind = {.contributes = from_root,
        .results = not_to_root,
        .size = vector_size,
        .pieces = vector_pieces};
    struct direct direct = {.host = host,
        .kind = &kind,
        .root = root,
        .is_root = root == host->wire->own,
        .vector = vector};
    CADRE_ASSERT(root < host->wire->host_count);
    return run_vector(&direct);
}

/* --- reduce_scatter: a chunk is a byte range of every row, a share the rows of one host --- */

static size_t row_byte_range(const struct direct *direct, uint64_t chunk)
{
    size_t left = direct->row_bytes - (size_t)chunk * direct->chunk_bytes;
    return left < direct->chunk_bytes ? left : direct->chunk_bytes;
}

static size_t rows_size(const struct direct *direct, uint64_t chunk, uint32_t share)
{
    return row_byte_range(direct, chunk) * direct->host->topology.hosts[share].slot_count;
}

/* Only contributions are sent. */
static size_t rows_pieces(const struct direct *direct, enum direct_item item, uint64_t chunk,
    uint32_t share, size_t at, bool into, struct iovec *ret_pieces)
{
    CADRE_ASSERT(item == DIRECT_CONTRIBUTION && !into);
    size_t bytes = row_byte_range(direct, chunk);
    const struct topology *topology = &direct->host->topology;
    const uint32_t *replicas = mesh_topology_replicas(topology, share);
    size_t count = 0;
    size_t skip = at % bytes;
    for (size_t slot = at / bytes;
         slot < topology->hosts[share].slot_count && count < DIRECT_PIECES; slot++, skip = 0) {
        const uint8_t *row = direct->rows[replicas[slot]] + chunk * direct->chunk_bytes;
        ret_pieces[count++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)(row + skip), .iov_len = bytes - skip};
    }
    return count;
}

static void rows_reduce(struct direct *direct, uint64_t chunk)
{
    const struct wire *wire = direct->host->wire;
    const struct topology *topology = &direct->host->topology;
    const uint32_t *replicas = mesh_topology_replicas(topology, wire->own);
    size_t bytes = row_byte_range(direct, chunk);
    size_t at = (size_t)chunk * direct->chunk_bytes;
    for (uint32_t slot = 0; slot < topology->hosts[wire->own].slot_count; slot++) {
        for (uint32_t i = 0; i < wire->host_count; i++) {
            wire->ins[i] = i == wire->own ? direct->rows[replicas[slot]] + at
                                          : mesh_direct_arriving(direct, i, chunk) + slot * bytes;
        }
        uint8_t *out = direct->into[slot] + at;
        mesh_reduce_many(direct->op, direct->dtype, &out, 1, wire->ins, wire->host_count, 0, bytes,
            wire->scratch);
    }
}

cadre_status mesh_wire_reduce_scatter(struct host_mesh *host, enum mesh_op op,
    enum mesh_dtype dtype, const uint8_t *const *rows, uint8_t *const *into, size_t bytes,
    bool last)
{
    static const struct direct_kind kind = {.contributes = wire_large_always,
        .results = wire_large_never,
        .size = rows_size,
        .pieces = rows_pieces,
        .reduce = rows_reduce};
    size_t slots = 1;
    for (uint32_t i = 0; i < host->topology.host_count; i++) {
        uint32_t count = host->topology.hosts[i].slot_count;
        slots = count > slots ? count : slots;
    }
    /* Whole cache lines, hence whole elements. */
    size_t range_bytes = mesh_direct_share_max(host) / slots / 64 * 64;
    struct direct direct = {.host = host,
        .kind = &kind,
        .op = op,
        .dtype = dtype,
        .chunk_bytes = range_bytes,
        .chunk_count = (bytes + range_bytes - 1) / range_bytes,
        .rows = rows,
        .into = into,
        .row_bytes = bytes,
        .last = last};
    return mesh_direct_run(&direct);
}

/* --- all_gather: one chunk, and a share is the data of one host's slots in it --- */

/* The part of a replica's piece that lies in the range. */
static size_t wire_large_clip(const struct direct *direct, uint32_t replica, size_t *ret_at)
{
    size_t low = direct->offsets[replica];
    size_t high = direct->offsets[replica + 1];
    low = low > direct->low ? low : direct->low;
    high = high < direct->high ? high : direct->high;
    *ret_at = low - direct->low;
    return high > low ? high - low : 0;
}

static size_t gather_size(const struct direct *direct, uint64_t chunk, uint32_t share)
{
    (void)chunk;
    const struct topology *topology = &direct->host->topology;
    const uint32_t *replicas = mesh_topology_replicas(topology, share);
    size_t size = 0;
    size_t offset;
    for (uint32_t slot = 0; slot < topology->hosts[share].slot_count; slot++) {
        size += wire_large_clip(direct, replicas[slot], &offset);
    }
    return size;
}

static size_t gather_pieces(const struct direct *direct, enum direct_item item, uint64_t chunk,
    uint32_t share, size_t at, bool into, struct iovec *ret_pieces)
{
    (void)item;
    (void)chunk;
    (void)into;
    const struct topology *topology = &direct->host->topology;
    const uint32_t *replicas = mesh_topology_replicas(topology, share);
    size_t count = 0;
    for (uint32_t slot = 0; slot < topology->hosts[share].slot_count && count < DIRECT_PIECES;
         slot++) {
        size_t offset;
        size_t bytes = wire_large_clip(direct, replicas[slot], &offset);
        size_t skip = at < bytes ? at : bytes;
        at -= skip;
        if (bytes > skip) {
            ret_pieces[count++] =
                (struct iovec){.iov_base = direct->packed + offset + skip, .iov_len = bytes - skip};
        }
    }
    return count;
}

cadre_status mesh_wire_all_gather(
    struct host_mesh *host, const size_t *offsets, size_t low, size_t high, uint8_t *packed)
{
    static const struct direct_kind kind = {.contributes = wire_large_never,
        .results = wire_large_always,
        .size = gather_size,
        .pieces = gather_pieces};
    size_t total = offsets[host->topology.replica_count];
    CADRE_ASSERT(low <= high && high <= total);
    struct direct direct = {.host = host,
        .kind = &kind,
        .chunk_count = 1,
        .offsets = offsets,
        .low = low,
        .high = high,
        .packed = packed,
        .last = high == total};
    return mesh_direct_run(&direct);
}
