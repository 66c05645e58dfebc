/* SPDX-License-Identifier: Apache-2.0
 * Memory for very many small things of one owner, who gives all of it back at once in the end. What
 * is given before is used again first, while the processor still has it at hand. Not for several
 * threads. */
#ifndef CADRE_WORKER_INPUT_SHUFFLE_SLAB_ALLOCATOR_H
#define CADRE_WORKER_INPUT_SHUFFLE_SLAB_ALLOCATOR_H

#include <stddef.h>

/* Up to so many bytes it comes packed from slabs; more from where tensors have it. */
#define SLAB_ALLOC_BYTES_MAX  ((size_t)2048)
#define SLAB_SIZE_CLASS_BYTES ((size_t)16)

struct allocator_slab;

struct slab_free_block {
    struct slab_free_block *next;
};

/* Zeroed: empty. */
struct slab_allocator {
    struct allocator_slab *slabs; /* the newest is the one that is cut up */
    size_t used;                  /* of the newest */
    struct slab_free_block *free[SLAB_ALLOC_BYTES_MAX / SLAB_SIZE_CLASS_BYTES + 1];
};

/* What slab_alloc and slab_free do where there is no free piece, or it is large. */
void *slab_alloc_new(struct slab_allocator *memory, size_t bytes);
void slab_free_large(void *given, size_t bytes);

/* The list for pieces of at most SLAB_ALLOC_BYTES_MAX. */
static inline struct slab_free_block **slab_free_list(struct slab_allocator *memory, size_t bytes)
{
    return &memory->free[bytes == 0 ? 1
                                    : (bytes + SLAB_SIZE_CLASS_BYTES - 1) / SLAB_SIZE_CLASS_BYTES];
}

/* Aligned to 16 bytes, not set. NULL: there is none. */
static inline void *slab_alloc(struct slab_allocator *memory, size_t bytes)
{
    if (bytes <= SLAB_ALLOC_BYTES_MAX) {
        struct slab_free_block **list = slab_free_list(memory, bytes);
        struct slab_free_block *given = *list;
        if (given != NULL) {
            *list = given->next;
            return given;
        }
    }
    return slab_alloc_new(memory, bytes);
}

/* Takes back what was got for `bytes`. */
static inline void slab_free(struct slab_allocator *memory, void *given, size_t bytes)
{
    if (bytes > SLAB_ALLOC_BYTES_MAX) {
        slab_free_large(given, bytes);
        return;
    }
    struct slab_free_block **list = slab_free_list(memory, bytes);
    struct slab_free_block *piece = given;
    piece->next = *list;
    *list = piece;
}

/* Frees the slabs. What is larger must have been given back. */
void slab_allocator_clear(struct slab_allocator *memory);

#endif
