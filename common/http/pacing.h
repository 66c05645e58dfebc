/* SPDX-License-Identifier: Apache-2.0
 * Inside common/http only: how much of a core requests may take, whatever clients ask and however
 * many they are, and how often a browser is to ask. */
#ifndef CADRE_HTTP_PACING_H
#define CADRE_HTTP_PACING_H

#include <stddef.h>
#include <stdint.h>

/* Requests take one part in so many of a core, and this much more at once, as when a browser loads
 * the page. */
#define HTTP_CPU_SHARE    150
#define HTTP_CPU_BURST_US 20000

/* No request waits longer for its turn, whatever those before it took. */
#define HTTP_HELD_MAX_US ((uint64_t)1000 * 1000)

/* All zero at first. */
struct pacing {
    uint64_t seen_us; /* when it was charged last */
    int64_t spent_us; /* CPU that the share has not covered yet */
};

/* Requests took `used_us` of CPU until `now_us`: how long no more are looked for. */
uint64_t pacing_charge(struct pacing *pacing, uint64_t now_us, uint64_t used_us);

/* The time between two polls of a browser, in ms, with so many connections. */
uint32_t pacing_poll_ms(size_t connections);

#endif
