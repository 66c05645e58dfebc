/* SPDX-License-Identifier: Apache-2.0
 * Reports of frozen members. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_REPORTS_H
#define CADRE_COORDINATOR_CORE_EVENTS_REPORTS_H

#include "coordinator/core/state/state.h"

/* A task froze and reports its position and the reason. */
void report_handle(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);

#endif
