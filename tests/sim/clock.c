/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#define MILLION INT64_C(1000000)
#define FAR_US  UINT64_C(1000000000000) /* no run is so long */

uint64_t clock_shows(const struct machine_clock *clock, uint64_t at_us)
{
    int64_t passed_us = (int64_t)(at_us - clock->since_us);
    return clock->shown_us + (uint64_t)(passed_us + passed_us * clock->ppm / MILLION);
}

uint64_t clock_when(const struct machine_clock *clock, uint64_t shown_us)
{
    if (shown_us <= clock->shown_us) {
        return clock->since_us;
    }
    if (clock->ppm == 0 || shown_us > FAR_US) {
        return shown_us > FAR_US ? UINT64_MAX : clock->since_us + (shown_us - clock->shown_us);
    }
    int64_t left_us = (int64_t)(shown_us - clock->shown_us);
    uint64_t at_us = clock->since_us + (uint64_t)(left_us * MILLION / (MILLION + clock->ppm));
    while (clock_shows(clock, at_us) < shown_us) {
        at_us++;
    }
    return at_us;
}

void clock_paused(struct machine_clock *clock, uint64_t from_us, uint64_t to_us)
{
    clock->shown_us = clock_shows(clock, from_us);
    clock->since_us = to_us;
}
