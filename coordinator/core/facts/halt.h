/* SPDX-License-Identifier: Apache-2.0
 * The pending halt, if any. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_HALT_H
#define CADRE_COORDINATOR_CORE_FACTS_HALT_H

#include "coordinator/core/state/state.h"

/* Removes the pending halt. */
void halt_drop(struct job *job);
/* Sets a halt at the watermark, for a step of the stream (protocol, rule 3). */
void halt_set(struct core *core, struct job *job, uint32_t stream);
/* Whether the report is an orderly one of the pending halt (protocol, rule 31). */
bool halt_met(const struct job *job, const struct task_report *report);
/* Sets a halt at which all stop; the caller notes what is to be sent. */
void halt_stop(struct job *job, uint64_t position);

#endif
