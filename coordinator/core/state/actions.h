/* SPDX-License-Identifier: Apache-2.0
 * The list of a step's actions: records, answers, stops, messages to tasks. */
#ifndef CADRE_COORDINATOR_CORE_STATE_ACTIONS_H
#define CADRE_COORDINATOR_CORE_STATE_ACTIONS_H

#include "coordinator/core/state/state.h"

/* ---- actions.c ---- */

/* Appends an action to the step's list, zeroed but for its type. */
struct core_action *action_add(struct core *core, enum core_action_type type);
/* Appends a record of the job; `sync`: to be durable before messages are sent. */
struct core_record *record_add(
    struct core *core, const struct job *job, enum core_record_type type, bool sync);
/* How many more actions fit the step. */
size_t actions_left(const struct core *core);
/* Answers a client's call; call 0: does nothing. */
void call_answer(struct core *core, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *sentence);
/* Refuses an agent's stream, with the reason; the engine then ends it. */
void stream_refuse(struct core *core, struct link_id link, cadre_status code, const char *sentence);
/* Sends the agent STOP_TASK: to end the task, or that it may remove it. */
void task_stop(struct core *core, uint32_t worker, struct task_ref task);
/* The task is to be ended on this stream as soon as the list has room. The ring has room. */
void stray_add(struct core *core, struct link_id link, struct task_ref task);

/* ---- notify.c ---- */

/* To all members, or to all tasks that the message is for. */
struct core_action *notify_job(struct core *core, const struct job *job, enum core_message what);
/* To one task, which is connected. */
void notify_task(struct core *core, const struct job *job, uint32_t slot, enum core_message what);
/* RESET, SUPERSEDED, REFUSED or WARM to one task, which is connected. */
void notify_task_status(struct core *core, const struct job *job, uint32_t slot,
    enum task_down_type type, cadre_status code, const char *sentence);
/* Answers a repeated hello of a member with the job's current state (protocol, rule 19). */
void notify_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan);

#endif
