/* SPDX-License-Identifier: Apache-2.0
 * The canonical order of a sum: a balanced pairwise tree over the global replica index, padded to a
 * power of two. Level k joins blocks [b, b + 2^k) and [b + 2^k, b + 2^(k+1)), both cut at the
 * number of replicas; a missing right block lets the left one through. A tree value is that order
 * made into a small program for a run of neighbouring leaves: push a leaf, merge the two topmost so
 * many times, push the next. What is left on the stack at the end are the roots: the largest blocks
 * of the canonical tree that the leaves cover whole. */
#ifndef CADRE_WORKER_MESH_TREE_H
#define CADRE_WORKER_MESH_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "worker/mesh/mesh.h"

#define MESH_TREE_LEVELS_MAX 20 /* so at most 2^20 replicas */
#define MESH_TREE_DEPTH_MAX  (2 * MESH_TREE_LEVELS_MAX + 2)
#define MESH_TILE_BYTES                                                                            \
    4096 /* the piece of a sum that stays in the first-level cache; a multiple of 8 */

/* The block [first, first + 2^level) cut at the number of replicas. A block whose right sibling is
 * wholly cut off is always written at the higher level, so that equal blocks have equal nodes. */
struct tree_node {
    uint32_t first;
    uint32_t level;
};

struct tree {
    uint32_t leaf_count;
    uint8_t *merges; /* [leaf_count]: merges after the push of each leaf */
    uint32_t root_count;
    struct tree_node roots[MESH_TREE_DEPTH_MAX];
    uint32_t depth_max; /* the deepest the stack gets */
};

/* Over the replicas first..first+count-1 of `replica_count`. */
cadre_status mesh_tree_over_replicas(struct tree *ret_tree, uint32_t replica_count, uint32_t first,
    uint32_t count, struct cadre_error *error);

/* Over blocks that tile a run of replicas in order, such as the roots of all tasks one after the
 * other. */
cadre_status mesh_tree_over_blocks(struct tree *ret_tree, uint32_t replica_count,
    const struct tree_node *blocks, uint32_t count, struct cadre_error *error);

/* Frees what tree_over_* allocated; accepts a zeroed tree. */
void mesh_tree_finish(struct tree *tree);

/* The smallest level whose block holds all replicas. */
uint32_t mesh_tree_root_level(uint32_t replica_count);

/* Reduces one tile: `bytes` <= MESH_TILE_BYTES (a multiple of the element) at `leaves[i] + at` of
 * every leaf. `scratch` has depth_max tiles. ret_roots[root_count] then point to the roots' values,
 * in scratch or in a leaf. */
void mesh_tree_reduce_tile(const struct tree *tree, enum mesh_op op, enum mesh_dtype dtype,
    const uint8_t *const *leaves, size_t at, size_t bytes, uint8_t *scratch,
    const uint8_t **ret_roots);

#endif
