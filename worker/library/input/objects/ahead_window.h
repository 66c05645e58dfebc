/* SPDX-License-Identifier: Apache-2.0
 * How far ahead of one that reads an object in order its blocks are asked for, and in which runs.
 * It begins with little, because many read only the start of an object, and doubles as the reader
 * goes on. Numbers alone: no I/O, no clock, no memory. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_AHEAD_WINDOW_H
#define CADRE_WORKER_INPUT_OBJECTS_AHEAD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#define AHEAD_BLOCKS_FIRST 4   /* ahead of one that begins, or that jumped */
#define AHEAD_BLOCKS_MAX   256 /* ahead of one that has read on for long */
#define AHEAD_RUN_MAX      16  /* blocks of one request */

/* Blocks that are asked for at once. count 0: none. */
struct block_run {
    uint64_t first;
    uint64_t count;
};

/* Zeroed: nothing was read yet. */
struct ahead_window {
    uint64_t begin;  /* the block at which the reader stands */
    uint64_t end;    /* behind the last one that was asked for */
    uint64_t blocks; /* how far ahead; 0: nothing was read yet */
    uint64_t grown;  /* where the reader stood when that was last doubled */
};

/* The reader goes to block `first`. Returns false when that is no reading on: what was asked for
 * ahead of it is of no more use. */
bool ahead_window_move(struct ahead_window *window, uint64_t first);

/* The next run to ask for, when the read at hand is of `wanted` blocks (>= 1) of an object of
 * `total`, and no more than `limit` (>= 1) may be ahead. Call it until there is none, with
 * ahead_window_asked between. */
struct block_run ahead_window_next(
    const struct ahead_window *window, uint64_t wanted, uint64_t total, uint64_t limit);

/* The run was asked for. */
void ahead_window_asked(struct ahead_window *window, struct block_run run);

#endif
