/* SPDX-License-Identifier: Apache-2.0
 * The clock of spans, and which clock that is. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "worker/library/trace/trace.h"

/* A test plays a host with another clock: nanoseconds that it is ahead. */
static uint64_t clock_shift_ns(void)
{
    static _Atomic int64_t shift_ns = -1;
    int64_t known_ns = atomic_load_explicit(&shift_ns, memory_order_relaxed);
    if (known_ns < 0) {
        const char *text = getenv("CADRE_TEST_CLOCK_AHEAD_NS");
        long long given_ns = text != NULL ? strtoll(text, NULL, 10) : 0;
        known_ns = given_ns > 0 ? given_ns : 0;
        atomic_store_explicit(&shift_ns, known_ns, memory_order_relaxed);
    }
    return (uint64_t)known_ns;
}

uint64_t trace_clock_ns(void)
{
    return clock_monotonic_ns() + clock_shift_ns();
}

uint64_t trace_clock_id(void)
{
    uint64_t shift_ns = clock_shift_ns();
    uint64_t id = clock_monotonic_id();
    return shift_ns == 0 ? id : prng_mix(id ^ shift_ns) | 1;
}
