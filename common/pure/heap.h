/* SPDX-License-Identifier: Apache-2.0
 * Deadlines in a binary heap over memory that the caller owns. Items are small numbers; each has at
 * most one deadline, which can be moved or removed. Equal deadlines come in the order of the item
 * numbers, on every machine. */
#ifndef CADRE_PURE_HEAP_H
#define CADRE_PURE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/pure/assert.h"

#define HEAP_NONE UINT32_MAX

struct heap_entry {
    uint64_t due_us;
    uint32_t item;
};

struct heap {
    struct heap_entry *entries; /* items_max of them */
    uint32_t *positions;        /* by item: where its entry is, or HEAP_NONE */
    uint32_t items_max;
    uint32_t count;
};

static inline void heap_init(
    struct heap *heap, struct heap_entry *entries, uint32_t *positions, uint32_t items_max)
{
    *heap = (struct heap){.entries = entries, .positions = positions, .items_max = items_max};
    for (uint32_t i = 0; i < items_max; i++) {
        positions[i] = HEAP_NONE;
    }
}

static inline bool heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->item < b->item;
}

static inline void heap_put(struct heap *heap, uint32_t position, struct heap_entry entry)
{
    heap->entries[position] = entry;
    heap->positions[entry.item] = position;
}

static inline void heap_up(struct heap *heap, uint32_t position, struct heap_entry entry)
{
    while (position > 0) {
        uint32_t parent = (position - 1) / 2;
        if (!heap_before(&entry, &heap->entries[parent])) {
            break;
        }
        heap_put(heap, position, heap->entries[parent]);
        position = parent;
    }
    heap_put(heap, position, entry);
}

static inline void heap_down(struct heap *heap, uint32_t position, struct heap_entry entry)
{
    for (uint32_t child = 2 * position + 1; child < heap->count; child = 2 * position + 1) {
        if (child + 1 < heap->count &&
            heap_before(&heap->entries[child + 1], &heap->entries[child])) {
            child++;
        }
        if (!heap_before(&heap->entries[child], &entry)) {
            break;
        }
        heap_put(heap, position, heap->entries[child]);
        position = child;
    }
    heap_put(heap, position, entry);
}

/* Ignores an item that has no deadline. */
static inline void heap_remove(struct heap *heap, uint32_t item)
{
    CADRE_ASSERT(item < heap->items_max);
    uint32_t position = heap->positions[item];
    if (position == HEAP_NONE) {
        return;
    }
    heap->positions[item] = HEAP_NONE;
    heap->count--;
    if (position == heap->count) {
        return;
    }
    struct heap_entry moved = heap->entries[heap->count];
    if (position > 0 && heap_before(&moved, &heap->entries[(position - 1) / 2])) {
        heap_up(heap, position, moved);
    } else {
        heap_down(heap, position, moved);
    }
}

/* Gives the item this deadline, whether it had one or not. */
static inline void heap_set(struct heap *heap, uint32_t item, uint64_t due_us)
{
    heap_remove(heap, item);
    CADRE_ASSERT(heap->count < heap->items_max);
    heap->count++;
    heap_up(heap, heap->count - 1, (struct heap_entry){.due_us = due_us, .item = item});
}

/* The earliest one; false when there is none. */
static inline bool heap_top(const struct heap *heap, struct heap_entry *ret_entry)
{
    if (heap->count == 0) {
        return false;
    }
    *ret_entry = heap->entries[0];
    return true;
}

#endif
