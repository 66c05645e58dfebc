/* SPDX-License-Identifier: Apache-2.0
 * The step barrier, and the halt before a step. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_BARRIER_H
#define CADRE_COORDINATOR_CORE_FACTS_BARRIER_H

#include "coordinator/core/state/state.h"

/* ---- barrier.c ---- */

/* A task group rose from `old`: when it was the last at the lowest value, that rises. */
void barrier_mark_raise(const struct core *core, const struct job *job, struct low_mark *mark,
    bool applied, uint64_t old);
/* Starts a generation: all are at `resume`. */
void barrier_open(struct core *core, struct job *job);
/* Whether so much can have been released, as a message of a task or agent implies. */
bool barrier_may_rise(const struct job *job, uint64_t released);
/* After a start of the coordinator: raises the watermark and sends it to all (protocol, rule 5). */
void barrier_raise(struct core *core, struct job *job, uint64_t released);
/* Whether a member waits for a step that another has finished without: then the job fails. */
bool barrier_check_finished(struct core *core, struct job *job);
/* Notes that a member's program takes at least so many steps. */
void barrier_wants(struct core *core, struct job *job, uint32_t slot, uint64_t wanted);

/* ---- halt.c ---- */

/* The first position at which a halt can be set now (protocol, rule 3): the watermark; but before
 * its first save a plain program is inside the step at `resume`, though it has not asked for it. */
uint64_t halt_first(const struct job *job);
/* Removes the pending halt. */
void halt_drop(struct job *job);
/* Sets a halt for a step of the stream, at the watermark or, where no task can have begun the step
 * there, one after it (protocol, rule 3). */
void halt_set(struct core *core, struct job *job, uint32_t stream, uint64_t position);
/* Whether the report is an orderly one of the pending halt (protocol, rule 31). */
bool halt_met(const struct job *job, const struct task_report *report);
/* Sets a halt at which all stop; the caller notes what is to be sent. */
void halt_stop(struct job *job, uint64_t position);

#endif
