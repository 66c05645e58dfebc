/* SPDX-License-Identifier: Apache-2.0
 * The list of a step's actions, and the short ones. */
#ifndef CADRE_COORDINATOR_CORE_STATE_ACTIONS_H
#define CADRE_COORDINATOR_CORE_STATE_ACTIONS_H

#include "coordinator/core/state/state.h"

/* A new action of the step, zeroed but for its type. */
struct core_action *action_add(struct core *core, enum core_action_type type);
/* A new record of the job. */
struct core_record *record_add(
    struct core *core, const struct job *job, enum core_record_type type, bool sync);
/* How many more fit the step. */
size_t actions_left(const struct core *core);
/* To a client that waits. */
void call_answer(struct core *core, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *sentence);
/* The stream is told why it is ended. */
void stream_refuse(struct core *core, struct link_id link, cadre_status code, const char *sentence);
/* The agent is told to end a task, or that it may forget it. */
void task_stop(struct core *core, uint32_t worker, struct task_ref task);
/* The task is to be ended on this stream as soon as there is room. The ring has room. */
void stray_add(struct core *core, struct link_id link, struct task_ref task);

#endif
