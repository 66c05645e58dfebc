/* SPDX-License-Identifier: Apache-2.0
 * The step barrier: a release is the least arrival over the whole roster (rule 2). The parties that
 * stand at the least are counted, so that an arrival costs O(1) and a round one look at all
 * parties. */
#include "coordinator/core/state.h"

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

void barrier_open(struct core *core, struct job *job)
{
    for (uint32_t i = 0; i < job->parties; i++) {
        struct party *party = job_party(core, job, i);
        party->up_to = job->resume;
        party->applied = job->resume;
    }
    job->arrived = mark_count(core, job, false);
    job->applied = mark_count(core, job, true);
    job->released = job->resume;
    job->wanted = 0;
    job->wanted_slot = NONE;
    job->stretch_count = 0;
    job->finished = 0;
    CADRE_ASSERT(job->arrived.least == job->resume);
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

/* Notes how many steps a member's program takes at least. */
static void barrier_wants(struct core *core, struct job *job, const struct party *party,
    const struct agent_arrived *arrived)
{
    uint32_t end_slot = party->first_slot + party->tasks;
    bool ours = arrived->wanted_slot >= party->first_slot && arrived->wanted_slot < end_slot;
    if (arrived->wanted > job->wanted && ours) {
        job->wanted = arrived->wanted;
        job->wanted_slot = arrived->wanted_slot;
        (void)barrier_deserted(core, job);
    }
}

void barrier_arrived(struct core *core, uint32_t worker, const struct agent_arrived *arrived)
{
    struct job *job = job_find(core, arrived->job);
    if (job == NULL || job->phase != PHASE_RUN ||
        !generation_equal(arrived->generation, job->generation)) {
        return;
    }
    uint32_t number =
        map_get(&core->parties_by_place, (uint64_t)job_index(core, job) << 32 | worker);
    if (number == MAP_NONE) {
        return;
    }
    struct party *party = job_party(core, job, number);
    if (arrived->tasks != party->members || !arrival_possible(core, job, party, arrived) ||
        !line_claim(core, job, number, arrived)) {
        return;
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
    barrier_wants(core, job, party, arrived);
    if (job->arrived.least > job->released) {
        job_due(core, job, DUE_RELEASE);
    }
}
