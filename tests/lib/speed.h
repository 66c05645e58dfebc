/* SPDX-License-Identifier: Apache-2.0
 * How much slower a program runs here and now than on an idle machine, and limits that follow it.
 * What speed.py is for scripts. */
#ifndef CADRE_TESTS_LIB_SPEED_H
#define CADRE_TESTS_LIB_SPEED_H

#include <stdbool.h>
#include <stdint.h>

/* 1 on an idle machine, 8 on one with eight times the load that it can carry; 32 at most. By what
 * waits for its CPUs now, or by a loop before main(), whichever says more. */
double speed_slowness(void);

/* A limit that is to hold on an idle machine, for this one as it is now. */
uint64_t speed_scaled_us(uint64_t us);

/* So much time of an idle machine: on a busy one it lasts longer, as its load says meanwhile. */
struct patience {
    double left_us, slowness;
    uint64_t last_us, sampled_us;
};

struct patience patience_begin(uint64_t us);
bool patience_is_over(struct patience *patience);

#endif
