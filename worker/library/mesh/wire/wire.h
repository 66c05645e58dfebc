/* SPDX-License-Identifier: Apache-2.0
 * Collectives between hosts, one thread of each host: its leader, which is slot 0's thread of the
 * host's lead task. Everything is in the order of hosts in the topology; what a host contributes is
 * its root, the sum of its slots.
 *
 * A collective begins with exactly one of the calls that take a wire_call: they all exchange the
 * same messages with the same hosts, so hosts with different calls still find the difference. Small
 * data are sent with these messages. When the agreement does not hold, no data were moved, and the
 * wire can be used again; the data of an interrupted call are undefined. Large collectives follow
 * with any number of the calls without one, in the same order and with the same sizes on all hosts;
 * the last of them is the one that ends with the layout (or the offsets), so that a fault between
 * two collectives can be sent as a frame.
 *
 *   small, recursive doubling      large, direct: a slice of each chunk belongs to each host
 *     0 <-> 1     2 <-> 3            0 -- its part of slice 1 --> 1     all to all: contributions
 *     0 <----> 2  1 <----> 3         1 reduces slice 1 of all roots     each: (0+1)+(2+3)
 *                                    1 -- slice 1's result ---> 0       all to all: results
 *
 * After a failure (anything but OK) the mesh has a fault, which the wire or another thread raised.
 * Element types: the sums of 16-bit types are sent as float32 where a host has several slots.
 * Callers then give a layout in which they are MESH_F32 and narrow the result, once. Small
 * all-reduces always take that. Raw 16-bit types (every host has one slot, large) are widened,
 * summed and rounded once by the wire. Both give the same bits. */
#ifndef CADRE_WORKER_MESH_WIRE_WIRE_H
#define CADRE_WORKER_MESH_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/mesh/agreement.h"
#include "worker/library/mesh/layout.h"

struct host_mesh;

/* The beginning of a collective. In: the state of this host's slots. Out: that of all hosts. */
struct wire_call {
    uint64_t sequence;   /* of the collective, equal on all hosts */
    uint64_t timeout_us; /* without any progress, also in what follows; 0: none */
    struct agreement agreement;
    bool over; /* an agreement after which no data are moved */
};

/* A range of a vector in memory: the bytes [low, high) of what `layout` describes, either in the
 * buffers of one replica (read at `from` where that is given, written at `data`), or packed. */
struct wire_vector {
    const struct layout *layout;
    size_t low;
    size_t high;
    const struct mesh_buffer *buffers; /* NULL: */
    uint8_t *packed;                   /* the byte `low`, then the others */
};

/* How long to wait for a host that itself waits for others, `depth` levels deep: the hosts at the
 * deepest level are late first, and are to be named. 0: for ever. */
static inline uint64_t mesh_wire_timeout_us(uint64_t timeout_us, uint32_t depth)
{
    return timeout_us == 0 ? 0 : timeout_us + depth * (timeout_us / 4 + UINT64_C(100000));
}

/* The most bytes that the *_small calls move; equal on all hosts. */
size_t mesh_wire_small_bytes(const struct host_mesh *host);

/* Agreement alone: all of a barrier. */
cadre_status mesh_wire_agree(struct host_mesh *host, struct wire_call *call);

/* With a host's root of up to small_bytes, packed at `data`, which becomes the result. `layout` has
 * no 16-bit types. */
cadre_status mesh_wire_all_reduce_small(struct host_mesh *host, struct wire_call *call,
    enum mesh_op op, const struct layout *layout, uint8_t *data);

/* The bytes at `data` of the host `root` to all; up to small_bytes. */
cadre_status mesh_wire_broadcast_small(
    struct host_mesh *host, struct wire_call *call, uint32_t root, uint8_t *data, size_t bytes);

/* `offsets[replica_count + 1]`: where the piece of each replica begins in `into`, in global order;
 * ends with the total, up to small_bytes. The own slots' pieces are in place. */
cadre_status mesh_wire_all_gather_small(
    struct host_mesh *host, struct wire_call *call, const size_t *offsets, uint8_t *into);

/* Large data; in place, or from the buffers' `from`. */
cadre_status mesh_wire_all_reduce(
    struct host_mesh *host, enum mesh_op op, const struct wire_vector *vector);

/* rows[r]: the host's root of the `bytes` that replica r is to get, for all replicas. into[slot]:
 * where the result for each own slot goes; may be its row itself. `last`: no more data follow in
 * this collective. */
cadre_status mesh_wire_reduce_scatter(struct host_mesh *host, enum mesh_op op,
    enum mesh_dtype dtype, const uint8_t *const *rows, uint8_t *const *into, size_t bytes,
    bool last);

/* From the host `root`, which reads at `from` where that is given, to the others. */
cadre_status mesh_wire_broadcast(
    struct host_mesh *host, uint32_t root, const struct wire_vector *vector);

/* The bytes [low, high) of all replicas' pieces one after the other; `packed` holds byte `low`
 * first, with the own slots' part in place. `offsets` as above. */
cadre_status mesh_wire_all_gather(
    struct host_mesh *host, const size_t *offsets, size_t low, size_t high, uint8_t *packed);

#endif
