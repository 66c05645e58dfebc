/* SPDX-License-Identifier: Apache-2.0
 * Machines and daemons that are paused (pause.c). */
#ifndef CADRE_SIM_PAUSE_H
#define CADRE_SIM_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

struct sim;

/* A pause. */
struct pause {
    bool on;
    bool suspended; /* with its machine, and its clock */
    uint32_t number;
    uint64_t since_us;
    uint64_t until_us;
};

/* Pauses the coordinator, a daemon or a machine, drawn by `which`. */
void pause_begins(struct sim *sim, uint32_t which);
/* Pauses one of several coordinators. */
void pause_replica(struct sim *sim, uint32_t replica, uint64_t length_us);
/* The pause of this number is over. */
void pause_ends(struct sim *sim, uint32_t agent, uint32_t number);
/* True: its machine or daemon is paused; the event waits until that continues. */
bool pause_delays(struct sim *sim, const struct happening *happening);

#endif
