/* SPDX-License-Identifier: Apache-2.0
 * Checks all actions of a core and fails the test when one breaks the protocol: records before
 * messages, one answer per call, rising watermarks, no message of a job after its end, no success
 * with a failed task. */
#ifndef CADRE_TESTS_COORDINATOR_CORE_WATCH_H
#define CADRE_TESTS_COORDINATOR_CORE_WATCH_H

#include "coordinator/core/core.h"
#include "tests/lib/test.h"

#define WATCH_JOBS  1024 /* ids below it can be followed */
#define WATCH_CALLS 4096
#define WATCH_SLOTS 12

struct watched_job {
    bool submitted;
    bool started;
    bool planned;
    bool done;
    bool ending;  /* recorded */
    bool ended;   /* recorded */
    bool gone;    /* JOB_ENDED was sent */
    bool failing; /* a task died once too often, or it was cancelled: it cannot succeed */
    uint32_t max_restarts;
    uint64_t halt_at;
    bool cancelled;
    uint64_t stopped[WATCH_SLOTS]; /* the task of the slot that was stopped last */
    struct generation generation;
    uint64_t watermark;
    uint64_t relay_up; /* as the newest release */
};

struct watch {
    struct watched_job jobs[WATCH_JOBS];
    uint8_t asked[WATCH_CALLS];
    uint64_t live;
    uint64_t ended;
    uint64_t succeeded;
    uint64_t actions;
};

/* Before the step: what the event obliges the core to. */
void watch_event(struct watch *watch, const struct core *core, const struct core_event *event);
/* After it: its actions. */
void watch_actions(struct watch *watch, const struct core *core, const struct core_event *event,
    const struct core_actions *actions);

#endif
