/* SPDX-License-Identifier: Apache-2.0
 * The memory of jobs, and placed jobs with slots to fill. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_JOBS_H
#define CADRE_COORDINATOR_CORE_FACTS_JOBS_H

#include "coordinator/core/state/state.h"

/* ---- jobs.c ---- */

/* Whether a job of so many tasks fits; else `sentence` is the reason. */
bool job_fits(const struct core *core, uint32_t tasks, char sentence[LIMIT_TEXT_BYTES]);
/* Creates a queued job; job_fits() was true. */
struct job *job_create(struct core *core, struct job_id id, const struct core_job_spec *spec);
/* Removes an ended job and frees its slots. */
void job_forget(struct core *core, struct job *job);

/* ---- underfilled.c ---- */

/* How many slots of the job can be filled now. */
uint32_t underfilled_count(const struct job *job);
/* How many more tasks it needs to go on. */
uint32_t underfilled_lack(const struct core *core, const struct job *job);
/* Puts the job into core.underfilled, or removes it, as its slots require. */
void underfilled_note(struct core *core, struct job *job);
/* Slots that stayed empty, because a joiner found nothing to do, may be filled again. */
void underfilled_reopen(struct core *core, struct job *job);

#endif
