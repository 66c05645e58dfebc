/* SPDX-License-Identifier: Apache-2.0
 * Owns the blocks that an unpacked message lies in, and their budget. Called by the unpacking
 * functions of this folder as protobuf-c's allocator, and by the daemons, which reset it for each
 * message. */
#include "common/wire/arena.h"

#include <stdlib.h>

/* Every take is a multiple of it, preceded by one header of it that keeps the requested size. The
 * types stored here hold pointers, 64-bit integers and doubles. */
#define ALIGNMENT 8

/* The first block serves all control messages; a block of up to KEPT_BYTES_MAX (one blob chunk) is
 * kept by a reset. */
#define FIRST_BLOCK_BYTES ((size_t)16 * 1024)
#define KEPT_BYTES_MAX    ((size_t)2 * 1024 * 1024)

struct block {
    struct block *older;
    size_t capacity;
    size_t used;
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

struct wire_arena {
    ProtobufCAllocator allocator;
    struct block *newest;
    size_t budget;
    size_t taken;
    bool spent;
};

static void *arena_allocate(void *arena, size_t size)
{
    return wire_arena_alloc(arena, size);
}

/* protobuf-c frees its tables of a parse in the order it made them, and all of a message that it
 * gives up. Only the newest take can be given back; the others stay until the reset. */
static void arena_release(void *context, void *taken)
{
    struct wire_arena *arena = context;
    if (taken == NULL) {
        return;
    }
    struct block *block = arena->newest;
    size_t span = (wire_arena_size_of(taken) + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint8_t *start = (uint8_t *)taken - ALIGNMENT;
    if (span <= block->used && start == block->bytes + block->used - span) {
        block->used -= span;
        arena->taken -= span;
    }
}

static struct block *block_new(size_t capacity, struct block *older)
{
    struct block *block = malloc(sizeof *block + capacity);
    if (block != NULL) {
        *block = (struct block){.older = older, .capacity = capacity};
    }
    return block;
}

struct wire_arena *wire_arena_new(size_t budget_bytes)
{
    struct wire_arena *arena = malloc(sizeof *arena);
    if (arena == NULL) {
        return NULL;
    }
    *arena = (struct wire_arena){
        .allocator = {.alloc = arena_allocate, .free = arena_release, .allocator_data = arena},
        .newest = block_new(FIRST_BLOCK_BYTES, NULL),
        .budget = budget_bytes,
    };
    if (arena->newest == NULL) {
        free(arena);
        return NULL;
    }
    return arena;
}

void wire_arena_reset(struct wire_arena *arena)
{
    /* Blocks grow, so the newest is the largest: keep it unless one huge message made it. */
    while (arena->newest->older != NULL) {
        struct block *keep = arena->newest;
        struct block *drop = keep->older;
        if (keep->capacity > KEPT_BYTES_MAX) {
            arena->newest = drop;
            free(keep);
        } else {
            keep->older = drop->older;
            free(drop);
        }
    }
    arena->newest->used = 0;
    arena->taken = 0;
    arena->spent = false;
}

void wire_arena_free(struct wire_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    while (arena->newest != NULL) {
        struct block *block = arena->newest;
        arena->newest = block->older;
        free(block);
    }
    free(arena);
}

void *wire_arena_alloc(struct wire_arena *arena, size_t size)
{
    if (size > arena->budget - arena->taken) {
        arena->spent = true;
        return NULL;
    }
    /* No overflow: size is at most the budget, and a budget is far below SIZE_MAX. */
    size_t span = (size + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (span > arena->budget - arena->taken) {
        arena->spent = true;
        return NULL;
    }
    struct block *block = arena->newest;
    if (span > block->capacity - block->used) {
        size_t grown = block->capacity < KEPT_BYTES_MAX / 2 ? 2 * block->capacity : KEPT_BYTES_MAX;
        block = block_new(span > grown ? span : grown, block);
        if (block == NULL) {
            arena->spent = true;
            return NULL;
        }
        arena->newest = block;
    }
    uint8_t *start = block->bytes + block->used;
    block->used += span;
    arena->taken += span;
    *(size_t *)(void *)start = size;
    return start + ALIGNMENT;
}

size_t wire_arena_size_of(const void *taken)
{
    return *(const size_t *)(const void *)((const uint8_t *)taken - ALIGNMENT);
}

bool wire_arena_is_spent(const struct wire_arena *arena)
{
    return arena->spent;
}

size_t wire_arena_budget(const struct wire_arena *arena)
{
    return arena->budget;
}

ProtobufCAllocator *wire_arena_allocator(struct wire_arena *arena)
{
    return &arena->allocator;
}

_Static_assert(sizeof(size_t) <= ALIGNMENT, "the header of a take holds its size");
_Static_assert(LIMIT_BLOB_CHUNK_BYTES + 8192 <= KEPT_BYTES_MAX, "a blob chunk's block is kept");
