/* SPDX-License-Identifier: Apache-2.0
 * What turn/turn.c decides of one job, but for its generations. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_DECIDE_H
#define CADRE_COORDINATOR_CORE_DECIDE_DECIDE_H

#include "coordinator/core/state/state.h"

/* ---- control.c ---- */

/* Sets or lifts a halt, as the facts require. */
void control_decide(struct core *core, struct job *job);

/* ---- publish.c ---- */

/* Publishes the part if all members have applied its position and it is verified. */
void publish_decide(struct core *core, struct job *job);

/* ---- ps_job_decide.c ---- */

/* Arms or clears the waits of a ps job, and ends its tasks when the chief is done. */
void ps_job_decide(struct core *core, struct job *job);

/* ---- ending.c ---- */

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
