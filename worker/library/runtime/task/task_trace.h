/* SPDX-License-Identifier: Apache-2.0
 * The trace of a task: from the coordinator's order until the last of its steps is done or its time
 * is over, whether the coordinator is still there or not. One task of a process is traced. */
#ifndef CADRE_RUNTIME_TASK_TRACE_H
#define CADRE_RUNTIME_TASK_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/trace.h"

struct task;

/* Zeroed: none was requested. */
struct task_trace {
    uint64_t id;
    uint64_t first;
    uint64_t end;
    uint64_t deadline_us;
    uint64_t clock;
    bool other_numbers; /* its steps are not numbered as the order has them */
    bool active;        /* not ended */
    bool passed;        /* nothing more is recorded */
    bool ticked_past;   /* that was so at the last tick */
    uint64_t sent;
    uint64_t lost;
    uint64_t lost_before; /* of traces before */
};

/* --- under the task's lock --- */

/* Begins, answers or drops. */
void task_trace_order(struct task *task, const struct trace_order *order);
/* The position may have changed. Only while a trace is active. */
void task_trace_follow(struct task *task);
/* Sends what is there, and ends it when it is over. */
void task_trace_tick(struct task *task);
/* The task ends: all that is there is sent. */
void task_trace_end(struct task *task);
/* The number of the step at hand. */
uint64_t task_trace_position(const struct task *task);

/* --- any thread --- */

/* The program's thread has left a step, and recorded it. */
void task_trace_step_ended(struct task *task);
/* A plain program has made a collective of all tasks: what follows is its next step. */
void task_trace_collective(struct task *task);

#endif
