/* SPDX-License-Identifier: Apache-2.0
 * What the results must be, computed one element at a time and by the definitions: the tree by
 * recursion over global replica indices, half-width floats by way of exact doubles. Shares nothing
 * with the mesh. */
#ifndef CADRE_TESTS_CONFORMANCE_MESH_REFERENCE_H
#define CADRE_TESTS_CONFORMANCE_MESH_REFERENCE_H

#include "worker/mesh/mesh.h"

/* Element `index` of what replica `replica` contributes, as bits at `into`. Finite, of mixed sizes
 * and signs. */
void reference_draw(
    enum mesh_dtype dtype, uint64_t seed, uint32_t replica, uint64_t index, void *into);

/* The reduction of that element over all replicas, as bits at `into`. */
void reference_reduce(enum mesh_op op, enum mesh_dtype dtype, uint64_t seed, uint32_t replicas,
    uint64_t index, void *into);

#endif
