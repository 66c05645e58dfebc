/* SPDX-License-Identifier: Apache-2.0
 * All deadlines in one heap: the lease of each worker, and the next of each job. */
#include "coordinator/core/state/due.h"

#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static void job_arm(struct core *core, const struct job *job)
{
    uint32_t item = core->options.limits.workers_max + job_index(core, job);
    uint64_t next_us = UINT64_MAX;
    CADRE_ASSERT(job->id.n != 0);
    for (uint32_t i = 0; i < DEADLINES; i++) {
        next_us = job->deadlines[i] < next_us ? job->deadlines[i] : next_us;
    }
    if (next_us == UINT64_MAX) {
        heap_remove(&core->deadlines, item);
    } else {
        heap_set(&core->deadlines, item, next_us);
    }
    CADRE_ASSERT((core->deadlines.positions[item] == HEAP_NONE) == (next_us == UINT64_MAX));
}

bool deadline_armed(const struct job *job, enum deadline deadline)
{
    CADRE_ASSERT(deadline < DEADLINES);
    return job->deadlines[deadline] != UINT64_MAX;
}

void deadline_set(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us)
{
    CADRE_ASSERT(deadline < DEADLINES);
    CADRE_ASSERT(due_us != UINT64_MAX);
    if (job->behind && job->outcome == 0) {
        return; /* facts/behind.c: none of it runs */
    }
    job->deadlines[deadline] = due_us;
    job_arm(core, job);
    CADRE_ASSERT(core->deadlines.count > 0);
}

void deadline_clear(struct core *core, struct job *job, enum deadline deadline)
{
    if (deadline_armed(job, deadline)) {
        job->deadlines[deadline] = UINT64_MAX;
        job_arm(core, job);
    }
    CADRE_ASSERT(!deadline_armed(job, deadline));
}

void deadlines_clear(struct core *core, struct job *job)
{
    bool stops = job->outcome == 0 && preempt_stops(job); /* also when the generation ends */
    for (uint32_t i = 0; i < DEADLINES; i++) {
        bool lasts = (i == DEADLINE_PREEMPT && stops) ||
                     ((i == DEADLINE_LIMIT || i == DEADLINE_MEMBERS || i == DEADLINE_BACKOFF) &&
                         job->outcome == 0);
        if (!lasts) {
            job->deadlines[i] = UINT64_MAX;
        }
    }
    job_arm(core, job);
    CADRE_ASSERT(job->outcome == 0 || !deadline_armed(job, DEADLINE_LIMIT));
}
