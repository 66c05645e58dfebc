/* SPDX-License-Identifier: Apache-2.0
 * A treap: a search tree by offset that is a heap by random priorities, so its depth stays
 * logarithmic in any order of calls. arena.c keeps its free memory in two of them. */
#include "worker/library/arena/extents.h"

#include <stdlib.h>

#include "common/pure/assert.h"

#define SLAB_NODES 512

bool extents_ready(struct extents *extents, uint64_t nodes)
{
    while (extents->nodes < nodes) {
        struct extent *slab = calloc(SLAB_NODES, sizeof *slab);
        if (slab == NULL) {
            return false;
        }
        for (size_t i = 0; i < SLAB_NODES; i++) {
            slab[i].left = extents->spare;
            extents->spare = &slab[i];
        }
        extents->nodes += SLAB_NODES;
    }
    return true;
}

static struct extent *new_extent(struct extents *extents, uint64_t offset, uint64_t bytes)
{
    struct extent *extent = extents->spare;
    CADRE_ASSERT(extent != NULL);
    extents->spare = extent->left;
    *extent = (struct extent){
        .offset = offset, .bytes = bytes, .longest = bytes, .priority = prng_next(&extents->prng)};
    return extent;
}

static void extents_retire(struct extents *extents, struct extent *extent)
{
    extent->left = extents->spare;
    extents->spare = extent;
}

static uint64_t longest_of(const struct extent *tree)
{
    return tree == NULL ? 0 : tree->longest;
}

static struct extent *extents_update(struct extent *tree)
{
    uint64_t left = longest_of(tree->left);
    uint64_t right = longest_of(tree->right);
    uint64_t longest_child = left > right ? left : right;
    tree->longest = tree->bytes > longest_child ? tree->bytes : longest_child;
    return tree;
}

/* One tree of two, all of whose offsets rise from the left one to the right one. */
static struct extent *extents_join(struct extent *left, struct extent *right)
{
    if (left == NULL || right == NULL) {
        return left == NULL ? right : left;
    }
    if (left->priority > right->priority) {
        left->right = extents_join(left->right, right);
        return extents_update(left);
    }
    right->left = extents_join(left, right->left);
    return extents_update(right);
}

/* The inverse: the left one gets all offsets under `offset`. */
static void extents_split(
    struct extent *tree, uint64_t offset, struct extent **ret_left, struct extent **ret_right)
{
    if (tree == NULL) {
        *ret_left = NULL;
        *ret_right = NULL;
    } else if (tree->offset < offset) {
        extents_split(tree->right, offset, &tree->right, ret_right);
        *ret_left = extents_update(tree);
    } else {
        extents_split(tree->left, offset, ret_left, &tree->left);
        *ret_right = extents_update(tree);
    }
}

/* Takes the last node out of a tree that is not empty; *ret_last is it. */
static struct extent *without_last(struct extent *tree, struct extent **ret_last)
{
    if (tree->right == NULL) {
        *ret_last = tree;
        return tree->left;
    }
    tree->right = without_last(tree->right, ret_last);
    return extents_update(tree);
}

static struct extent *without_first(struct extent *tree, struct extent **ret_first)
{
    if (tree->left == NULL) {
        *ret_first = tree;
        return tree->right;
    }
    tree->left = without_first(tree->left, ret_first);
    return extents_update(tree);
}

static const struct extent *last_of(const struct extent *tree)
{
    while (tree != NULL && tree->right != NULL) {
        tree = tree->right;
    }
    return tree;
}

static const struct extent *first_of(const struct extent *tree)
{
    while (tree != NULL && tree->left != NULL) {
        tree = tree->left;
    }
    return tree;
}

/* From the front of the first extent that has `bytes`; there is one in `tree`. */
static struct extent *take_first(
    struct extents *extents, struct extent *tree, uint64_t bytes, uint64_t *ret_offset)
{
    if (longest_of(tree->left) >= bytes) {
        tree->left = take_first(extents, tree->left, bytes, ret_offset);
    } else if (tree->bytes < bytes) {
        tree->right = take_first(extents, tree->right, bytes, ret_offset);
    } else {
        *ret_offset = tree->offset;
        tree->offset += bytes;
        tree->bytes -= bytes;
        if (tree->bytes == 0) {
            struct extent *rest = extents_join(tree->left, tree->right);
            extents_retire(extents, tree);
            return rest;
        }
    }
    return extents_update(tree);
}

bool extents_take(struct extents *extents, uint64_t bytes, uint64_t *ret_offset)
{
    if (longest_of(extents->root) < bytes) {
        return false;
    }
    extents->root = take_first(extents, extents->root, bytes, ret_offset);
    extents->bytes -= bytes;
    return true;
}

void extents_put(struct extents *extents, uint64_t offset, uint64_t bytes, uint64_t *ret_first,
    uint64_t *ret_end)
{
    struct extent *left = NULL;
    struct extent *right = NULL;
    struct extent *neighbour = NULL;
    uint64_t first = offset;
    uint64_t end = offset + bytes;
    extents_split(extents->root, offset, &left, &right);
    const struct extent *before = last_of(left);
    const struct extent *after = first_of(right);
    CADRE_ASSERT(before == NULL || before->offset + before->bytes <= offset);
    CADRE_ASSERT(after == NULL || after->offset >= end);
    if (before != NULL && before->offset + before->bytes == offset) {
        left = without_last(left, &neighbour);
        first = neighbour->offset;
        extents_retire(extents, neighbour);
    }
    if (after != NULL && after->offset == end) {
        right = without_first(right, &neighbour);
        end += neighbour->bytes;
        extents_retire(extents, neighbour);
    }
    extents->root =
        extents_join(extents_join(left, new_extent(extents, first, end - first)), right);
    extents->bytes += bytes;
    *ret_first = first;
    *ret_end = end;
}

void extents_cut(struct extents *extents, uint64_t offset, uint64_t bytes)
{
    struct extent *left = NULL;
    struct extent *right = NULL;
    struct extent *around = NULL;
    extents_split(extents->root, offset + 1, &left, &right);
    CADRE_ASSERT(left != NULL);
    left = without_last(left, &around);
    uint64_t first = around->offset;
    uint64_t end = first + around->bytes;
    CADRE_ASSERT(first <= offset && offset + bytes <= end);
    extents_retire(extents, around);
    if (first < offset) {
        left = extents_join(left, new_extent(extents, first, offset - first));
    }
    if (offset + bytes < end) {
        right = extents_join(new_extent(extents, offset + bytes, end - offset - bytes), right);
    }
    extents->root = extents_join(left, right);
    extents->bytes -= bytes;
}
