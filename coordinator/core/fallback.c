/* SPDX-License-Identifier: Apache-2.0
 * A published checkpoint turns out to be damaged: the one before it is what counts. Whoever was
 * started with the damaged one is started again. */
#include "coordinator/core/parts.h"

static void fall_back(
    struct core *core, struct job *job, const struct core_checkpoint_damaged *damaged)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_add(&text, "the checkpoint of step ");
    text_add_u64(&text, damaged->position);
    text_add(&text, " is damaged (");
    text_add(&text, damaged->why);
    text_add(&text, ")");
    bool first = job->generation.number == 0;
    if (damaged->is_origin && (first || job->begins_anew)) {
        text_add(&text, ", and it is the one that the job goes on from: name an older one with "
                        "--restore JOB@STEP");
        job_fail(core, job, CADRE_DATA_LOSS, 1, sentence);
    } else if (job->begins_anew) {
        memcpy(job->reason, sentence, sizeof(job->reason));
        regroup_begin_anew(core, job, DISMISSED_RESET);
    }
}

void checkpoint_damaged(struct core *core, const struct core_checkpoint_damaged *damaged)
{
    struct job *job = job_find(core, damaged->job);
    if (job == NULL) {
        return;
    }
    record_add(core, job, CORE_RECORD_CHECKPOINT_LOST, true)->lost_position = damaged->position;
    if (!job->has_checkpoint || job->checkpoint.position != damaged->position) {
        return; /* a newer one counts */
    }
    CADRE_ASSERT(!damaged->has_previous || damaged->previous.position < damaged->position);
    job->has_checkpoint = damaged->has_previous;
    job->checkpoint = damaged->previous;
    job_due(core, job, DUE_CHANGED);
    if (job->phase == PHASE_JOIN && job->outcome == 0 && job->state != JOB_QUEUED) {
        fall_back(core, job, damaged);
    }
}
