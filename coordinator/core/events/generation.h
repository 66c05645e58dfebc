/* SPDX-License-Identifier: Apache-2.0
 * The messages of tasks: hellos, joins, reports, parts of checkpoints. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_GENERATION_H
#define CADRE_COORDINATOR_CORE_EVENTS_GENERATION_H

#include "coordinator/core/state/state.h"

/* ---- generation.c ---- */

/* Arms the deadline for the hellos that are missing, once all tasks run and one has joined. */
void generation_await(struct core *core, struct job *job);
/* That deadline passed: the job fails and names a missing task. */
void generation_form_timeout(struct core *core, struct job *job);
/* The hello of a task that is not dismissed. */
void generation_hello(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello);
/* A joiner waits at a step of the stream. */
void generation_join(
    struct core *core, struct job *job, uint32_t slot, const struct task_join *join);

/* ---- reports.c ---- */

/* A task froze and reports its position and the reason. */
void report_handle(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);

/* ---- part.c ---- */

/* The chief reports a durable checkpoint. */
void part_handle(struct core *core, struct job *job, uint32_t slot, const struct task_part *part);

#endif
