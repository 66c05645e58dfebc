/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"

#include <time.h>

static uint64_t read_us(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * CADRE_US_PER_S + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * CADRE_US_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_boot_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

uint64_t clock_thread_cpu_us(void)
{
    return read_us(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}
