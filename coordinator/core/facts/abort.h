/* SPDX-License-Identifier: Apache-2.0
 * A generation at its end. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_ABORT_H
#define CADRE_COORDINATOR_CORE_FACTS_ABORT_H

#include "coordinator/core/state/state.h"

/* Why the generation ends: the text of abort. */
void abort_set_reason(struct job *job, const char *sentence, bool guess);
/* A report does not count any more: asks again. */
void abort_ask_again(struct core *core, struct job *job);
/* The generation lacks a member: the others freeze and report. `guess`: the sentence says what was
 * noticed, not what happened. */
void generation_abort(struct core *core, struct job *job, const char *sentence, bool guess);
/* Starts to wait for missing tasks, unless it does. */
void abort_arm_wait(struct core *core, struct job *job);
/* DEADLINE_REPORT (protocol, rule 21). */
void abort_report_timeout(struct core *core, struct job *job);
/* DEADLINE_WAIT: the job fails. */
void abort_wait_timeout(struct core *core, struct job *job);

#endif
