/* SPDX-License-Identifier: Apache-2.0
 * Large data between hosts. Each chunk of the data is cut into one share for each host. Every host
 * sends to each other one its contribution to that one's share; a host that has all contributions
 * to its own share reduces them, and sends the result to all. On each connection the two kinds of
 * items alternate in an order that both ends can derive, so the bytes need no heads:
 *
 *     c0 c1 | r0 c2 | r1 c3 | ... | r(n-2) | r(n-1)      c: contribution to the receiver's share of
 *                                                           a chunk, r: result of the sender's
 *
 * While a result is reduced, the next contributions are under way. Kinds of collective that need
 * only one kind of item leave the other out. */
#ifndef CADRE_WORKER_MESH_WIRE_WIRE_DIRECT_H
#define CADRE_WORKER_MESH_WIRE_WIRE_DIRECT_H

#include "worker/library/mesh/wire/wire_state.h"

#define DIRECT_DEPTH  2 /* contributions ahead of results */
#define DIRECT_PIECES 16

enum direct_item { DIRECT_CONTRIBUTION, DIRECT_RESULT };

struct direct;

/* What a kind of collective does differently. `share` is a host: the one that reduces it. */
struct direct_kind {
    /* Which items there are on the connection from one host to another. */
    bool (*contributes)(const struct direct *direct, uint32_t from, uint32_t to);
    bool (*results)(const struct direct *direct, uint32_t from, uint32_t to);
    /* Of an item, in bytes. */
    size_t (*size)(const struct direct *direct, uint64_t chunk, uint32_t share);
    /* Up to DIRECT_PIECES pieces of memory of an item from byte `at` on: to send from, or (`into`)
     * to receive into. Own contributions, own results, results of others. */
    size_t (*pieces)(const struct direct *direct, enum direct_item item, uint64_t chunk,
        uint32_t share, size_t at, bool into, struct iovec *ret_pieces);
    /* Makes the own share's result of all contributions; NULL: they are the result. */
    void (*reduce)(struct direct *direct, uint64_t chunk);
};

/* How far one direction of a connection has come. */
struct direct_lane {
    bool contributes;
    bool results;
    uint64_t item; /* in the order above, without the kinds that are left out */
    uint64_t count;
    size_t at; /* bytes of it that were moved */
};

struct direct {
    struct host_mesh *host;
    const struct direct_kind *kind;
    uint64_t chunk_count;
    uint64_t reduced; /* own results so far */
    bool last;        /* no more data follow in this collective */

    enum mesh_op op;
    enum mesh_dtype dtype; /* reduce_scatter */
    uint32_t root;         /* broadcast */
    bool is_root;
    const struct wire_vector *vector; /* all_reduce, broadcast */
    size_t chunk_bytes;               /* of all shares; reduce_scatter: of each row */
    const uint8_t *const *rows;       /* reduce_scatter */
    uint8_t *const *into;
    size_t row_bytes;
    const size_t *offsets; /* all_gather */
    size_t low;
    size_t high;
    uint8_t *packed;
};

/* The most bytes of one item of contributions; equal on all hosts. */
size_t mesh_direct_share_max(const struct host_mesh *host);

/* Where the contribution of `from` to the own share of a chunk arrives. */
uint8_t *mesh_direct_arriving(const struct direct *direct, uint32_t from, uint64_t chunk);

/* Runs the whole exchange. A failure has raised the fault. The leader calls it. */
cadre_status mesh_direct_run(struct direct *direct);

#endif
