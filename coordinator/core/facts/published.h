/* SPDX-License-Identifier: Apache-2.0
 * What tasks are told is published. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PUBLISHED_H
#define CADRE_COORDINATOR_CORE_FACTS_PUBLISHED_H

#include "coordinator/core/state/state.h"

void published_raise(struct job *job, uint64_t position);
/* A generation begins: what lies behind its first position is of a line that is cut off. */
void published_cut(struct job *job);
/* A checkpoint is lost that members may have been told of: what they were is recorded. */
void published_note(struct core *core, struct job *job);
/* After a start of the coordinator: what members may have been told by the one before. */
void published_restore(struct job *job, const struct core_restore_job *restore);

#endif
