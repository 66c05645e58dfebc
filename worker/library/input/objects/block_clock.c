/* SPDX-License-Identifier: Apache-2.0
 * See block_clock.h. */
#include "worker/library/input/objects/block_clock.h"

#include "common/pure/assert.h"

void block_clock_init(struct block_clock *clock, struct block_slot slots[], uint32_t count)
{
    CADRE_ASSERT(count < BLOCK_CLOCK_NONE);
    *clock = (struct block_clock){.slots = slots, .count = count, .unused = BLOCK_CLOCK_NONE};
}

static uint32_t free_slot(struct block_clock *clock)
{
    uint32_t slot = clock->unused;
    if (slot != BLOCK_CLOCK_NONE) {
        CADRE_ASSERT(clock->slots[slot].owner == NULL);
        clock->unused = (uint32_t)clock->slots[slot].number;
    } else if (clock->begun < clock->count) {
        slot = clock->begun++;
    }
    return slot;
}

/* Goes around twice at most: the first time spares what was used. */
static uint32_t evicted_slot(
    struct block_clock *clock, enum block_answer (*evict)(void *owner, uint64_t number))
{
    for (uint64_t asked = 0; asked < 2 * (uint64_t)clock->begun; asked++) {
        uint32_t slot = clock->hand;
        struct block_slot *row = &clock->slots[slot];
        clock->hand = slot + 1 < clock->begun ? slot + 1 : 0;
        if (row->owner != NULL && evict(row->owner, row->number) == BLOCK_EVICTED) {
            clock->used--;
            return slot;
        }
    }
    return BLOCK_CLOCK_NONE;
}

uint32_t block_clock_take(struct block_clock *clock, void *owner, uint64_t number,
    enum block_answer (*evict)(void *owner, uint64_t number))
{
    CADRE_ASSERT(owner != NULL);
    uint32_t slot = free_slot(clock);
    if (slot == BLOCK_CLOCK_NONE) {
        slot = evicted_slot(clock, evict);
    }
    if (slot != BLOCK_CLOCK_NONE) {
        clock->slots[slot] = (struct block_slot){.owner = owner, .number = number};
        clock->used++;
    }
    return slot;
}

void block_clock_give(struct block_clock *clock, uint32_t slot)
{
    CADRE_ASSERT(slot < clock->begun && clock->slots[slot].owner != NULL);
    clock->slots[slot] = (struct block_slot){.number = clock->unused};
    clock->unused = slot;
    clock->used--;
}
