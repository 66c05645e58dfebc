/* SPDX-License-Identifier: Apache-2.0
 * Memory for very many small things of one owner, who gives all of it back at once in the end. What
 * is given before is used again first, while the processor still has it at hand. Not for several
 * threads. */
#ifndef CADRE_WORKER_INPUT_SLOT_MEMORY_H
#define CADRE_WORKER_INPUT_SLOT_MEMORY_H

#include <stddef.h>

/* Up to so many bytes it comes packed from slabs; more from where tensors have it. */
#define SLOT_MEMORY_PACKED_BYTES ((size_t)2048)
#define SLOT_MEMORY_STEP         ((size_t)16)

struct slot_slab;
struct slot_free;

/* Zeroed: empty. */
struct slot_memory {
    struct slot_slab *slabs; /* the newest is the one that is cut up */
    size_t used;             /* of the newest */
    struct slot_free *free[SLOT_MEMORY_PACKED_BYTES / SLOT_MEMORY_STEP + 1];
};

/* Aligned to 16 bytes, not set. NULL: there is none. */
void *slot_memory_get(struct slot_memory *memory, size_t bytes);

/* Takes back what was got for `bytes`. */
void slot_memory_give(struct slot_memory *memory, void *given, size_t bytes);

/* Frees the slabs. What is larger must have been given back. */
void slot_memory_clear(struct slot_memory *memory);

#endif
