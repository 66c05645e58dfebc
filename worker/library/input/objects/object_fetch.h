/* SPDX-License-Identifier: Apache-2.0
 * Runs of blocks on their way from the store, inside this folder. All calls but the first and the
 * last are under the lock of object_memory.h. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_OBJECT_FETCH_H
#define CADRE_WORKER_INPUT_OBJECTS_OBJECT_FETCH_H

#include "worker/library/input/objects/object_memory.h"

/* Whether a block is on the disk, and in memory it would make another one go: then it is read from
 * there, past memory. So what is in memory stays there, when more than that is read again and again
 * in order. Not so for a second after a disk kept a reader waiting: then blocks are read ahead of
 * it to memory, several at a time. Without the lock. */
bool object_fetch_stays_on_disk(const struct object *object, uint64_t number);
/* How long a reader waited for a block of the disk. */
void object_fetch_waited(uint64_t us);

/* Notes which blocks are on the disk already, once for each object. Without the lock. */
void object_fetch_look(struct object *object);

/* Asks for those of blocks [first, first + count) that are empty, in runs of AHEAD_RUN_MAX blocks
 * at most; `reader` may be NULL. Returns how many from the first one on are now ready, on their
 * way, or stay on the disk: fewer than `count` when there is no room. */
uint64_t object_fetch_ask(
    struct object *object, uint64_t first, uint64_t count, enum work_rank rank, const void *reader);

/* What `reader` asked for of the object, and no thread has begun, is not fetched. */
void object_fetch_cancel(struct object *object, const void *reader);

/* Waits for a block that is being filled, or fetches its run in this thread when no other one has
 * begun. The lock is given up meanwhile. The status is that of fetching it, if it was waited for.
 */
cadre_status object_fetch_wait(struct object *object, uint64_t number, struct cadre_error *error);

/* Fetches the block, which was claimed, in this thread. The lock is given up meanwhile. */
cadre_status object_fetch_block(struct object *object, uint64_t number, struct cadre_error *error);

/* Reads bytes past the blocks, without the lock. */
cadre_status object_fetch_bytes(const struct object *object, uint64_t offset, void *to,
    size_t bytes, struct cadre_error *error);

#endif
