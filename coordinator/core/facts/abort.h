/* SPDX-License-Identifier: Apache-2.0
 * A generation at its end, and where the next one begins. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_ABORT_H
#define CADRE_COORDINATOR_CORE_FACTS_ABORT_H

#include "coordinator/core/state/state.h"

/* ---- abort.c ---- */

/* Why the generation ends: the text of abort. */
void abort_set_reason(struct job *job, const char *sentence, bool guess);
/* A report does not count any more: the member is to report again. */
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

/* ---- resume_point.c ---- */

/* What follows from the reported positions. */
struct resume_point {
    uint64_t position; /* the highest clean one */
    uint32_t source;   /* slot of the lowest rank that has it; NONE */
    bool aligned;      /* all that have it have begun that step, of this stream: */
    uint32_t stream;
    uint32_t draining; /* members on draining workers */
    uint32_t staying;  /* the source among those that do not drain */
};

/* Reads the reports of all members (protocol, rules 6, 8 and 9). */
struct resume_point resume_point_find(const struct core *core, const struct job *job);

#endif
