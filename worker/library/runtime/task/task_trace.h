/* SPDX-License-Identifier: Apache-2.0
 * The trace of a task with a rank (trace_sender.h). */
#ifndef CADRE_RUNTIME_TASK_TRACE_H
#define CADRE_RUNTIME_TASK_TRACE_H

#include "worker/library/runtime/task/trace_sender.h"

struct task;

/* --- under the task's lock --- */

/* Begins, answers or drops. */
void task_trace_order(struct task *task, const struct trace_order *order);
/* The position may have changed. Only while a trace is active. */
void task_trace_follow(struct task *task);
/* Sends what is there, and ends it when it is over. */
void task_trace_tick(struct task *task);
/* The task ends: all that is there is sent. */
void task_trace_end(struct task *task);

/* --- any thread --- */

/* The program's thread has left a step, and recorded it. */
void task_trace_step_ended(struct task *task);
/* A plain program has made a collective of all tasks: what follows is its next step. */
void task_trace_collective(struct task *task);

#endif
