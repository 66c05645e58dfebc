/* SPDX-License-Identifier: Apache-2.0
 * The monotonic clock of one machine: it drifts against virtual time, and stops while the machine
 * is suspended. */
#ifndef CADRE_SIM_CLOCK_H
#define CADRE_SIM_CLOCK_H

#include <stdint.h>

struct machine_clock {
    int64_t ppm;       /* so much faster it runs */
    uint64_t since_us; /* of virtual time, when it showed: */
    uint64_t shown_us;
};

/* What the clock shows at this virtual time. */
uint64_t clock_shows(const struct machine_clock *clock, uint64_t at_us);
/* The virtual time when it shows this; UINT64_MAX: never. */
uint64_t clock_when(const struct machine_clock *clock, uint64_t shown_us);
/* It stopped between the two. */
void clock_paused(struct machine_clock *clock, uint64_t from_us, uint64_t to_us);

#endif
