/* SPDX-License-Identifier: Apache-2.0
 * Empty slots of jobs that were placed before. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_VACANCY_H
#define CADRE_COORDINATOR_CORE_DECIDE_VACANCY_H

#include "coordinator/core/state/state.h"

/* Fills empty slots: those that jobs need to go on; with `grow` all. */
void vacancy_run(struct core *core, bool grow);
/* When no needed slot is free: frees slots of one job that begins for another one. */
void vacancy_concentrate(struct core *core);

#endif
