/* SPDX-License-Identifier: Apache-2.0
 * What a job waits for, or why it ends, in a sentence for people. */
#ifndef CADRE_COORDINATOR_CORE_JOB_TEXT_H
#define CADRE_COORDINATOR_CORE_JOB_TEXT_H

#include "coordinator/core/state/state.h"

/* Writes what the job waits for, or why it ends; "" when it just runs. */
void job_text(const struct core *core, const struct job *job, char sentence[LIMIT_TEXT_BYTES]);

#endif
