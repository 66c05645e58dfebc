/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/history.h"

static const char *const names[] = {[HISTORY_SUBMITTED] = "submitted",
    [HISTORY_STARTED] = "started",
    [HISTORY_TASK_STARTED] = "task_started",
    [HISTORY_TASK_ENDED] = "task_ended",
    [HISTORY_TASK_LOST] = "task_lost",
    [HISTORY_GENERATION] = "generation",
    [HISTORY_CHECKPOINT] = "checkpoint",
    [HISTORY_CHECKPOINT_LOST] = "checkpoint_lost",
    [HISTORY_STALLED] = "stalled",
    [HISTORY_WENT_ON] = "went_on",
    [HISTORY_HALTED] = "halted",
    [HISTORY_DRAINED] = "drained",
    [HISTORY_PREEMPTED] = "preempted",
    [HISTORY_DIVERGED] = "diverged",
    [HISTORY_ENDING] = "ending",
    [HISTORY_ENDED] = "ended",
    [HISTORY_COORDINATOR_RESTARTED] = "coordinator_restarted"};

const char *history_kind_name(enum history_kind kind)
{
    bool known = kind >= HISTORY_SUBMITTED && (size_t)kind < sizeof names / sizeof names[0];
    return known ? names[kind] : "unknown";
}
