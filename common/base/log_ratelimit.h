/* SPDX-License-Identifier: Apache-2.0
 * How often the same event is logged when a program produces it again and again: the first few
 * times, then once a minute, with how many were left out. Pure: the time is an argument. */
#ifndef CADRE_BASE_LOG_RATELIMIT_H
#define CADRE_BASE_LOG_RATELIMIT_H

#include <stdbool.h>
#include <stdint.h>

#define LOG_RATELIMIT_BURST 8

/* All zero before the first. */
struct log_ratelimit {
    unsigned logged;
    uint64_t last_us;
    uint64_t suppressed;
};

/* False: the event is left out. True: it is logged, and *ret_suppressed were left out before it. */
bool log_ratelimit_allow(
    struct log_ratelimit *log_ratelimit, uint64_t now_us, uint64_t *ret_suppressed);

#endif
