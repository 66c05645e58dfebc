/* SPDX-License-Identifier: Apache-2.0
 * Whether this coordinator may still change files that several coordinators share, by the clock:
 * one that was replaced may not know it yet. What is written at a place of its own, or with the
 * lock of its file, needs no such look; what removes or replaces a file does, directly before. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_LEADING_H
#define CADRE_COORDINATOR_DAEMON_BASE_LEADING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/clock.h"

/* The look and the change that follows it are less than this apart, if the process is not stopped
 * in between. */
#define LEADING_MARGIN_US ((uint64_t)100 * CADRE_US_PER_MS)

/* The loop's thread sets it, threads of the pool read it. */
struct leading {
    _Atomic uint64_t until_us; /* by clock_boot_us(); 0: no other coordinator shares the files */
};

/* The leader's time to send was extended; 0: it ended, or has not begun. */
static inline void leading_set(struct leading *leading, uint64_t until_us)
{
    atomic_store(&leading->until_us, until_us > 0 ? until_us : 1);
}

static inline bool leading_is_shared(const struct leading *leading)
{
    return atomic_load(&leading->until_us) != 0;
}

static inline bool leading_holds(const struct leading *leading)
{
    uint64_t until_us = atomic_load(&leading->until_us);
    return until_us == 0 || clock_boot_us() + LEADING_MARGIN_US < until_us;
}

#endif
