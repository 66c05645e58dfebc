/* SPDX-License-Identifier: Apache-2.0
 * How a job ends, and the failures that it survives. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_OUTCOME_H
#define CADRE_COORDINATOR_CORE_FACTS_OUTCOME_H

#include "coordinator/core/state/state.h"

/* ---- outcome.c ---- */

/* Whether all members of an unbroken generation exited with status 0. */
bool outcome_all_exited(const struct job *job);
/* Whether all tasks exited before one joined: programs may run without a strategy. */
bool outcome_never_joined(const struct job *job);
/* Whether no task is left and none failed: the job has succeeded, decided or not. */
bool outcome_is_success(const struct job *job);
/* Sets how the job ends; it must be open. */
void outcome_set(struct core *core, struct job *job, enum job_state outcome, cadre_status code,
    int32_t exit_code, const char *sentence);
/* Fails the job and stops it; if it has an outcome already, nothing changes. */
void job_fail(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *text);
/* Its tasks are to be stopped. */
void job_stops(struct core *core, struct job *job);

/* ---- restarts.c ---- */

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
