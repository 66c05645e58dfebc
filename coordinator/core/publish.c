/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints. The chief's part is the whole of one: mirrored state is equal everywhere. It is
 * published when every member has applied what it holds, so that the newest checkpoint is never
 * ahead of a survivor (rule 18); one that a plan finds unpublished is dropped (rule 15). */
#include "coordinator/core/parts.h"

void publish_consider(struct core *core, struct job *job)
{
    bool done = job->phase == PHASE_DONE;
    bool runs = job->phase == PHASE_RUN && job->unarrived == 0;
    uint64_t applied = done ? job->finished_position : job->applied.least;
    if (job->phase == PHASE_RUN && job->finished > 0 && job->finished + 1 >= job->roster &&
        !job_task(core, job, core->members[job->first])->finished) {
        /* All but the chief, which waits for this, have said that they are done: one that is gone
         * since holds back what its worker tells. */
        runs = true;
        applied = job->finished_position;
    }
    if (!job->has_part || !(done || runs) || job->part.position > applied) {
        return;
    }
    job->has_part = false;
    job->has_checkpoint = true;
    job->checkpoint = job->part;
    if (job->checkpoint_at != POSITION_NONE && job->checkpoint_at <= job->checkpoint.position) {
        job->checkpoint_at = POSITION_NONE;
    }
    job_due(core, job, DUE_PUBLISH | DUE_RELEASE_AGAIN | DUE_CHANGED);
    preempt_halted(core, job);
}

void publish_part(struct core *core, struct job *job, uint32_t slot, const struct task_part *part)
{
    bool open = job->phase == PHASE_RUN || job->phase == PHASE_DONE;
    bool known = job->has_checkpoint && part->position <= job->checkpoint.position;
    bool named =
        part->path != NULL && part->path[0] != '\0' && strlen(part->path) < LIMIT_FILE_NAME_BYTES;
    if (!open || !named || known || !generation_equal(part->generation, job->generation) ||
        job_task(core, job, slot)->rank != 0 || job->outcome != 0) {
        return;
    }
    if (part->position > job->released) {
        char sentence[LIMIT_TEXT_BYTES];
        struct text text = text_begin(sentence, sizeof(sentence));
        if (job->unheard > 0) {
            return; /* what was released is not known again yet; it is said again */
        }
        task_name(core, job, slot, &text);
        text_add(&text, " saved a checkpoint of position ");
        text_add_u64(&text, part->position);
        text_add(&text, ", but only ");
        text_add_u64(&text, job->released);
        text_add(&text, " steps were released");
        job_fail(core, job, CADRE_INTERNAL, 1, sentence);
        return;
    }
    struct text path = text_begin(job->part.path, sizeof(job->part.path));
    text_add(&path, part->path);
    job->has_part = true;
    job->part.generation = part->generation;
    job->part.position = part->position;
    job->part.shared = part->shared;
    job->part.manifest_bytes = part->size_bytes;
    memcpy(job->part.manifest_sha256, part->sha256, sizeof(job->part.manifest_sha256));
    publish_consider(core, job);
}
