/* SPDX-License-Identifier: Apache-2.0
 * The chief's part of a checkpoint is durable. It is a whole checkpoint, because mirrored state is
 * equal on all tasks. */
#include "coordinator/core/events/generation.h"

#include "coordinator/core/facts/divergence.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/text_format.h"

void part_handle(struct core *core, struct job *job, uint32_t slot, const struct task_part *part)
{
    bool open = job->phase == PHASE_RUN || job->phase == PHASE_DONE;
    bool known = job->has_checkpoint && part->position <= job->checkpoint.position;
    bool named =
        part->path != NULL && part->path[0] != '\0' && strlen(part->path) < LIMIT_FILE_NAME_BYTES;
    /* Rules 13 and 18: of this generation, by its chief. */
    if (!open || !named || known || !generation_equal(part->generation, job->generation) ||
        job_task(core, job, slot)->rank != 0 || job->outcome != 0) {
        return;
    }
    if (part->position > job->released) {
        char sentence[LIMIT_TEXT_BYTES];
        struct text text = text_begin(sentence, sizeof(sentence));
        if (job->unconfirmed > 0) {
            return; /* the watermark is not known again yet; the part is sent again */
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
    job->part.digest = part->digest;
    job->part_compared = part->compared;
    if (verified_is_alone(core, job)) {
        verified_raise(core, job, &(struct verified){part->position, part->digest});
    }
    if (!divergence_compare(core, job)) {
        job_due(core, job, DUE_PART);
    }
    CADRE_ASSERT(job->part.position <= job->released);
    CADRE_ASSERT(job->part.path[0] != '\0');
}
