/* SPDX-License-Identifier: Apache-2.0
 * Exhaustive short runs (exhaustive.c). */
#ifndef CADRE_SIM_EXHAUSTIVE_H
#define CADRE_SIM_EXHAUSTIVE_H

#include "sim.h"

struct exhaustive_bounds {
    uint32_t first; /* variants of the tiny job */
    uint32_t end;
    uint64_t every;  /* pairs begin at each so many events */
    uint64_t reach;  /* and their second fault is at most so many events behind; 0: no pairs */
    uint64_t stride; /* at each so many of them */
};

struct exhaustive_result {
    uint64_t runs;
    uint64_t events;
    uint32_t variant; /* that broke */
};

/* false: sim->broken, with the faults in sim->placed. */
bool exhaustive_run(
    struct sim *sim, const struct exhaustive_bounds *bounds, struct exhaustive_result *result);

/* Of the combinations of a joiner, two kills and a crash. */
struct combined_bounds {
    uint32_t variants;
    uint64_t stride; /* between two events of the grid */
};

/* As exhaustive_run. */
bool combined_run(
    struct sim *sim, const struct combined_bounds *bounds, struct exhaustive_result *result);

#endif
