/* SPDX-License-Identifier: Apache-2.0
 * What the engine reads of a stall, besides core.h. */
#ifndef CADRE_COORDINATOR_CORE_STALL_H
#define CADRE_COORDINATOR_CORE_STALL_H

#include "coordinator/core/core.h"

/* A step that is shown as slow: it has not ended for slow_us and slow_factor times the median. */
struct core_stall {
    uint64_t position;  /* of the step */
    uint64_t waited_us; /* since the last one was applied by all */
    uint32_t slot;      /* the task that is waited for; UINT32_MAX: not known */
};
/* False: the job is not live, or no step of it is slow. A change of it is a JOB_CHANGED. */
bool core_job_stall(const struct core *core, struct job_id job, struct core_stall *ret_stall);

#endif
