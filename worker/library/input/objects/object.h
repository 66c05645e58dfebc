/* SPDX-License-Identifier: Apache-2.0
 * Objects of a store as datasets read them: at any offset, by several threads at once.
 *
 * What was read stays in memory in blocks of OBJECT_BLOCK_BYTES, for all objects of the process
 * within one budget: CADRE_OBJECT_MEMORY_MIB mebibytes, by default a sixteenth of the machine's
 * memory, 1 GiB at most. Blocks are fetched by threads of the process, up to 32 at a time: those
 * that are waited for first, then those that are read ahead. An object is one state of it (size and
 * ETag) for as long as it is open by anyone in the process; a read of another state is DATA_LOSS.
 *
 * Errors are those of common/storage/storage.h. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_OBJECT_H
#define CADRE_WORKER_INPUT_OBJECTS_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/input/objects/ahead_window.h"

#define OBJECT_BLOCK_BYTES ((size_t)256 << 10)

struct object;

/* Looks the object up, unless it is open already; then both are the same. Blocks of it that are in
 * memory since an earlier time serve again if it is in the same state. INVALID_ARGUMENT also: the
 * environment's budget. On success it is the caller's to close. */
cadre_status object_open(const char *path, struct object **ret_object, struct cadre_error *error);

/* It will be opened soon: it is looked up in the background, and the first `blocks` blocks of it
 * are fetched. What fails is met again by object_open. */
void object_expect(const char *path, uint64_t blocks);

/* No call for it may be in progress. NULL is allowed. */
void object_close(struct object *object);

/* Valid until the close. */
const char *object_path(const struct object *object);
const char *object_version(const struct object *object); /* the ETag; "": it has none */
int64_t object_modified_us(const struct object *object); /* since 1970; 0: not known */
uint64_t object_bytes(const struct object *object);

/* Copies bytes [offset, offset + bytes), which are inside, and waits for those that are not in
 * memory. */
cadre_status object_read(
    struct object *object, uint64_t offset, void *to, size_t bytes, struct cadre_error *error);

/* One of several reads. */
struct object_piece {
    struct object *object;
    uint64_t offset;
    void *to;
    size_t bytes;
};

#define OBJECT_PIECES_MAX 64

/* As many reads, in less time for short ones that are in memory; `count` is OBJECT_PIECES_MAX at
 * most. *ret_done is how many were done when it fails: the first ones. */
cadre_status object_read_pieces(
    const struct object_piece pieces[], size_t count, size_t *ret_done, struct cadre_error *error);

/* These bytes, inside the object, are read soon: blocks that are not in memory are asked for, as
 * far as there is room. Does not wait. */
void object_ask(struct object *object, uint64_t offset, uint64_t bytes);

/* Asks the processor for the first lines of [offset, offset + bytes), if they are in memory. */
void object_prefetch(const struct object *object, uint64_t offset, uint64_t bytes);

/* One that reads in order. Zeroed: nothing was read yet. One thread at a time. */
struct object_ahead {
    struct ahead_window window;
    struct object *object; /* NULL: nothing was read yet */
    uint64_t passed;       /* blocks before this one are of no more use */
};

/* object_read for one that reads on from there: what follows is asked for, the farther ahead the
 * longer it has read on; all who do so share the budget. What it has passed is the first to make
 * room. */
cadre_status object_read_on(struct object *object, struct object_ahead *ahead, uint64_t offset,
    void *to, size_t bytes, struct cadre_error *error);

/* It reads no more: what was asked for and is not yet on its way is not fetched. To be called
 * before the object is closed; zeroes it. */
void object_ahead_end(struct object_ahead *ahead);

#endif
