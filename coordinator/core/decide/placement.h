/* SPDX-License-Identifier: Apache-2.0
 * The queue, empty slots, and which workers they are filled on. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PLACEMENT_H
#define CADRE_COORDINATOR_CORE_DECIDE_PLACEMENT_H

#include "coordinator/core/state/state.h"

/* ---- placement.c ---- */

/* Fills empty slots, then places jobs from the queue, while both are possible. */
void placement_run(struct core *core);

/* ---- vacancy.c ---- */

/* Fills empty slots: those that jobs need to go on; with `grow` all. */
void vacancy_run(struct core *core, bool grow);
/* When no needed slot is free: frees slots of one job that begins for another one. */
void vacancy_concentrate(struct core *core);

/* ---- spread.c ---- */

/* Places so many empty slots, for which slots are free; `placed` may be NULL. */
void placement_spread(struct core *core, struct job *job, uint32_t tasks,
    void (*placed)(struct core *core, struct job *job, uint32_t slot));
/* Places at most `count` servers on their last workers, if these have a free slot; returns how
 * many. */
uint32_t placement_return_servers(struct core *core, struct job *job, uint32_t count,
    void (*placed)(struct core *core, struct job *job, uint32_t slot));

#endif
