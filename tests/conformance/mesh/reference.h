/* SPDX-License-Identifier: Apache-2.0
 * What the results must be, computed one element at a time and by the definitions: the trees by
 * recursion, over a host's slots and then over hosts, half-width floats by way of exact doubles.
 * Shares nothing with the mesh. */
#ifndef CADRE_TESTS_CONFORMANCE_MESH_REFERENCE_H
#define CADRE_TESTS_CONFORMANCE_MESH_REFERENCE_H

#include "worker/library/mesh/mesh.h"

#define REFERENCE_HOSTS_MAX    8
#define REFERENCE_REPLICAS_MAX 16

/* Element `index` of what replica `replica` contributes, as bits at `into`. Finite, of mixed sizes
 * and signs. */
void reference_draw(
    enum mesh_dtype dtype, uint64_t seed, uint32_t replica, uint64_t index, void *into);

/* The location of each replica: host by host, in the order of hosts. */
struct reference_seats {
    uint32_t host_count;
    uint32_t slots[REFERENCE_HOSTS_MAX];       /* how many replicas each host has */
    uint32_t replicas[REFERENCE_REPLICAS_MAX]; /* the first host's, then the next one's */
};

/* The reduction of that element over all replicas, as bits at `into`. */
void reference_reduce(enum mesh_op op, enum mesh_dtype dtype, uint64_t seed,
    const struct reference_seats *seats, uint64_t index, void *into);

#endif
