/* SPDX-License-Identifier: Apache-2.0
 * How often a task may have an operator told of what it does: the first few times, then once a
 * minute, with how much was left out. Pure: the time is an argument. */
#ifndef CADRE_WORKER_AGENT_NOTICES_H
#define CADRE_WORKER_AGENT_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#define NOTICES_FIRST 8

/* All zero before the first. */
struct notices {
    unsigned told;
    uint64_t last_us;
    uint64_t left_out;
};

/* False: this one is left out. True: it is told, and with it that *ret_left_out were not. */
bool notices_take(struct notices *notices, uint64_t now_us, uint64_t *ret_left_out);

#endif
