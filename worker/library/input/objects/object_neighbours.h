/* SPDX-License-Identifier: Apache-2.0
 * Bytes of objects that come from another task of the job instead of the store
 * (worker/library/neighbours). One source of them for the process; without it all that is missing
 * comes from the store.
 *
 * An object is divided into segments of OBJECT_SEGMENT_BLOCKS blocks. Each segment has one task
 * that asks the store for it; so blocks of two segments are not fetched in one run. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_OBJECT_NEIGHBOURS_H
#define CADRE_WORKER_INPUT_OBJECTS_OBJECT_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/input/objects/ahead_window.h"
#include "worker/library/input/objects/object.h"

#define OBJECT_SEGMENT_BLOCKS AHEAD_RUN_MAX
#define OBJECT_SEGMENT_BYTES  (OBJECT_SEGMENT_BLOCKS * OBJECT_BLOCK_BYTES)

/* Where bytes may come from. */
struct object_neighbours {
    /* Reads bytes [offset, offset + bytes) of one segment, of which `offset` begins a block, each
     * block to its place. False: they do not come from another task, and are read from the store;
     * the places may have been written to. Does not wait without a bound. Any thread. */
    bool (*read)(void *user, const struct object *object, uint64_t offset, void *const places[],
        size_t bytes);
    void *user;
};

/* From now on; NULL: none. Returns when no call of the former one is in progress. One thread at a
 * time. `neighbours` is copied. */
void object_neighbours_set(const struct object_neighbours *neighbours);

/* Whether there is one. */
bool object_neighbours_on(void);

/* Blocks from `first` on, `count` at most, that are fetched in one run: all, where there are no
 * neighbours, else those of its segment. */
uint64_t object_neighbours_run(uint64_t first, uint64_t count);

/* As `read` of struct object_neighbours; false where there is none. */
bool object_neighbours_read(
    const struct object *object, uint64_t offset, void *const places[], size_t bytes);

#endif
