/* SPDX-License-Identifier: Apache-2.0
 * The clocks, in microseconds: the one unit of time everywhere. Cores never read them; shells pass
 * the time in. */
#ifndef CADRE_BASE_CLOCK_H
#define CADRE_BASE_CLOCK_H

#include <stdint.h>

#define CADRE_US_PER_MS  UINT64_C(1000)
#define CADRE_US_PER_S   UINT64_C(1000000)
#define CADRE_TIME_NEVER UINT64_MAX

/* CLOCK_MONOTONIC: for deadlines and durations. */
uint64_t clock_monotonic_us(void);

/* The same in nanoseconds, for what is measured. */
uint64_t clock_monotonic_ns(void);

/* Which clock that is: the same number in all processes of this host until it boots again, whatever
 * their containers, as long as these share its clock. */
uint64_t clock_monotonic_id(void);

/* CLOCK_BOOTTIME: for what ends at a time that may be hours away. It goes on while the host is
 * suspended, and is not set as the wall clock is. */
uint64_t clock_boot_us(void);

/* CPU that the calling thread has used. */
uint64_t clock_thread_cpu_us(void);

/* CLOCK_REALTIME since 1970: for people and records only, never for a decision. */
uint64_t clock_wall_us(void);

#endif
