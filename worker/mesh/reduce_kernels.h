/* SPDX-License-Identifier: Apache-2.0
 * One pairwise step of a reduction, for every operation and element type. Addresses need no
 * alignment. Integers wrap around; half-width floats are computed in float32 and rounded to nearest
 * even; min and max give NaN when either side is NaN (the left one's first), and the left side when
 * the two compare equal. */
#ifndef CADRE_WORKER_MESH_REDUCE_KERNELS_H
#define CADRE_WORKER_MESH_REDUCE_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "worker/mesh/mesh.h"

/* into = left op right, element by element. `into` is `left` itself or overlaps neither side.
 * `bytes` is a multiple of the element. */
void mesh_reduce_pair(enum mesh_op op, enum mesh_dtype dtype, uint8_t *into, const uint8_t *left,
    const uint8_t *right, size_t bytes);

#endif
