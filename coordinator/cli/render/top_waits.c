/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/top_waits.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"

#define MINUTE_US (TOP_WAITS_SLICES * CADRE_US_PER_S)

static uint32_t *slice_of(struct top_wait *wait, uint64_t at_us)
{
    return &wait->waited_ms[at_us / CADRE_US_PER_S % TOP_WAITS_SLICES];
}

/* The seconds that passed since the last frame begin empty: they were those of a minute ago. */
static void forget_passed(struct top_waits *waits, uint64_t now_us)
{
    uint64_t first = waits->at_us / CADRE_US_PER_S + 1;
    uint64_t end = now_us / CADRE_US_PER_S + 1;
    first = end > first + TOP_WAITS_SLICES ? end - TOP_WAITS_SLICES : first;
    for (size_t i = 0; i < TOP_WAITS_MAX; i++) {
        for (uint64_t second = first; second < end; second++) {
            waits->tasks[i].waited_ms[second % TOP_WAITS_SLICES] = 0;
        }
        waits->tasks[i].now_us = 0;
    }
}

static struct top_wait *find_wait(struct top_waits *waits, uint64_t job, const cadre_job_wait *of)
{
    struct top_wait *oldest = &waits->tasks[0];
    for (size_t i = 0; i < TOP_WAITS_MAX; i++) {
        struct top_wait *wait = &waits->tasks[i];
        if (wait->job == job && wait->task == of->task) {
            return wait;
        }
        oldest = wait->seen_us < oldest->seen_us ? wait : oldest;
    }
    *oldest = (struct top_wait){.job = job, .task = of->task};
    return oldest;
}

/* The wait began before this frame, but not before the last one, where it was counted. */
static void count_wait(struct top_wait *wait, uint64_t waited_us, uint64_t now_us)
{
    while (waited_us > 0) {
        uint64_t in_second_us = now_us % CADRE_US_PER_S + 1;
        uint64_t part_us = waited_us < in_second_us ? waited_us : in_second_us;
        *slice_of(wait, now_us) += (uint32_t)(part_us / CADRE_US_PER_MS);
        waited_us -= part_us;
        if (now_us < part_us) {
            return;
        }
        now_us -= part_us;
    }
}

void top_waits_note(struct top_waits *waits, const cadre_job_list *jobs, uint64_t now_us)
{
    bool first = waits->began_us == 0;
    uint64_t since_us = first ? 0 : now_us - waits->at_us;
    since_us = since_us < MINUTE_US ? since_us : MINUTE_US - CADRE_US_PER_S;
    waits->began_us = first ? now_us : waits->began_us;
    forget_passed(waits, now_us);
    waits->at_us = now_us;
    for (size_t i = 0; i < jobs->count; i++) {
        const cadre_job_wait *of = &jobs->jobs[i].wait;
        if (of->waited_us > 0) {
            struct top_wait *wait = find_wait(waits, jobs->jobs[i].id, of);
            wait->now_us = of->waited_us;
            wait->seen_us = now_us;
            snprintf(wait->worker, sizeof wait->worker, "%s", of->worker);
            count_wait(wait, of->waited_us < since_us ? of->waited_us : since_us, now_us);
        }
    }
}

double top_waits_share(const struct top_waits *waits, const struct top_wait *wait)
{
    uint64_t watched_us = waits->at_us - waits->began_us;
    watched_us = watched_us < MINUTE_US ? watched_us : MINUTE_US;
    if (watched_us == 0) {
        return -1;
    }
    uint64_t waited_ms = 0;
    for (size_t i = 0; i < TOP_WAITS_SLICES; i++) {
        waited_ms += wait->waited_ms[i];
    }
    double share = (double)(waited_ms * CADRE_US_PER_MS) / (double)watched_us;
    return share < 1 ? share : 1;
}
