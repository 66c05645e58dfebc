/* SPDX-License-Identifier: Apache-2.0
 * What of a job is to be decided and sent, and its deadlines. */
#ifndef CADRE_COORDINATOR_CORE_STATE_DUE_H
#define CADRE_COORDINATOR_CORE_STATE_DUE_H

#include "coordinator/core/state/state.h"

/* ---- due.c ---- */

/* Adds bits of enum due; 0 only puts the job into core.touched. */
void job_due(struct core *core, struct job *job, uint32_t due);

/* ---- deadlines.c ---- */

/* Whether this deadline of the job is set. */
bool deadline_armed(const struct job *job, enum deadline deadline);
/* Sets it to `due_us`, whatever it was before; not of a job that waits for a newer ledger. */
void deadline_set(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us);
/* Clears it; one that is not set stays so. */
void deadline_clear(struct core *core, struct job *job, enum deadline deadline);
/* Clears all that are void when a generation, or the job, ends. */
void deadlines_clear(struct core *core, struct job *job);

#endif
