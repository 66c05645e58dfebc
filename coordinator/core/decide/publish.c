/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints. The chief's part is a whole one, because mirrored state is equal on all tasks. It is
 * published when every member has applied its position, so that the newest checkpoint is never
 * ahead of a survivor (protocol, rule 18), and, where states are compared, when its state was found
 * equal on all. A part that a plan finds unpublished is dropped (rule 15). */
#include "coordinator/core/decide/decide.h"

#include "coordinator/core/facts/divergence.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"

void publish_decide(struct core *core, struct job *job)
{
    bool done = job->phase == PHASE_DONE;
    bool runs = job->phase == PHASE_RUN && job->unarrived == 0;
    uint64_t applied = done ? job->finished_position : job->applied.least;
    if (job->phase == PHASE_RUN && job->finished > 0 && job->finished + 1 >= job->roster &&
        !job_task(core, job, core->members[job->first])->finished) {
        /* All but the chief, which waits for this, have finished. One that exited since holds
         * back the arrivals of its worker. */
        runs = true;
        applied = job->finished_position;
    }
    /* Rule 18. */
    if (!job->has_part || !(done || runs) || job->part.position > applied ||
        !(verified_covers(core, job, &job->part) || divergence_excluded(core, job))) {
        return;
    }
    job->has_part = false;
    job->has_checkpoint = true;
    job->checkpoint = job->part;
    verified_published(job);
    published_raise(job, job->checkpoint.position);
    if (job->checkpoint_at != POSITION_NONE && job->checkpoint_at <= job->checkpoint.position) {
        job->checkpoint_at = POSITION_NONE;
    }
    job_due(core, job, DUE_PUBLISH | DUE_RELEASE_RESEND | DUE_HALTED | DUE_CHANGED);
    CADRE_ASSERT(!job->has_part && job->has_checkpoint);
}
