/* SPDX-License-Identifier: Apache-2.0
 * The canonical tree as a stack program, and its evaluation tile by tile. */
#include "worker/mesh/tree.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/mesh/reduce_kernels.h"

uint32_t mesh_tree_root_level(uint32_t replica_count)
{
    uint32_t level = 0;
    while ((UINT64_C(1) << level) < replica_count) {
        level++;
    }
    return level;
}

struct stack {
    struct tree_node nodes[MESH_TREE_DEPTH_MAX];
    uint32_t depth;
};

/* Joins the topmost block with its left sibling while that is on the stack, and lifts a left block
 * over right siblings that do not exist. Returns the number of joins. */
static uint8_t settle(struct stack *stack, uint32_t replica_count)
{
    uint32_t root_level = mesh_tree_root_level(replica_count);
    uint8_t merges = 0;
    struct tree_node *top = &stack->nodes[stack->depth - 1];
    while (top->level < root_level) {
        uint32_t width = UINT32_C(1) << top->level;
        if ((top->first & width) == 0) {
            if (top->first + width < replica_count) {
                break;
            }
        } else {
            bool sibling = stack->depth >= 2 && top[-1].level == top->level &&
                           top[-1].first == top->first - width;
            if (!sibling) {
                break;
            }
            stack->depth--;
            top--;
            merges++;
        }
        top->level++;
    }
    return merges;
}

static cadre_status start(struct tree *tree, uint32_t leaf_count, struct cadre_error *error)
{
    *tree = (struct tree){.leaf_count = leaf_count};
    tree->merges = calloc(leaf_count, 1);
    if (tree->merges == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the order of %u summands", leaf_count);
    }
    return CADRE_OK;
}

static void push(
    struct tree *tree, struct stack *stack, uint32_t leaf, struct tree_node node, uint32_t replicas)
{
    CADRE_ASSERT(stack->depth < MESH_TREE_DEPTH_MAX);
    stack->nodes[stack->depth++] = node;
    if (stack->depth > tree->depth_max) {
        tree->depth_max = stack->depth;
    }
    tree->merges[leaf] = settle(stack, replicas);
}

static void finish(struct tree *tree, const struct stack *stack)
{
    tree->root_count = stack->depth;
    memcpy(tree->roots, stack->nodes, stack->depth * sizeof stack->nodes[0]);
}

cadre_status mesh_tree_over_replicas(struct tree *ret_tree, uint32_t replica_count, uint32_t first,
    uint32_t count, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0 && first + count <= replica_count);
    CADRE_ASSERT(replica_count <= UINT32_C(1) << MESH_TREE_LEVELS_MAX);
    CADRE_TRY(start(ret_tree, count, error));
    struct stack stack = {.depth = 0};
    for (uint32_t i = 0; i < count; i++) {
        push(ret_tree, &stack, i, (struct tree_node){.first = first + i}, replica_count);
    }
    finish(ret_tree, &stack);
    return CADRE_OK;
}

cadre_status mesh_tree_over_blocks(struct tree *ret_tree, uint32_t replica_count,
    const struct tree_node *blocks, uint32_t count, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    CADRE_TRY(start(ret_tree, count, error));
    struct stack stack = {.depth = 0};
    for (uint32_t i = 0; i < count; i++) {
        push(ret_tree, &stack, i, blocks[i], replica_count);
    }
    finish(ret_tree, &stack);
    return CADRE_OK;
}

void mesh_tree_finish(struct tree *tree)
{
    free(tree->merges);
    *tree = (struct tree){.leaf_count = 0};
}

void mesh_tree_reduce_tile(const struct tree *tree, enum mesh_op op, enum mesh_dtype dtype,
    const uint8_t *const *leaves, size_t at, size_t bytes, uint8_t *scratch,
    const uint8_t **ret_roots)
{
    CADRE_ASSERT(bytes <= MESH_TILE_BYTES);
    const uint8_t *stack[MESH_TREE_DEPTH_MAX];
    uint32_t depth = 0;
    for (uint32_t leaf = 0; leaf < tree->leaf_count; leaf++) {
        stack[depth++] = leaves[leaf] + at;
        for (uint8_t merge = 0; merge < tree->merges[leaf]; merge++) {
            /* The left operand is a leaf or already in this very slot of the scratch memory. */
            uint8_t *into = scratch + (size_t)(depth - 2) * MESH_TILE_BYTES;
            mesh_reduce_pair(op, dtype, into, stack[depth - 2], stack[depth - 1], bytes);
            stack[depth - 2] = into;
            depth--;
        }
    }
    CADRE_ASSERT(depth == tree->root_count);
    memcpy(ret_roots, stack, depth * sizeof stack[0]);
}
