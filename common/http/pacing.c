/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/pacing.h"

#include "common/http/server.h"

/* The polls of all browsers together are a hundred a second; a connection that is not used for 5 s
 * is closed, and a new one costs more than a poll. */
#define POLL_MS_PER_CONNECTION 10
#define POLL_MS_MAX            4000

uint64_t pacing_charge(struct pacing *pacing, uint64_t now_us, uint64_t used_us)
{
    const int64_t most_us = HTTP_CPU_BURST_US + (int64_t)(HTTP_HELD_MAX_US / HTTP_CPU_SHARE);
    int64_t covered_us = (int64_t)((now_us - pacing->seen_us) / HTTP_CPU_SHARE);
    int64_t spent_us = pacing->spent_us > covered_us ? pacing->spent_us - covered_us : 0;
    spent_us += (int64_t)used_us;
    pacing->spent_us = spent_us < most_us ? spent_us : most_us;
    pacing->seen_us += (uint64_t)covered_us * HTTP_CPU_SHARE;
    return pacing->spent_us > HTTP_CPU_BURST_US
               ? (uint64_t)(pacing->spent_us - HTTP_CPU_BURST_US) * HTTP_CPU_SHARE
               : 0;
}

uint32_t pacing_poll_ms(size_t connections)
{
    size_t ms = connections * POLL_MS_PER_CONNECTION;
    ms = ms > HTTP_POLL_MS ? ms : HTTP_POLL_MS;
    return (uint32_t)(ms < POLL_MS_MAX ? ms : POLL_MS_MAX);
}
