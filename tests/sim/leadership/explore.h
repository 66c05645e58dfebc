/* SPDX-License-Identifier: Apache-2.0
 * All interleavings of a few coordinators, not a sample of them. */
#ifndef CADRE_SIM_LEADERSHIP_EXPLORE_H
#define CADRE_SIM_LEADERSHIP_EXPLORE_H

#include <stdint.h>

/* "level" 0: what the tests run; 1, 2: larger. Prints each space and its
 * size; 1 if an invariant is broken. */
int explore_run(uint64_t level);

#endif
