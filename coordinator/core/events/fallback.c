/* SPDX-License-Identifier: Apache-2.0
 * A published checkpoint was found damaged: the one before it counts. Tasks that were started with
 * the damaged one are started again. */
#include "coordinator/core/events/events.h"

#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static void describe_step(
    struct text *text, const char *before, uint64_t position, struct job_id source)
{
    CADRE_ASSERT(before[0] != '\0');
    text_add(text, before);
    text_add_u64(text, position);
    if (source.n != 0) {
        text_add(text, " of job ");
        text_add_u64(text, source.n);
    }
}

/* "the checkpoint of step 30 of job 1 is damaged (its content does not have its hash)" */
static void describe_damage(struct text *text, const struct core_checkpoint_damaged *damaged)
{
    describe_step(text, "the checkpoint of step ", damaged->position, damaged->source);
    text_add(text, " is damaged (");
    text_add(text, damaged->why);
    text_add(text, ")");
}

/* Its tasks were started to go on from a checkpoint, and no generation of them is formed yet. */
static bool waits_for_checkpoint(const struct job *job)
{
    CADRE_ASSERT(job->id.n != 0);
    return job->phase == PHASE_JOIN && job->outcome == 0 && job->state != JOB_QUEUED &&
           job->preempt == PREEMPT_NOT;
}

static void own_damaged(
    struct core *core, struct job *job, const struct core_checkpoint_damaged *damaged)
{
    struct core_record *record = record_add(core, job, CORE_RECORD_CHECKPOINT_LOST, true);
    struct text why = text_begin(record->lost.why, sizeof(record->lost.why));
    CADRE_ASSERT(!damaged->is_origin);
    record->lost.position = damaged->position;
    text_add(&why, damaged->why);
    published_note(core, job);
    if (!job->has_checkpoint || job->checkpoint.position != damaged->position) {
        return; /* a newer one counts */
    }
    CADRE_ASSERT(!damaged->has_previous || damaged->previous.position < damaged->position);
    job->has_checkpoint = damaged->has_previous;
    job->checkpoint = damaged->previous;
    job_due(core, job, DUE_CHANGED);
    if (waits_for_checkpoint(job) && job->restart_all) {
        struct text reason = text_begin(job->reason, sizeof(job->reason));
        describe_damage(&reason, damaged);
        job_due(core, job, DUE_RESTART);
    }
    CADRE_ASSERT(job->has_checkpoint == damaged->has_previous);
}

static void origin_falls_back(
    struct core *core, struct job *job, const struct core_checkpoint_damaged *damaged)
{
    CADRE_ASSERT(job->has_checkpoint);
    CADRE_ASSERT(damaged->previous.position < damaged->position);
    record_add(core, job, CORE_RECORD_ORIGIN, true)->checkpoint = damaged->previous;
    published_note(core, job);
    job->checkpoint = damaged->previous;
    struct text note = text_begin(job->note, sizeof(job->note));
    describe_damage(&note, damaged);
    describe_step(
        &note, ": the job goes on from that of step ", job->checkpoint.position, damaged->source);
    memcpy(job->reason, job->note, sizeof(job->reason));
    job_due(core, job, DUE_CHANGED);
    if (waits_for_checkpoint(job)) {
        job_due(core, job, DUE_DISBAND);
    }
    CADRE_ASSERT(job->checkpoint.position < damaged->position);
}

/* If no task waits for it, it stays the job's origin: a later restart finds it damaged again. */
static void origin_damaged(
    struct core *core, struct job *job, const struct core_checkpoint_damaged *damaged)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(damaged->is_origin);
    if (!job->has_checkpoint || job->checkpoint.position != damaged->position) {
        return; /* its own counts */
    }
    if (damaged->has_previous) {
        origin_falls_back(core, job, damaged);
    } else if (waits_for_checkpoint(job)) {
        describe_damage(&text, damaged);
        text_add(&text, ", and it is the one that the job goes on from; ");
        text_add(&text, damaged->remedy);
        job_fail(core, job, CADRE_DATA_LOSS, 1, sentence);
    }
}

void checkpoint_damaged(struct core *core, const struct core_checkpoint_damaged *damaged)
{
    struct job *job = job_find(core, damaged->job);
    if (job == NULL || behind_is(job)) {
        return; /* it is found again when the job goes on */
    }
    if (damaged->is_origin) {
        origin_damaged(core, job, damaged);
    } else {
        own_damaged(core, job, damaged);
    }
}

void fallback_restored(struct core *core, struct job *job)
{
    bool gone_back =
        job->generation.number == 0 && job->has_checkpoint && waits_for_checkpoint(job);
    CADRE_ASSERT(!gone_back || job->roster == 0);
    for (uint32_t slot = 0; slot < job->tasks && gone_back; slot++) {
        if (task_is_usable(job_task(core, job, slot))) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
}
