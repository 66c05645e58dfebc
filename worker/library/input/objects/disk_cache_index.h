/* SPDX-License-Identifier: Apache-2.0
 * Which blocks on the disk make room: those that were used longest ago. No I/O, no clock. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_DISK_CACHE_INDEX_H
#define CADRE_WORKER_INPUT_OBJECTS_DISK_CACHE_INDEX_H

#include <stddef.h>
#include <stdint.h>

/* A block that was found on the disk. */
struct disk_block {
    int64_t used_us; /* when it was used last */
    uint64_t bytes;  /* that it takes */
    uint64_t number; /* in its object */
    uint32_t object; /* which of the objects that were found */
};

/* Sorts the blocks, those first that make room so that the others take `limit` bytes at most, and
 * returns how many these are. Of blocks that were used at the same time the last ones of an object
 * go first: who reads it again in order finds its start. *ret_bytes is what the others take. */
size_t disk_cache_choose(
    struct disk_block blocks[], size_t count, uint64_t limit, uint64_t *ret_bytes);

#endif
