/* SPDX-License-Identifier: Apache-2.0
 * How long reads of a size took of late, and which of them are to be asked for a second time: those
 * that take longer than 99 of 100 did, and of all no more than one in HEDGE_ONE_IN, so that a slow
 * store is not asked twice for everything (Dean and Barroso 2013, "hedged requests"). Pure. */
#ifndef CADRE_STORAGE_TRANSPORT_LATENCY_H
#define CADRE_STORAGE_TRANSPORT_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LATENCY_SAMPLES  128 /* of a size: the last ones */
#define LATENCY_ENOUGH   64  /* fewer say nothing */
#define LATENCY_SIZES    13  /* by powers of two: up to 4 KiB, 8 KiB, ... 8 MiB, and larger */
#define HEDGE_ONE_IN     20
#define HEDGE_SAVED_MOST 10 /* second requests that may be saved up, for a store that stalls */

/* Zeroed: none seen. */
struct latency {
    struct latency_size {
        uint64_t us[LATENCY_SAMPLES]; /* a ring */
        uint32_t count, next;
    } sizes[LATENCY_SIZES];
    uint32_t saved; /* what hedges may use, in 1 / HEDGE_ONE_IN of a request */
};

/* A read is asked for. */
void latency_asked(struct latency *latency);
/* It took so long. */
void latency_took(struct latency *latency, size_t bytes, uint64_t us);
/* After so long a read of this size is to be asked for again; UINT64_MAX: never, as too few were
 * seen. */
uint64_t latency_hedge_us(const struct latency *latency, size_t bytes);
/* Whether one more second request may be sent, which then counts as sent. */
bool latency_hedge(struct latency *latency);

#endif
