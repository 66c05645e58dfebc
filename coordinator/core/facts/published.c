/* SPDX-License-Identifier: Apache-2.0
 * The newest position that members may have received as published. A checkpoint that is found
 * damaged does not lower it: members that received it are past their cadre_save and wait for those
 * that did not, so these receive the same. What a job goes on from is job->checkpoint. */
#include "coordinator/core/facts/verified.h"

#include "coordinator/core/state/actions.h"

void published_raise(struct job *job, uint64_t position)
{
    CADRE_ASSERT(position != POSITION_NONE);
    if (job->published == POSITION_NONE || position > job->published) {
        job->published = position;
    }
}

void published_cut(struct job *job)
{
    if (job->published != POSITION_NONE && job->published > job->resume) {
        job->published = POSITION_NONE;
    }
    if (job->has_checkpoint) {
        published_raise(job, job->checkpoint.position);
    }
    CADRE_ASSERT(!job->has_checkpoint || job->published >= job->checkpoint.position);
}

void published_note(struct core *core, struct job *job)
{
    if (job->published == POSITION_NONE || job->generation.number == 0) {
        return; /* no member received one */
    }
    struct core_record *record = record_add(core, job, CORE_RECORD_PUBLISHED, true);
    record->published =
        (struct core_position){.number = job->generation.number, .position = job->published};
}

/* The lost one was sent in this generation, or is on the timeline that it goes on from. */
void published_restore(struct job *job, const struct core_restore_job *restore)
{
    CADRE_ASSERT(job->published == POSITION_NONE);
    if (job->has_checkpoint) {
        published_raise(job, job->checkpoint.position);
    }
    const struct core_position *lost = &restore->published;
    if (lost->number > 0 &&
        (lost->number == restore->generation.number || lost->position <= restore->resume)) {
        published_raise(job, lost->position);
    }
    if (restore->generation.number == 1 && restore->resume > 0) {
        published_raise(job, restore->resume); /* another job's, which the job went on from */
    }
}
