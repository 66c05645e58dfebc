/* SPDX-License-Identifier: Apache-2.0
 * Inside of task_core: what its parts share. */
#ifndef CADRE_WORKER_TASK_INTERNAL_H
#define CADRE_WORKER_TASK_INTERNAL_H

#include "worker/core/task_core.h"

/* A plan beyond it is refused, so that position + window never wraps around. */
#define POSITION_MAX (UINT64_MAX / 2)

/* Nothing went wrong: it stands where it was meant to. */
static inline bool task_is_orderly(enum report_reason reason)
{
    return reason == REPORT_HALT || reason == REPORT_FINISHED;
}

/* It has told nothing of its generation: there was no step that it could begin. */
static inline bool task_is_silent(const struct task_core *core)
{
    return core->sent_applied == core->resume && core->arrived == core->resume &&
           core->wanted_sent == core->resume;
}

/* task_send.c */
struct task_action *task_append(struct task_actions *out, enum task_action_type type);
void task_copy_text(char *to, size_t size, const char *from); /* NULL is "" */
void task_send_hello(const struct task_core *core, struct task_actions *out);
void task_send_arrive(struct task_core *core, struct task_actions *out);
/* What the epochs that it left were fed, as it said it then. */
void task_send_consumed(const struct task_core *core, struct task_actions *out);
void task_send_part(const struct task_core *core, struct task_actions *out);
void task_send_preempt(const struct task_core *core, struct task_actions *out);
void task_send_join(const struct task_core *core, struct task_actions *out);
void task_send_stream(
    const struct task_core *core, const struct task_stream *stream, struct task_actions *out);
void task_send_stall(
    const struct task_core *core, const struct task_stall *stall, struct task_actions *out);
void task_send_report(struct task_core *core, struct task_actions *out);
/* Says how far it has come when that is worth a message, or at once when `asked`. Whether it did.
 */
bool task_arrive(struct task_core *core, bool asked, struct task_actions *out);

/* task_steps.c */
/* The program begins the step where it stands. */
void task_on_ready(
    struct task_core *core, const struct task_event *event, struct task_actions *out);
void task_on_stalled(struct task_core *core, uint64_t position, struct task_actions *out);
void task_on_apply(struct task_core *core, uint64_t position);
void task_on_applied(
    struct task_core *core, const struct task_event *event, struct task_actions *out);
void task_on_end(struct task_core *core, const struct cursor *ended, struct task_actions *out);
void task_on_flush(struct task_core *core, struct task_actions *out);
void task_on_tick(struct task_core *core, struct task_actions *out);

/* task_down.c */
void task_freeze(
    struct task_core *core, enum report_reason reason, const char *text, struct task_actions *out);
/* Halts or finishes when it stands where that is due. */
void task_settle(struct task_core *core, struct task_actions *out);
void task_on_down(struct task_core *core, const struct task_down *down, struct task_actions *out);

#endif
