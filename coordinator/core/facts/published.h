/* SPDX-License-Identifier: Apache-2.0
 * The position that members receive as published. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_PUBLISHED_H
#define CADRE_COORDINATOR_CORE_FACTS_PUBLISHED_H

#include "coordinator/core/state/state.h"

/* A checkpoint of this position is published. */
void published_raise(struct job *job, uint64_t position);
/* A generation begins: later positions are on a timeline that is cut off. */
void published_cut(struct job *job);
/* A checkpoint is lost that members may have received: records the position. */
void published_note(struct core *core, struct job *job);
/* After a start of the coordinator: what members may have received. */
void published_restore(struct job *job, const struct core_restore_job *restore);

#endif
