/* SPDX-License-Identifier: Apache-2.0
 * Machines and daemons that stand still for a while (pause.c). */
#ifndef CADRE_SIM_PAUSE_H
#define CADRE_SIM_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

struct sim;

/* It stands still. */
struct pause {
    bool on;
    bool suspended; /* with its machine, and its clock */
    uint32_t number;
    uint64_t since_us;
    uint64_t until_us;
};

void pause_begins(struct sim *sim, uint32_t which);
void pause_ends(struct sim *sim, uint32_t agent, uint32_t number);
/* Whom it happens to stands still: it happens when that goes on. */
bool pause_delays(struct sim *sim, const struct happening *happening);

#endif
