/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/replica/handoff.h"

#include "common/pure/assert.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOKS_MOST  (UINT32_C(1) << 11) /* some 100 us: what waking an idle virtual CPU costs */
#define TRIED_EVERY 16                  /* misses: looks for long again */

struct handoff_spin_budget handoff_spin_budget(uint32_t threads)
{
    cpu_set_t usable;
    CPU_ZERO(&usable);
    bool known = sched_getaffinity(0, sizeof usable, &usable) == 0;
    bool room = known && threads <= (uint32_t)CPU_COUNT(&usable);
    uint32_t most = room ? LOOKS_MOST : 0;
    return (struct handoff_spin_budget){.most = most, .now = most};
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* A waiter counts itself before it looks a last time, and a changer changes before it looks whether
 * one sleeps: one of the two sees the other. */
static void handoff_wake(struct handoff *handoff)
{
    if (atomic_load(&handoff->asleep) > 0) {
        syscall(SYS_futex, &handoff->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

uint32_t handoff_increment(struct handoff *handoff)
{
    atomic_store_explicit(&handoff->changed_on, sched_getcpu(), memory_order_relaxed);
    uint32_t before = atomic_fetch_add(&handoff->value, 1);
    handoff_wake(handoff);
    return before;
}

void handoff_decrement(struct handoff *handoff)
{
    atomic_store_explicit(&handoff->changed_on, sched_getcpu(), memory_order_relaxed);
    uint32_t before = atomic_fetch_sub(&handoff->value, 1);
    CADRE_ASSERT(before > 0);
    if (before == 1) {
        handoff_wake(handoff);
    }
}

/* What is waited for. */
struct goal {
    bool zero;
    uint32_t seen;
};

static bool handoff_reached(struct goal goal, uint32_t value)
{
    return goal.zero ? value == 0 : value != goal.seen;
}

static uint32_t sleep_until(struct handoff *handoff, struct goal goal)
{
    uint32_t value;
    atomic_fetch_add(&handoff->asleep, 1);
    while (!handoff_reached(goal, value = atomic_load(&handoff->value))) {
        syscall(SYS_futex, &handoff->value, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
    }
    atomic_fetch_sub(&handoff->asleep, 1);
    return value;
}

static uint32_t handoff_await(
    struct handoff *handoff, struct goal goal, struct handoff_spin_budget *spin_budget)
{
    int other = atomic_load_explicit(&handoff->changed_on, memory_order_relaxed);
    CADRE_ASSERT(spin_budget->now <= spin_budget->most);
    uint32_t value = atomic_load_explicit(&handoff->value, memory_order_acquire);
    uint32_t looks =
        !handoff_reached(goal, value) && other == sched_getcpu() ? 0 : spin_budget->now;
    for (uint32_t look = 0; !handoff_reached(goal, value) && look < looks; look++) {
        pause_briefly();
        value = atomic_load_explicit(&handoff->value, memory_order_acquire);
    }
    if (handoff_reached(goal, value)) {
        spin_budget->now = spin_budget->most;
        spin_budget->misses = 0;
        return value;
    }
    bool again = ++spin_budget->misses % TRIED_EVERY == 0;
    spin_budget->now = again ? spin_budget->most : spin_budget->now / 2;
    return sleep_until(handoff, goal);
}

uint32_t handoff_await_change(
    struct handoff *handoff, uint32_t seen, struct handoff_spin_budget *spin_budget)
{
    return handoff_await(handoff, (struct goal){.seen = seen}, spin_budget);
}

void handoff_await_zero(struct handoff *handoff, struct handoff_spin_budget *spin_budget)
{
    handoff_await(handoff, (struct goal){.zero = true}, spin_budget);
}
