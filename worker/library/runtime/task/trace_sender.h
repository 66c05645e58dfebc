/* SPDX-License-Identifier: Apache-2.0
 * The trace of a process: from the coordinator's order until the last of its steps is done or its
 * time is over, whether the coordinator is still there or not; and how its spans are sent. One task
 * of a process is traced. Its owner serializes the calls. */
#ifndef CADRE_RUNTIME_TRACE_SENDER_H
#define CADRE_RUNTIME_TRACE_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/model/trace.h"

struct session;

/* Zeroed: none was requested. */
struct trace_sender {
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

/* The task whose trace it is, at the time of a call. */
struct trace_owner {
    struct session *session;
    bool sends;        /* it is connected, and has not ended */
    bool own_numbers;  /* of a plain program, as in task_spans */
    uint64_t position; /* the number of the step at hand */
};

/* Begins, answers, ends sooner (an order with the same id and less time) or drops. */
void trace_sender_order(
    struct trace_sender *trace, const struct trace_owner *owner, const struct trace_order *order);
/* The position may have changed. */
void trace_sender_follow(struct trace_sender *trace, uint64_t position);
/* Sends what is there, and ends it when it is over. */
void trace_sender_tick(struct trace_sender *trace, const struct trace_owner *owner);
/* The task, or the last of the steps, has ended: all that is there is sent. */
void trace_sender_end(struct trace_sender *trace, const struct trace_owner *owner);

/* --- any thread --- */

/* Whether a trace is under way, so that the position counts. */
bool trace_sender_follows(void);
/* Whether its last step is behind, so that it is to be ended. */
bool trace_sender_passed(void);

#endif
