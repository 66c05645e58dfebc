/* SPDX-License-Identifier: Apache-2.0
 * See disk_cache_index.h. */
#include "worker/library/input/objects/disk_cache_index.h"

#include <stdlib.h>

static int compare_blocks(const void *a, const void *b)
{
    const struct disk_block *one = a;
    const struct disk_block *other = b;
    if (one->used_us != other->used_us) {
        return one->used_us < other->used_us ? -1 : 1;
    }
    if (one->number != other->number) {
        return one->number > other->number ? -1 : 1;
    }
    return one->object < other->object ? -1 : one->object > other->object;
}

size_t disk_cache_choose(
    struct disk_block blocks[], size_t count, uint64_t limit, uint64_t *ret_bytes)
{
    uint64_t bytes = 0;
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += blocks[i].bytes;
    }
    if (count > 0 && bytes > limit) {
        qsort(blocks, count, sizeof blocks[0], compare_blocks);
    }
    for (; bytes > limit; chosen++) {
        bytes -= blocks[chosen].bytes;
    }
    *ret_bytes = bytes;
    return chosen;
}
