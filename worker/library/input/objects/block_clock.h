/* SPDX-License-Identifier: Apache-2.0
 * Which blocks are held in a bounded memory: a clock (second chance), which comes close to least
 * recently used, while finding a block in memory changes no list. Of each block it knows whose it
 * is and its number; whether it is in use the owner says. No I/O, no clock of time, no locks. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_BLOCK_CLOCK_H
#define CADRE_WORKER_INPUT_OBJECTS_BLOCK_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#define BLOCK_CLOCK_NONE UINT32_MAX

struct block_slot {
    void *owner;     /* NULL: free */
    uint64_t number; /* of a free slot: the next free one */
};

/* Zeroed: without slots. The owner makes room for `slots`. */
struct block_clock {
    struct block_slot *slots;
    uint32_t count;  /* of slots */
    uint32_t used;   /* slots with an owner */
    uint32_t begun;  /* slots that had one at any time: the first ones */
    uint32_t unused; /* first in the list of free ones among these, or BLOCK_CLOCK_NONE */
    uint32_t hand;
};

/* What the owner says of a block that is to make room. */
enum block_answer {
    BLOCK_BUSY,    /* it cannot now */
    BLOCK_SPARED,  /* it was used since it was last asked about */
    BLOCK_EVICTED, /* it is gone */
};

void block_clock_init(struct block_clock *clock, struct block_slot slots[], uint32_t count);

/* A slot for block `number` of `owner`, a free one or that of a block for which `evict` says that
 * it is gone; BLOCK_CLOCK_NONE when each one is busy. */
uint32_t block_clock_take(struct block_clock *clock, void *owner, uint64_t number,
    enum block_answer (*evict)(void *owner, uint64_t number));

/* A slot that was taken is free. */
void block_clock_give(struct block_clock *clock, uint32_t slot);

#endif
