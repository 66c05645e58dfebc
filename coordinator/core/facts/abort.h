/* SPDX-License-Identifier: Apache-2.0
 * A generation at its end. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_ABORT_H
#define CADRE_COORDINATOR_CORE_FACTS_ABORT_H

#include "coordinator/core/state/state.h"

/* Why the generation is at its end, for all that are told so. */
void abort_set_reason(struct job *job, const char *sentence, bool guess);
/* A report does not count any more. */
void abort_ask_again(struct core *core, struct job *job);
/* The generation is at its end for want of a member: the rest freeze and report. `guess`: the
 * sentence says what was noticed, not what happened. */
void generation_abort(struct core *core, struct job *job, const char *sentence, bool guess);
/* Something is lacking that has to be found in time. */
void abort_arm_wait(struct core *core, struct job *job);
/* Deadlines. */
void abort_report_timeout(struct core *core, struct job *job);
void abort_wait_timeout(struct core *core, struct job *job);

#endif
