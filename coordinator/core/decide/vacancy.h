/* SPDX-License-Identifier: Apache-2.0
 * Empty slots of jobs that were placed before. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_VACANCY_H
#define CADRE_COORDINATOR_CORE_DECIDE_VACANCY_H

#include "coordinator/core/state/state.h"

/* Fills empty slots: those that jobs need to go on, or also those that make them larger. */
void vacancy_run(struct core *core, bool grow);
/* Nothing that is needed is free: what is held in vain is given back, a part at a time. */
void vacancy_concentrate(struct core *core);

#endif
