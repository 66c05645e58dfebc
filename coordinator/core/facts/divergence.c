/* SPDX-License-Identifier: Apache-2.0
 * Replicas at one position with different states. Members find it when they compare as they run, or
 * this file does for those that are at their end or at a stop. All states of the generation are
 * void, because it is not known since when they differ, or of two which is right: all begin again
 * from the newest checkpoint, which is verified. A machine that computes wrong numbers fails
 * elsewhere next time; states that differ again before a later position was verified are the
 * program's fault. A worker that is a culprit twice is drained. Both are recorded; after a start of
 * the coordinator members repeat what they found, and what was found here is in the record.
 * reports.c and part.c call this. */
#include "coordinator/core/facts/divergence.h"

#include "coordinator/core/facts/abort.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/verified.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

/* ---- which tasks have another state ---- */

static bool is_member(const struct core *core, const struct job *job, uint32_t slot)
{
    return slot < job->tasks && job_task(core, job, slot)->rank != NONE;
}

/* Each worker counts once. */
static void count_culprits(
    struct core *core, const struct job *job, const struct divergence *divergence)
{
    uint32_t seen[DIVERGENCE_CULPRITS_MAX];
    uint32_t seen_count = 0;
    CADRE_ASSERT(divergence->culprit_count <= DIVERGENCE_CULPRITS_MAX);
    for (uint32_t i = 0; i < divergence->culprit_count; i++) {
        uint32_t slot = divergence->culprits[i];
        const struct task *task = is_member(core, job, slot) ? job_task(core, job, slot) : NULL;
        uint32_t worker = task == NULL ? NONE : job_task_group(core, job, task->task_group)->worker;
        bool again = worker == NONE;
        for (uint32_t at = 0; at < seen_count; at++) {
            again |= seen[at] == worker;
        }
        if (!again) {
            seen[seen_count++] = worker;
            culprit_note(core, job, slot, worker);
        }
    }
}

/* "task 2 on worker b and 1 other task have another state than most replicas after 40 steps" */
static void divergence_text(const struct core *core, const struct job *job,
    const struct divergence *divergence, struct text *text)
{
    uint32_t named = NONE;
    uint32_t others = 0;
    for (uint32_t i = 0; i < divergence->culprit_count; i++) {
        if (is_member(core, job, divergence->culprits[i])) {
            others += named != NONE;
            named = named == NONE ? divergence->culprits[i] : named;
        }
    }
    if (named == NONE) {
        text_add(text, "the replicas have different states after ");
    } else {
        task_name(core, job, named, text);
        if (others > 0) {
            text_add(text, " and ");
            text_count(text, others, "other task", "other tasks");
        }
        text_add(text, others > 0 ? " have" : " has");
        text_add(text, " another state than most replicas after ");
    }
    text_count(text, divergence->position, "step", "steps");
    if (named == NONE) {
        text_add(text, ", and it is not known which is right");
    }
}

/* ---- what follows ---- */

/* It is recorded already, and members repeat it after a start of the coordinator. */
static bool is_known(const struct job *job)
{
    return job->diverged_last.number == job->generation.number;
}

/* Whether no later position was verified since the last divergence. */
static bool is_again(const struct job *job, const struct divergence *divergence)
{
    uint64_t verified = job->verified.position;
    if (divergence->verified > job->resume && divergence->verified > verified) {
        verified = divergence->verified; /* its arrival has not come yet */
    }
    return job->diverged_last.number != 0 && !is_known(job) &&
           verified < job->diverged_last.position;
}

static void note_last(struct core *core, struct job *job, uint64_t position)
{
    job->diverged_last =
        (struct core_position){.number = job->generation.number, .position = position};
    if (actions_left(core) > ACTIONS_PER_JOB_MAX) { /* else it is not recorded */
        record_add(core, job, CORE_RECORD_DIVERGED, true)->diverged = job->diverged_last;
    }
}

/* `detail`: more about it; or "". */
static void facts_divergence_diverges(
    struct core *core, struct job *job, const struct divergence *divergence, const char *detail)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->outcome == 0 && !job->diverged);
    CADRE_ASSERT(job->phase == PHASE_RUN || job->phase == PHASE_REGROUP);
    divergence_text(core, job, divergence, &text);
    bool again = is_again(job, divergence);
    if (!again && !is_known(job)) { /* else the program is at fault, and no machine */
        count_culprits(core, job, divergence);
        note_last(core, job, divergence->position);
    }
    if (again) {
        text_add(&text, "; so it was before, after ");
        text_count(&text, job->diverged_last.position, "step", "steps");
        text_add(&text,
            ", and nothing later was found equal: the step function writes what is no function of "
            "the step and its samples: look for"
            " an uninitialised value, a sum over local rows, a clock, rand(), a thread");
    }
    text_add(&text, detail[0] == '\0' ? "" : ": ");
    text_add(&text, detail);
    if (again) {
        job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
        return;
    }
    if (!job->counted && !restarts_count(core, job, CADRE_DATA_LOSS, 1, sentence)) {
        return;
    }
    job->counted = true;
    job->diverged = true;
    generation_abort(core, job, sentence, false);
    abort_set_reason(job, sentence, false); /* also when it had ended before */
    CADRE_ASSERT(generation_is_broken(job));
}

void divergence_reported(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(report->reason == REPORT_DIVERGED);
    if (job->diverged || generation_is_void(job)) {
        return; /* another member reported it before */
    }
    /* After a start that lost the newest watermark, frozen members do not raise it again. */
    bool known = job->unconfirmed == 0 && !generation_is_broken(job);
    if (report->divergence.position > job->released && known) {
        task_name(core, job, slot, &text);
        text_add(&text, " says that states differ after ");
        text_count(&text, report->divergence.position, "step", "steps");
        text_add(&text, ", of which only ");
        text_add_u64(&text, job->released);
        text_add(&text, " were released");
        job_fail(core, job, CADRE_INTERNAL, 1, sentence);
        return;
    }
    facts_divergence_diverges(
        core, job, &report->divergence, report->text == NULL ? "" : report->text);
}

void divergence_restored(struct core *core, struct job *job)
{
    const struct divergence known = {.position = job->diverged_last.position};
    CADRE_ASSERT(job->outcome == 0 && job->generation.number > 0);
    if (is_known(job)) {
        facts_divergence_diverges(
            core, job, &known, "that was found before the coordinator was started again");
    }
}

/* ---- frozen members: at their end, at a stop, at a halt for joins and drains ---- */

/* The position of all that report before the part is published; false: not all have reported. The
 * chief finishes only when its last checkpoint is published. */
static bool all_halted(const struct core *core, const struct job *job, uint64_t *ret_position)
{
    if (job->phase != PHASE_RUN || generation_is_broken(job)) {
        return false;
    }
    if (job->finished == 0) {
        *ret_position = job->halt_at;
        return job->halt_kind != HALT_NONE && job->reported == job->roster;
    }
    const struct task *chief = job_task(core, job, core->members[job->first]);
    *ret_position = job->finished_position;
    return job->finished == job->roster ||
           (job->finished + 1 == job->roster && !chief->finished && job->has_part &&
               job->part.position == job->finished_position);
}

/* Whether no later step compares, and no other part follows. */
static bool is_last(const struct job *job)
{
    return job->finished > 0 || job->halt_kind == HALT_STOP;
}

/* The digests of one position, each with the replicas that have it: first the members' by their
 * slots, then the part's. */
struct reported_states {
    const struct core *core;
    const struct job *job;
    uint64_t position;
};

/* The i-th of them; 0: not known. */
static uint64_t reported_digest(const struct reported_states *reported_states, uint32_t i,
    uint32_t *ret_slot, uint64_t *ret_replicas)
{
    const struct job *job = reported_states->job;
    CADRE_ASSERT(i <= job->tasks);
    if (i < job->tasks) {
        const struct task *task = job_task(reported_states->core, job, i);
        *ret_slot = i;
        *ret_replicas = task->replicas > 0 ? task->replicas : 1;
        bool stands = task->rank != NONE && (job->finished == 0 || task->finished);
        return stands ? task->digest : 0;
    }
    bool counts = job->has_part && job->part.position == reported_states->position &&
                  job->roster > 1 && is_last(job);
    *ret_slot = reported_states->core->members[job->first];
    const struct task *chief = job_task(reported_states->core, job, *ret_slot);
    *ret_replicas = chief->digest == 0 && chief->replicas > 0 ? chief->replicas : 0;
    return counts ? job->part.digest : 0;
}

struct tally {
    uint64_t digest;   /* that most may have; 0: none is known */
    uint64_t replicas; /* that have it */
    uint64_t known;    /* replicas whose digest is known */
    bool differs;
};

/* A majority digest is the one left when each other replica cancels one of its replicas. */
static struct tally tally_reported(const struct reported_states *reported_states)
{
    struct tally tally = {0};
    uint64_t left = 0;
    uint64_t first = 0;
    uint64_t replicas;
    uint32_t slot;
    for (uint32_t i = 0; i <= reported_states->job->tasks; i++) {
        uint64_t digest = reported_digest(reported_states, i, &slot, &replicas);
        if (digest == 0) {
            continue;
        }
        first = first == 0 ? digest : first;
        tally.differs |= digest != first;
        tally.known += replicas;
        if (digest == tally.digest || tally.digest == 0) {
            tally.digest = digest;
            left += replicas;
        } else if (replicas > left) {
            tally.digest = digest;
            left = replicas - left;
        } else {
            left -= replicas;
        }
    }
    for (uint32_t i = 0; i <= reported_states->job->tasks; i++) {
        uint64_t digest = reported_digest(reported_states, i, &slot, &replicas);
        tally.replicas += digest != 0 && digest == tally.digest ? replicas : 0;
    }
    CADRE_ASSERT(tally.replicas <= tally.known);
    return tally;
}

static void find_culprits(const struct reported_states *reported_states, const struct tally *tally,
    struct divergence *ret_divergence)
{
    uint64_t replicas;
    uint32_t slot;
    CADRE_ASSERT(tally->differs);
    if (2 * tally->replicas <= tally->known) {
        return;
    }
    for (uint32_t i = 0; i <= reported_states->job->tasks; i++) {
        uint64_t digest = reported_digest(reported_states, i, &slot, &replicas);
        if (digest != 0 && digest != tally->digest &&
            ret_divergence->culprit_count < DIVERGENCE_CULPRITS_MAX) {
            ret_divergence->culprits[ret_divergence->culprit_count++] = slot;
        }
    }
}

static bool all_are_known(const struct core *core, const struct job *job)
{
    for (uint32_t rank = 0; rank < job->roster; rank++) {
        const struct task *task = job_task(core, job, core->members[job->first + rank]);
        bool waits = rank == 0 && job->has_part && !task->reported;
        if (task->rank != rank || (waits ? job->part.digest : task->digest) == 0) {
            return false;
        }
    }
    return true;
}

bool divergence_compare(struct core *core, struct job *job)
{
    struct reported_states reported_states = {.core = core, .job = job};
    CADRE_ASSERT(job->roster > 0);
    if (job->outcome != 0 || !all_halted(core, job, &reported_states.position)) {
        return false;
    }
    struct tally tally = tally_reported(&reported_states);
    if (!tally.differs) {
        if (all_are_known(core, job)) {
            verified_raise(core, job,
                &(struct verified){.position = reported_states.position, .digest = tally.digest});
        }
        if (job->has_part) {
            job_due(core, job, DUE_PART);
        }
        return false;
    }
    struct divergence divergence = {
        .position = reported_states.position, .verified = job->verified.position};
    find_culprits(&reported_states, &tally, &divergence);
    facts_divergence_diverges(core, job, &divergence,
        job->finished > 0 ? "the digests that they reported at their end differ"
                          : "the digests that they reported at a halt differ");
    return true;
}

bool divergence_excluded(const struct core *core, const struct job *job)
{
    struct reported_states reported_states = {.core = core, .job = job};
    return is_last(job) && all_halted(core, job, &reported_states.position) &&
           job->part.position == reported_states.position &&
           !tally_reported(&reported_states).differs;
}
