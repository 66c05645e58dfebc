/* SPDX-License-Identifier: Apache-2.0
 * Notices of preemption: SIGTERM, and the program's own. The signal's handler only sets a flag and
 * wakes a thread, which notifies the tasks; that thread also keeps the grace period. The thread and
 * the handler exist as long as a notice is watched. */
#ifndef CADRE_RUNTIME_NOTICE_H
#define CADRE_RUNTIME_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/task/task.h"

/* Of one strategy; its memory is the caller's. */
struct notice {
    struct task *task;
    uint64_t grace_us; /* save at once, and stop so much later; 0: stop at once */
    /* notice.c: */
    bool asked; /* raised by the program */
    bool sent;
    uint64_t stops_us; /* when the grace period is over; 0: not begun, or sent */
    struct notice *next;
};

/* SIGTERM is a notice from now on, unless `daemon_pid` (0: none) sent it: then it ends the process
 * as before. */
cadre_status notice_watch(struct notice *notice, int64_t daemon_pid, struct cadre_error *error);

/* Nothing when it is not watched. The last one puts the signal's former handler back. */
void notice_unwatch(struct notice *notice);

/* As if SIGTERM had come for this strategy alone, which is watched. Any thread. */
void notice_raise(struct notice *notice);

#endif
