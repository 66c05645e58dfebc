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
        arrived->up_to <= job->released + LIMIT_WINDOW_STEPS) {
        return true;
    }
    text_add(&text, "worker ");
    text_add(&text, core->workers[party->worker].name);
    text_add(&text, " says that its tasks applied ");
    text_add_u64(&text, arrived->applied);
    text_add(&text, " steps and are ready for ");
    text_add_u64(&text, arrived->up_to);
    text_add(&text, ", but only ");
    text_add_u64(&text, job->released);
    text_add(&text, " were released");
    job_fail(core, job, CADRE_INTERNAL, 1, sentence);
    return false;
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
    if (job->arrived.least > job->released) {
        job_due(core, job, DUE_RELEASE);
    }
}
