/* SPDX-License-Identifier: Apache-2.0
 * The halt that is pending, if any. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_HALT_H
#define CADRE_COORDINATOR_CORE_FACTS_HALT_H

#include "coordinator/core/state/state.h"

/* Nothing is pending. */
void halt_drop(struct job *job);
/* A halt at the watermark, for a step of the stream. */
void halt_set(struct core *core, struct job *job, uint32_t stream);
/* Whether this report is the orderly one that the pending halt asks for. */
bool halt_met(const struct job *job, const struct task_report *report);
/* One at which all stop, and the job leaves; what is said of it is noted by the caller. */
void halt_stop(struct job *job, uint64_t position);

#endif
