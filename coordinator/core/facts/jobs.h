/* SPDX-License-Identifier: Apache-2.0
 * The places of jobs in memory. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_JOBS_H
#define CADRE_COORDINATOR_CORE_FACTS_JOBS_H

#include "coordinator/core/state/state.h"

/* Whether a job of so many tasks can be held; else `text` says why not. */
bool job_fits(const struct core *core, uint32_t tasks, char sentence[LIMIT_TEXT_BYTES]);
/* A queued job; there is room for it. */
struct job *job_create(struct core *core, struct job_id id, const struct core_job_spec *spec);
/* It has ended; what is left of its places is given up. */
void job_forget(struct core *core, struct job *job);

#endif
