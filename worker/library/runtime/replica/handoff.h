/* SPDX-License-Identifier: Apache-2.0
 * A number whose change threads wait for: first by polling it, then asleep.
 *
 * Polling is 20 times quicker than being woken where the other thread runs at the same time, and a
 * waste where it waits for this very CPU. So a waiter polls for as long as that has paid lately:
 * the time halves when it was in vain, and is whole again when it was not. Now and then it is tried
 * again, because two that wait for each other asleep would else never find out that polling pays.
 * If the number was changed last on this very CPU, its next change needs this CPU: then the waiter
 * sleeps at once. A change costs a system call only if a thread is asleep. */
#ifndef CADRE_RUNTIME_HANDOFF_H
#define CADRE_RUNTIME_HANDOFF_H

#include <stdatomic.h>
#include <stdint.h>

struct handoff {
    _Alignas(64) atomic_uint value; /* on a cache line of its own */
    atomic_uint asleep;
    atomic_int changed_on; /* the CPU of its last change */
};

/* How long one waiter polls; its own. */
struct handoff_spin_budget {
    uint32_t most; /* looks, when it pays; 0: never */
    uint32_t now;
    uint32_t misses; /* in a row */
};

/* For a thread of `threads` that wait for each other: 0 when there are fewer usable CPUs. */
struct handoff_spin_budget handoff_spin_budget(uint32_t threads);

/* Adds one, and wakes the waiters. What was written before is visible to them. Returns the former
 * value. */
uint32_t handoff_increment(struct handoff *handoff);

/* Returns the value once it is not `seen`. */
uint32_t handoff_await_change(
    struct handoff *handoff, uint32_t seen, struct handoff_spin_budget *spin_budget);

/* Counts down a number that is above 0; only the last count wakes the waiter. */
void handoff_decrement(struct handoff *handoff);
/* Returns when the number is 0. */
void handoff_await_zero(struct handoff *handoff, struct handoff_spin_budget *spin_budget);

#endif
