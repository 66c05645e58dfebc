/* SPDX-License-Identifier: Apache-2.0
 * The memory of jobs. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_JOBS_H
#define CADRE_COORDINATOR_CORE_FACTS_JOBS_H

#include "coordinator/core/state/state.h"

/* Whether a job of so many tasks fits; else `sentence` is the reason. */
bool job_fits(const struct core *core, uint32_t tasks, char sentence[LIMIT_TEXT_BYTES]);
/* Creates a queued job; job_fits() was true. */
struct job *job_create(struct core *core, struct job_id id, const struct core_job_spec *spec);
/* Removes an ended job and frees its slots. */
void job_forget(struct core *core, struct job *job);

#endif
