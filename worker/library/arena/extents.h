/* SPDX-License-Identifier: Apache-2.0
 * Which parts of a range are free: a tree by position in which every node has the longest extent in
 * its subtree, so that the first one that is long enough is found on one way down. What is freed
 * joins its neighbours. The nodes are outside of the range; those that a put may need are made
 * beforehand, so that a put never fails. One thread at a time. */
#ifndef CADRE_WORKER_ARENA_EXTENTS_H
#define CADRE_WORKER_ARENA_EXTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pure/prng.h"

struct extent {
    uint64_t offset;
    uint64_t bytes;
    uint64_t longest; /* bytes of the longest in this subtree */
    uint64_t priority;
    struct extent *left;
    struct extent *right;
};

/* A zeroed one is empty. */
struct extents {
    struct extent *root;
    struct extent *spare; /* chained through `left` */
    uint64_t nodes;       /* in the tree and spare */
    uint64_t bytes;       /* free ones */
    struct prng prng;
};

/* Makes nodes until there are `nodes` in all: as many as there ever are extents until the next
 * call. False: no memory. They are never freed. */
bool extents_ready(struct extents *extents, uint64_t nodes);

/* Takes the lowest `bytes` bytes that are free in one piece. */
bool extents_take(struct extents *extents, uint64_t bytes, uint64_t *ret_offset);

/* Makes [offset, offset + bytes) free, which it was not. Returns the whole extent that it is then
 * part of. */
void extents_put(struct extents *extents, uint64_t offset, uint64_t bytes, uint64_t *ret_first,
    uint64_t *ret_end);

/* Takes [offset, offset + bytes), which is free. */
void extents_cut(struct extents *extents, uint64_t offset, uint64_t bytes);

#endif
