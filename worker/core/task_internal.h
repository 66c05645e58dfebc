/* SPDX-License-Identifier: Apache-2.0
 * Internal to task_core: the functions that its files share. */
#ifndef CADRE_WORKER_TASK_INTERNAL_H
#define CADRE_WORKER_TASK_INTERNAL_H

#include "worker/core/task_core.h"

/* A plan beyond it is refused, so that position + window never wraps around. */
#define POSITION_MAX (UINT64_MAX / 2)

/* It froze at the end or at a halt, without a fault. */
static inline bool task_is_orderly(enum report_reason reason)
{
    return reason == REPORT_HALT || reason == REPORT_FINISHED;
}

/* It has reported nothing of its generation, because there was no step that it could begin. */
static inline bool task_is_silent(const struct task_core *core)
{
    return core->sent_applied == core->resume && core->arrived == core->resume &&
           core->wanted_sent == core->resume;
}

/* task_send.c. Without a connection each of them sends nothing. */
/* The rest of the action is zero. */
struct task_action *task_append(struct task_actions *out, enum task_action_type type);
void task_copy_text(char *to, size_t size, const char *from); /* Copies up to a whole UTF-8
                                                               * character that fits; NULL is "". */
/* Position, watermarks and freeze of now: the first message on a connection. */
void task_send_hello(const struct task_core *core, struct task_actions *out);
/* `up_to` and `applied`, with the run, consumption and verified position behind them. */
void task_send_arrive(struct task_core *core, struct task_actions *out);
/* Sends again the consumption of the epochs that it left, with the values of then. */
void task_send_consumed(struct task_core *core, struct task_actions *out);
/* The newest part, unless there is none or it is known to be published. */
void task_send_part(const struct task_core *core, struct task_actions *out);
/* The notice to leave or save, if there is one. */
void task_send_preempt(const struct task_core *core, struct task_actions *out);
/* The stream and epoch at which it can join. */
void task_send_join(const struct task_core *core, struct task_actions *out);
/* A dataset of the program. */
void task_send_stream(
    const struct task_core *core, const struct task_stream *stream, struct task_actions *out);
/* A wait, of this generation. */
void task_send_stall(
    const struct task_core *core, const struct task_stall *stall, struct task_actions *out);
/* Freezes are reported once: behind an arrival, if applied steps are not reported yet (rule 6). */
void task_send_report(struct task_core *core, struct task_actions *out);
/* Sends an arrival when it is worth a message, or when `asked` and there is something to claim.
 * Returns whether it did. */
bool task_arrive(struct task_core *core, bool asked, struct task_actions *out);

/* task_steps.c */
/* READY: the program begins the step at its position. */
void task_on_ready(
    struct task_core *core, const struct task_event *event, struct task_actions *out);
/* STALLED: widens the window where that helps, and reports the wait. */
void task_on_stalled(struct task_core *core, uint64_t position, struct task_actions *out);
/* APPLY. */
void task_on_apply(struct task_core *core, uint64_t position);
/* APPLIED. */
void task_on_applied(
    struct task_core *core, const struct task_event *event, struct task_actions *out);
/* END: the epoch's length is known. */
void task_on_end(struct task_core *core, const struct cursor *ended, struct task_actions *out);
/* FLUSH: reports the position now. */
void task_on_flush(struct task_core *core, struct task_actions *out);
/* TICK: reports the position of a program that takes no steps. */
void task_on_tick(struct task_core *core, struct task_actions *out);

/* task_down.c */
/* Enters FROZEN, closes the mesh if `reason` is not orderly, and reports. */
void task_freeze(
    struct task_core *core, enum report_reason reason, const char *text, struct task_actions *out);
/* Freezes if the program has finished, or is beyond a halt. */
void task_settle(struct task_core *core, struct task_actions *out);
/* A message from the coordinator. */
void task_on_down(struct task_core *core, const struct task_down *down, struct task_actions *out);

#endif
