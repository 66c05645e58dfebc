/* SPDX-License-Identifier: Apache-2.0
 * The step barrier: a release is the least arrival over the whole roster (rule 2). The parties that
 * stand at the least are counted, so that an arrival costs O(1) and a round one look at all
 * parties. */
#include "coordinator/core/parts.h"

/* Looks at all parties: the least value and how many stand there. */
static struct low_mark mark_count(const struct core *core, const struct job *job, bool applied)
{
    struct low_mark mark = {.least = UINT64_MAX};
    for (uint32_t i = 0; i < job->parties; i++) {
        const struct party *party = job_party(core, job, i);
        uint64_t value = applied ? party->applied : party->up_to;
        if (party->members == 0) {
            continue;
        }
        if (value < mark.least) {
            mark = (struct low_mark){.least = value};
        }
        mark.holders += value == mark.least;
    }
    CADRE_ASSERT(mark.holders > 0);
    return mark;
}

/* A party went up from `old`: when it was the last that stood at the least, the least rises. */
static void mark_raise(const struct core *core, const struct job *job, struct low_mark *mark,
    bool applied, uint64_t old)
{
    CADRE_ASSERT(old >= mark->least);
    if (old == mark->least && --mark->holders == 0) {
        uint64_t before = mark->least;
        *mark = mark_count(core, job, applied);
        CADRE_ASSERT(mark->least > before);
    }
}

static void marks_count(const struct core *core, struct job *job)
{
    job->arrived = mark_count(core, job, false);
    job->applied = mark_count(core, job, true);
}

void barrier_open(struct core *core, struct job *job)
{
    job->unarrived = 0;
    for (uint32_t i = 0; i < job->parties; i++) {
        struct party *party = job_party(core, job, i);
        party->up_to = job->resume;
        party->applied = job->resume;
        party->arrived = false;
        job->unarrived += party->members > 0;
    }
    marks_count(core, job);
    job->released = job->resume;
    job->wanted = 0;
    job->wanted_slot = NONE;
    job->stretch_count = 0;
    CADRE_ASSERT(job->arrived.least == job->resume);
}

/* All had arrived there, for it was released. */
void barrier_raise(struct core *core, struct job *job, uint64_t released)
{
    if (released <= job->released) {
        return;
    }
    for (uint32_t i = 0; i < job->parties; i++) {
        struct party *party = job_party(core, job, i);
        party->up_to = party->up_to > released ? party->up_to : released;
    }
    marks_count(core, job);
    job->released = released;
    job->raised = true;
    job_due(core, job, DUE_RELEASE_AGAIN);
}

/* After a start of the coordinator, the watermark is not known until all members have said hello.
 * Nobody can be farther than what had been released. */
static void raise_by_arrival(
    struct core *core, struct job *job, const struct agent_arrived *arrived)
{
    uint64_t released = arrived->applied;
    if (arrived->wanted > released + 1) {
        released = arrived->wanted - 1;
    }
    if (arrived->up_to > released + LIMIT_WINDOW_STEPS) {
        released = arrived->up_to - LIMIT_WINDOW_STEPS;
    }
    if (job->unheard > 0 && arrived->up_to < LIMIT_POSITION && released <= arrived->up_to) {
        barrier_raise(core, job, released);
    }
}

/* What an agent may say at all; a breach is a bug of a program or a daemon, and the job cannot go
 * on. */
static bool arrival_possible(struct core *core, struct job *job, const struct party *party,
    const struct agent_arrived *arrived)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    if (arrived->applied <= job->released && arrived->applied <= arrived->up_to &&
        arrived->up_to <= job->released + LIMIT_WINDOW_STEPS &&
        arrived->wanted <= job->released + 1) {
        return true;
    }
    text_add(&text, "worker ");
    text_add(&text, core->workers[party->worker].name);
    text_add(&text, " says that its tasks applied ");
    text_add_u64(&text, arrived->applied);
    text_add(&text, " steps, are ready for ");
    text_add_u64(&text, arrived->up_to);
    text_add(&text, " and want ");
    text_add_u64(&text, arrived->wanted);
    text_add(&text, ", but only ");
    text_add_u64(&text, job->released);
    text_add(&text, " were released");
    job_fail(core, job, CADRE_INTERNAL, 1, sentence);
    return false;
}

/* The finished member took part in all steps below its position, so whoever is said to want a step
 * at or beyond it stands there, and its program goes on where the other's ended. No release can
 * mend that, whether it has been said or not. */
bool barrier_deserted(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    if (job->finished == 0 || job->wanted <= job->finished_position) {
        return false;
    }
    task_name(core, job, job->wanted_slot, &text);
    text_add(&text, " waits for step ");
    text_add_u64(&text, job->wanted);
    text_add(&text, ", but ");
    task_name(core, job, job->finished_slot, &text);
    text_add(&text, " called cadre_finish after ");
    text_add_u64(&text, job->finished_position);
    text_add(&text, job->finished_position == 1 ? " step" : " steps");
    text_add(&text, ": all tasks must take the same steps");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
    return true;
}

void barrier_wants(struct core *core, struct job *job, uint32_t slot, uint64_t wanted)
{
    if (wanted > job->wanted) {
        job->wanted = wanted;
        job->wanted_slot = slot;
        (void)barrier_deserted(core, job);
    }
}

/* Whether the slot that an arrival names is one of the party's members. */
static bool is_member(const struct core *core, const struct job *job, uint32_t slot, uint32_t party)
{
    return slot < job->tasks && job_task(core, job, slot)->party == party &&
           job_task(core, job, slot)->rank != NONE;
}

/* What all have applied may be recorded and published. */
static void applied_rose(struct core *core, struct job *job, uint64_t before)
{
    if (job->applied.least > before) {
        health_progress(core, job, job->applied.least - before);
        failure_step_applied(core, job);
    }
    publish_consider(core, job);
}

void barrier_arrived(struct core *core, uint32_t worker, const struct agent_arrived *arrived)
{
    struct job *job = job_find(core, arrived->job);
    if (job == NULL || job->phase != PHASE_RUN ||
        !generation_equal(arrived->generation, job->generation)) {
        return;
    }
    uint32_t number = party_find(core, job, worker);
    if (number == NONE || job->outcome != 0) {
        return;
    }
    struct party *party = job_party(core, job, number);
    if (party->members == 0 || arrived->tasks != party->members) {
        return;
    }
    raise_by_arrival(core, job, arrived);
    if (!arrival_possible(core, job, party, arrived) || !line_claim(core, job, number, arrived)) {
        return;
    }
    uint64_t applied_before = job->applied.least;
    if (arrived->up_to >= job->resume) { /* else it tells only of what one of them wants */
        job->unarrived -= !party->arrived;
        party->arrived = true;
    }
    if (arrived->up_to > party->up_to) {
        uint64_t old = party->up_to;
        party->up_to = arrived->up_to;
        mark_raise(core, job, &job->arrived, false, old);
    }
    if (arrived->applied > party->applied) {
        uint64_t old = party->applied;
        party->applied = arrived->applied;
        mark_raise(core, job, &job->applied, true, old);
    }
    proof_arrived(core, job, arrived);
    applied_rose(core, job, applied_before);
    if (is_member(core, job, arrived->wanted_slot, number)) {
        barrier_wants(core, job, arrived->wanted_slot, arrived->wanted);
    }
    if (job->arrived.least > job->released) {
        job_due(core, job, DUE_RELEASE);
    }
    if (job->joiners > 0 || job->halt_kind != HALT_NONE || job->draining) {
        job_due(core, job, DUE_CONTROL);
    }
}
