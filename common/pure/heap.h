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
    uint32_t *places;           /* by item: where its entry is, or HEAP_NONE */
    uint32_t items_max;
    uint32_t count;
};

static inline void heap_init(
    struct heap *heap, struct heap_entry *entries, uint32_t *places, uint32_t items_max)
{
    *heap = (struct heap){.entries = entries, .places = places, .items_max = items_max};
    for (uint32_t i = 0; i < items_max; i++) {
        places[i] = HEAP_NONE;
    }
}

static inline bool heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->due_us != b->due_us ? a->due_us < b->due_us : a->item < b->item;
}

static inline void heap_put(struct heap *heap, uint32_t place, struct heap_entry entry)
{
    heap->entries[place] = entry;
    heap->places[entry.item] = place;
}

static inline void heap_up(struct heap *heap, uint32_t place, struct heap_entry entry)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / 2;
        if (!heap_before(&entry, &heap->entries[parent])) {
            break;
        }
        heap_put(heap, place, heap->entries[parent]);
        place = parent;
    }
    heap_put(heap, place, entry);
}

static inline void heap_down(struct heap *heap, uint32_t place, struct heap_entry entry)
{
    for (uint32_t child = 2 * place + 1; child < heap->count; child = 2 * place + 1) {
        if (child + 1 < heap->count &&
            heap_before(&heap->entries[child + 1], &heap->entries[child])) {
            child++;
        }
        if (!heap_before(&heap->entries[child], &entry)) {
            break;
        }
        heap_put(heap, place, heap->entries[child]);
        place = child;
    }
    heap_put(heap, place, entry);
}

/* Taking away what is not there is allowed. */
static inline void heap_remove(struct heap *heap, uint32_t item)
{
    CADRE_ASSERT(item < heap->items_max);
    uint32_t place = heap->places[item];
    if (place == HEAP_NONE) {
        return;
    }
    heap->places[item] = HEAP_NONE;
    heap->count--;
    if (place == heap->count) {
        return;
    }
    struct heap_entry moved = heap->entries[heap->count];
    if (place > 0 && heap_before(&moved, &heap->entries[(place - 1) / 2])) {
        heap_up(heap, place, moved);
    } else {
        heap_down(heap, place, moved);
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
