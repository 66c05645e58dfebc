/* SPDX-License-Identifier: Apache-2.0
 * Failures that a job survives. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_RESTARTS_H
#define CADRE_COORDINATOR_CORE_FACTS_RESTARTS_H

#include "coordinator/core/state/state.h"
/* How a job fails because of the end of a task. */
struct death {
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
};

/* All applied a step: the next restart is at once. */
void restarts_step_applied(struct core *core, struct job *job);
/* DEADLINE_BACKOFF: its tasks may be placed again. */
void restarts_waited(struct core *core, struct job *job);
/* Counts a failure; false: no restart was left, and the job has failed with it. */
bool restarts_count(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *sentence);

#endif
