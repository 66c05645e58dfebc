/* SPDX-License-Identifier: Apache-2.0
 * What of a job is still to be decided and sent is noted here, and nowhere else. */
#include "coordinator/core/state/due.h"

#include "coordinator/core/state/find.h"

void job_due(struct core *core, struct job *job, uint32_t due)
{
    CADRE_ASSERT(core->out != NULL);
    CADRE_ASSERT(due < (uint32_t)DUE_VERIFIED << 1);
    CADRE_ASSERT(job->id.n != 0);
    job->due |= due;
    if (job->touched_step != core->steps) {
        job->touched_step = core->steps;
        if (core->recent_step != core->steps) {
            core->recent_step = core->steps;
            core->recent_count = 0;
        }
        if (core->recent_count < RECENT_MAX) {
            core->recent[core->recent_count] = job_index(core, job);
        }
        core->recent_count++;
    }
    if (!job->touched) {
        job->touched = true;
        list_append(&core->touched, job_index(core, job));
    }
    if ((due & DUE_OUTCOMES) != 0 && !job->undecided) {
        job->undecided = true;
        list_append(&core->undecided, job_index(core, job));
    }
    CADRE_ASSERT(job->touched_step == core->steps);
}
