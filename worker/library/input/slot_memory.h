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

struct slot_free {
    struct slot_free *next;
};

/* Zeroed: empty. */
struct slot_memory {
    struct slot_slab *slabs; /* the newest is the one that is cut up */
    size_t used;             /* of the newest */
    struct slot_free *free[SLOT_MEMORY_PACKED_BYTES / SLOT_MEMORY_STEP + 1];
};

/* What slot_memory_get and slot_memory_give do where there is no free piece, or it is large. */
void *slot_memory_get_new(struct slot_memory *memory, size_t bytes);
void slot_memory_give_large(void *given, size_t bytes);

/* The list for pieces of at most SLOT_MEMORY_PACKED_BYTES. */
static inline struct slot_free **slot_memory_list(struct slot_memory *memory, size_t bytes)
{
    return &memory->free[bytes == 0 ? 1 : (bytes + SLOT_MEMORY_STEP - 1) / SLOT_MEMORY_STEP];
}

/* Aligned to 16 bytes, not set. NULL: there is none. */
static inline void *slot_memory_get(struct slot_memory *memory, size_t bytes)
{
    if (bytes <= SLOT_MEMORY_PACKED_BYTES) {
        struct slot_free **list = slot_memory_list(memory, bytes);
        struct slot_free *given = *list;
        if (given != NULL) {
            *list = given->next;
            return given;
        }
    }
    return slot_memory_get_new(memory, bytes);
}

/* Takes back what was got for `bytes`. */
static inline void slot_memory_give(struct slot_memory *memory, void *given, size_t bytes)
{
    if (bytes > SLOT_MEMORY_PACKED_BYTES) {
        slot_memory_give_large(given, bytes);
        return;
    }
    struct slot_free **list = slot_memory_list(memory, bytes);
    struct slot_free *piece = given;
    piece->next = *list;
    *list = piece;
}

/* Frees the slabs. What is larger must have been given back. */
void slot_memory_clear(struct slot_memory *memory);

#endif
