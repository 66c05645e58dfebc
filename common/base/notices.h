/* SPDX-License-Identifier: Apache-2.0
 * How often the same thing is told to people when a program does it again and again: the first few
 * times, then once a minute, with how much was left out. Pure: the time is an argument. */
#ifndef CADRE_BASE_NOTICES_H
#define CADRE_BASE_NOTICES_H

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
