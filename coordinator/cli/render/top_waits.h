/* SPDX-License-Identifier: Apache-2.0
 * For which tasks the steps of jobs waited, as `cadre top` saw it over the last minute. Pure. */
#ifndef CADRE_CLI_RENDER_TOP_WAITS_H
#define CADRE_CLI_RENDER_TOP_WAITS_H

#include "cadre/client.h"

#define TOP_WAITS_MAX    32 /* tasks; the one that was seen longest ago makes room */
#define TOP_WAITS_SLICES 60 /* of a second each */
#define TOP_WORKER_BYTES 64 /* of a worker's name that is shown */

/* What was seen of one task. */
struct top_wait {
    uint64_t job; /* 0: free */
    uint32_t task;
    char worker[TOP_WORKER_BYTES];
    uint64_t now_us;                      /* so long it is waited for now; 0: it is not */
    uint64_t seen_us;                     /* last */
    uint32_t waited_ms[TOP_WAITS_SLICES]; /* by second of the minute */
};

/* Begins as {0}. */
struct top_waits {
    uint64_t began_us; /* the first frame; 0: there was none */
    uint64_t at_us;    /* the newest */
    struct top_wait tasks[TOP_WAITS_MAX];
};

/* Notes for whom jobs wait at `now_us` of a monotonic clock. */
void top_waits_note(struct top_waits *waits, const cadre_job_list *jobs, uint64_t now_us);

/* Of the last minute, or since the first frame, the share in which steps waited for this task: 0 to
 * 1. Negative: there was only one frame. */
double top_waits_share(const struct top_waits *waits, const struct top_wait *wait);

#endif
