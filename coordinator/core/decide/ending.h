/* SPDX-License-Identifier: Apache-2.0
 * How jobs end. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_ENDING_H
#define CADRE_COORDINATOR_CORE_DECIDE_ENDING_H

#include "coordinator/core/state/state.h"

/* The job has an outcome: its members freeze and all its tasks are stopped. */
void ending_stop(struct core *core, struct job *job);
/* All members called cadre_finish at one position: sends bye, and dismisses joiners. */
void ending_finish(struct core *core, struct job *job);
/* When no task is left: sets the outcome if there is none, and waits for logs and outputs. */
void ending_decide(struct core *core, struct job *job);
/* Whether all its tasks have exited and are collected, or the wait for that is over. */
bool ending_complete(const struct job *job);
/* Appends its last records and removes it. */
void ending_settle(struct core *core, struct job *job);
/* Ends a queued job whose time limit is over. */
void ending_time_limit(struct core *core, struct job *job);

#endif
