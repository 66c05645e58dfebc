/* SPDX-License-Identifier: Apache-2.0
 * A number that threads wait for to change: first by looking at it, then asleep.
 *
 * Looking is 20 times quicker than being woken where the other thread runs at the same time, and a
 * waste where it waits for this very CPU. So a waiter looks for as long as that has paid lately:
 * the time halves when it was in vain, and is whole again when it was not. Now and then it is tried
 * again: two that wait for each other asleep would else never find out that looking pays. Who
 * changed it last on this very CPU needs it to change it again: then the waiter sleeps at once.
 * Nobody is woken who is not asleep: a change costs a system call only then. */
#ifndef CADRE_RUNTIME_HANDOFF_H
#define CADRE_RUNTIME_HANDOFF_H

#include <stdatomic.h>
#include <stdint.h>

struct handoff {
    _Alignas(64) atomic_uint value; /* on a cache line of its own */
    atomic_uint asleep;
    atomic_int changed_on; /* the CPU of who changed it last */
};

/* One waiter's patience; its own. */
struct handoff_spin_budget {
    uint32_t most; /* looks, when it pays; 0: never */
    uint32_t now;
    uint32_t misses; /* in a row */
};

/* For a thread of a team of `threads` that wait for each other: none when there are fewer usable
 * CPUs. */
struct handoff_spin_budget handoff_spin_budget(uint32_t threads);

/* Adds one, and wakes who waits for a change. What was written before is seen by who has waited.
 * Returns what it was. */
uint32_t handoff_increment(struct handoff *handoff);

/* Returns the value once it is not `seen`. */
uint32_t handoff_await_change(
    struct handoff *handoff, uint32_t seen, struct handoff_spin_budget *spin_budget);

/* Counts down a number that is above 0; only who makes it 0 wakes who waits for that. */
void handoff_decrement(struct handoff *handoff);
void handoff_await_zero(struct handoff *handoff, struct handoff_spin_budget *spin_budget);

#endif
