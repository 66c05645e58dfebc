/* SPDX-License-Identifier: Apache-2.0
 * checkpoint_read.c calls it for each block. */
#include "worker/library/runtime/state/checkpoint/reading.h"

#include "common/base/clock.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/task/task.h"

#define SILENT_US     (2 * CADRE_US_PER_S)
#define SHOW_EVERY_US (CADRE_US_PER_S / 5)

/* A block may be read twice, for two tensors that share it. */
static void reading_show(struct reading *reading, bool ends)
{
    bool all = ends || reading->done_bytes > reading->whole_bytes;
    const struct task_fetch fetch = {.kind = FETCH_READ,
        .done_bytes = all ? reading->whole_bytes : reading->done_bytes,
        .whole_bytes = reading->whole_bytes,
        .elapsed_us = reading->spent_us};
    if (!reading->by_hand) {
        const struct progress progress = {.stream = "", .left_s = -1, .fetch = fetch};
        task_progress(reading->task, &progress);
    } else if (show_redraws() || ends || reading->shown_us == 0) {
        show_reading(&fetch, ends);
    }
    reading->shown_us = clock_monotonic_us();
}

void reading_add(struct reading *reading, uint64_t bytes, uint64_t spent_us)
{
    reading->done_bytes += bytes;
    reading->spent_us += spent_us;
    if (reading->task != NULL && reading->spent_us >= SILENT_US &&
        clock_monotonic_us() - reading->shown_us >= SHOW_EVERY_US) {
        reading_show(reading, false);
    }
}

void reading_end(struct reading *reading)
{
    if (reading->shown_us != 0) {
        reading_show(reading, true);
    }
    *reading = (struct reading){0};
}
