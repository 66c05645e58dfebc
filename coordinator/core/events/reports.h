/* SPDX-License-Identifier: Apache-2.0
 * Where frozen members say that they stand, and why they froze. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_REPORTS_H
#define CADRE_COORDINATOR_CORE_EVENTS_REPORTS_H

#include "coordinator/core/state/state.h"

/* A member is frozen. */
void report_handle(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);

#endif
