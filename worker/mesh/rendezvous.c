/* SPDX-License-Identifier: Apache-2.0
 * The meeting point of local replicas, on atomics and a futex. */
#include "worker/mesh/rendezvous.h"

#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/mesh/fault.h"

#define BROKEN        (1u << 31)
#define SPINS_A_CLOCK 64 /* the clock is read once in so many spins */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void wake(struct rendezvous *rendezvous)
{
    if (atomic_load(&rendezvous->sleepers) > 0) {
        syscall(SYS_futex, &rendezvous->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

void mesh_rendezvous_break(struct rendezvous *rendezvous)
{
    atomic_fetch_or(&rendezvous->word, BROKEN);
    wake(rendezvous);
}

/* One more meeting; the count wraps below the bit that says broken. */
static void release(struct rendezvous *rendezvous)
{
    unsigned seen = atomic_load(&rendezvous->word);
    unsigned next;
    do {
        next = (seen & BROKEN) | ((seen + 1) & ~BROKEN);
    } while (!atomic_compare_exchange_weak(&rendezvous->word, &seen, next));
    wake(rendezvous);
}

/* Sleeps until the word is not `seen` any more, or until the deadline. */
static void sleep_on(
    struct rendezvous *rendezvous, unsigned seen, uint64_t now_us, uint64_t deadline_us)
{
    struct timespec span;
    struct timespec *limit = NULL;
    if (deadline_us != CADRE_TIME_NEVER) {
        uint64_t left_us = deadline_us - now_us;
        span.tv_sec = (time_t)(left_us / CADRE_US_PER_S);
        span.tv_nsec = (long)(left_us % CADRE_US_PER_S) * 1000;
        limit = &span;
    }
    atomic_fetch_add(&rendezvous->sleepers, 1);
    syscall(SYS_futex, &rendezvous->word, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0);
    atomic_fetch_sub(&rendezvous->sleepers, 1);
}

/* The deadline is over: raises the fault unless all have come and only the leader's work takes so
 * long. */
static void blame(struct host_mesh *host, uint32_t local)
{
    uint64_t due = atomic_load(&host->slots[local].entered);
    const struct call *call = host->slots[local].call;
    uint64_t waited_us = call->timeout_us > 0 ? call->timeout_us : host->timeout_us;
    for (uint32_t i = 0; i < host->local_count; i++) {
        if (atomic_load(&host->slots[i].entered) < due) {
            mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
                "replica %" PRIu32 " (local replica %" PRIu32 " of the task of rank %" PRIu32
                ") did not come to collective %" PRIu64 " (%s) within %" PRIu64 " ms",
                host->first_replica + i, i, host->rank, due, mesh_kind_name(call->shape.kind),
                waited_us / CADRE_US_PER_MS);
            return;
        }
    }
}

static cadre_status wait_for_leader(
    struct host_mesh *host, uint32_t local, unsigned seen, uint64_t deadline_us)
{
    struct rendezvous *rendezvous = &host->rendezvous;
    uint64_t spin_end_us = host->spin_us > 0 ? clock_monotonic_us() + host->spin_us : 0;
    for (unsigned spins = 1; spin_end_us > 0; spins++) {
        if (atomic_load_explicit(&rendezvous->word, memory_order_acquire) != seen) {
            break;
        }
        relax();
        if (spins % SPINS_A_CLOCK == 0 && clock_monotonic_us() >= spin_end_us) {
            break;
        }
    }
    while (atomic_load(&rendezvous->word) == seen) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= deadline_us) {
            blame(host, local);
            deadline_us = CADRE_TIME_NEVER;
        } else {
            sleep_on(rendezvous, seen, now_us, deadline_us);
        }
    }
    /* A meeting that took place counts, also when the mesh broke right after it. */
    return ((atomic_load(&rendezvous->word) ^ seen) & ~BROKEN) != 0 ? CADRE_OK : CADRE_ABORTED;
}

cadre_status mesh_rendezvous_meet(
    struct host_mesh *host, uint32_t local, uint64_t deadline_us, rendezvous_work *work)
{
    struct rendezvous *rendezvous = &host->rendezvous;
    unsigned seen = atomic_load(&rendezvous->word);
    if ((seen & BROKEN) != 0) {
        return CADRE_ABORTED;
    }
    if (atomic_fetch_add(&rendezvous->arrived, 1) + 1 < host->local_count) {
        return wait_for_leader(host, local, seen, deadline_us);
    }
    atomic_store(&rendezvous->arrived, 0);
    cadre_status status = work != NULL ? work(host) : CADRE_OK;
    if (status == CADRE_OK) {
        release(rendezvous);
    }
    return status;
}

bool mesh_touch_begin(struct host_mesh *host)
{
    atomic_fetch_add(&host->rendezvous.touching, 1);
    if (mesh_fault_raised(host)) {
        atomic_fetch_sub(&host->rendezvous.touching, 1);
        return false;
    }
    return true;
}

void mesh_touch_end(struct host_mesh *host)
{
    atomic_fetch_sub(&host->rendezvous.touching, 1);
}

void mesh_touch_settle(struct host_mesh *host)
{
    while (atomic_load(&host->rendezvous.touching) > 0) {
        sched_yield();
    }
}
