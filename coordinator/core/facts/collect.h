/* SPDX-License-Identifier: Apache-2.0
 * A generation at its end. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_COLLECT_H
#define CADRE_COORDINATOR_CORE_FACTS_COLLECT_H

#include "coordinator/core/state/state.h"

/* Why the generation is at its end, for all that are told so. */
void collect_reason(struct job *job, const char *sentence, bool guess);
/* A report does not count any more. */
void collect_asks_again(struct core *core, struct job *job);
/* The generation is at its end for want of a member: the rest freeze and report. `guess`: the
 * sentence says what was noticed, not what happened. */
void generation_breaks(struct core *core, struct job *job, const char *sentence, bool guess);
/* Something is lacking that has to be found in time. */
void collect_waits(struct core *core, struct job *job);
/* Deadlines. */
void collect_report_over(struct core *core, struct job *job);
void collect_wait_over(struct core *core, struct job *job);

#endif
