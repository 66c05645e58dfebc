/* SPDX-License-Identifier: Apache-2.0
 * The line of a generation: which positions belong to which epoch of which stream. Every arrival
 * claims that the positions from its cursor's first one on are steps of that epoch; the claims of
 * all parties must fit together.
 *
 *     first=0          first=10            first=12
 *     | stream 1, epoch 0 | stream 2, epoch 0 | stream 1, epoch 1 ...
 *
 * A program may leave an epoch before its end: then a later stretch begins inside an earlier one
 * and cuts it. It is an error only when somebody applied steps beyond the cut as part of the
 * earlier one. */
#include "coordinator/core/state.h"

static void text_place(struct text *text, const struct core *core, const struct job *job,
    uint32_t party, const struct cursor *cursor, uint64_t position)
{
    uint32_t worker = job_party(core, job, party)->worker;
    text_add(text, "worker ");
    text_add(text, worker == NONE ? "(lost)" : core->workers[worker].name);
    text_add(text, " is at step ");
    text_add_u64(text, position - cursor->first);
    text_add(text, " of stream ");
    text_add_u64(text, cursor->stream);
    text_add(text, ", epoch ");
    text_add_u64(text, cursor->epoch);
    if (cursor->steps > 0) {
        text_add(text, " of ");
        text_add_u64(text, cursor->steps);
        text_add(text, " steps");
    }
}

/* Two claims for the same position: the job fails with both. */
static void line_conflict(struct core *core, struct job *job, const struct stretch *stretch,
    uint32_t other, uint32_t party, const struct cursor *cursor, uint64_t position)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    text_add(&text, "at position ");
    text_add_u64(&text, position);
    text_add(&text, ", ");
    text_place(&text, core, job, other, &stretch->cursor, position);
    text_add(&text, " and ");
    text_place(&text, core, job, party, cursor, position);
    text_add(&text, ": the programs took different paths");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
}

static void line_insert(struct job *job, uint32_t at, const struct stretch *stretch)
{
    CADRE_ASSERT(job->stretch_count < STRETCHES_MAX);
    memmove(
        &job->stretches[at + 1], &job->stretches[at], sizeof(*stretch) * (job->stretch_count - at));
    job->stretches[at] = *stretch;
    job->stretch_count++;
}

/* The first claim of an epoch's length that is known is recorded before a release carries it (rule
 * 23). Steps without a batch (stream 0) have no data that could end. */
static void line_end(struct core *core, struct job *job, struct stretch *stretch)
{
    if (stretch->ended || stretch->cursor.steps == 0 || stretch->cursor.stream == 0) {
        return;
    }
    stretch->ended = true;
    struct core_record *record = record_add(core, job, CORE_RECORD_END_OF_DATA, true);
    record->end_of_data = stretch->cursor;
}

/* Whether the claim can stand beside an older stretch that begins at another position. */
static bool line_beside(struct core *core, struct job *job, struct stretch *s, uint32_t party,
    const struct agent_arrived *arrived, uint64_t *limit)
{
    const struct cursor *cursor = &arrived->cursor;
    if (s->cursor.first < cursor->first) {
        if (s->applied > cursor->first) {
            line_conflict(core, job, s, s->ahead, party, cursor, cursor->first);
            return false;
        }
        if (s->through > cursor->first) {
            s->through = cursor->first;
        }
    } else {
        if (arrived->applied > s->cursor.first) {
            line_conflict(core, job, s, s->party, party, cursor, s->cursor.first);
            return false;
        }
        if (*limit > s->cursor.first) {
            *limit = s->cursor.first;
        }
    }
    return true;
}

/* A cursor covers the position it is given for. */
static bool line_possible(
    struct core *core, struct job *job, uint32_t party, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint64_t last = arrived->up_to - 1;
    if (cursor->first <= last && (cursor->steps == 0 || last - cursor->first < cursor->steps)) {
        return true;
    }
    text_add(&text, "worker ");
    text_add(&text, core->workers[job_party(core, job, party)->worker].name);
    text_add(&text, " is ready for position ");
    text_add_u64(&text, last);
    text_add(&text, ", which is outside its epoch of stream ");
    text_add_u64(&text, cursor->stream);
    text_add(&text, ": it begins at ");
    text_add_u64(&text, cursor->first);
    text_add(&text, " and has ");
    text_add_u64(&text, cursor->steps);
    text_add(&text, " steps");
    job_fail(core, job, CADRE_INTERNAL, 1, sentence);
    return false;
}

bool line_claim(
    struct core *core, struct job *job, uint32_t party, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    if (arrived->up_to <= job->resume) {
        return true; /* it is ready for nothing yet: there is no cursor */
    }
    if (!line_possible(core, job, party, arrived)) {
        return false;
    }
    if (job->stretch_count == STRETCHES_MAX) {
        line_trim(job);
    }
    uint64_t limit = arrived->up_to;
    uint32_t at = 0;
    struct stretch *mine = NULL;
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        struct stretch *s = &job->stretches[i];
        if (s->cursor.first == cursor->first) {
            bool same = s->cursor.stream == cursor->stream && s->cursor.epoch == cursor->epoch;
            bool length =
                s->cursor.steps == 0 || cursor->steps == 0 || s->cursor.steps == cursor->steps;
            if (!same || !length) {
                line_conflict(core, job, s, s->party, party, cursor, arrived->up_to - 1);
                return false;
            }
            mine = s;
        } else if (!line_beside(core, job, s, party, arrived, &limit)) {
            return false;
        } else if (s->cursor.first < cursor->first) {
            at = i + 1;
        }
    }
    if (mine == NULL && limit <= job->released) {
        return true; /* all that is left of it is past */
    }
    if (mine == NULL) {
        struct stretch added = {
            .cursor = *cursor, .through = limit, .party = party, .ahead = party};
        line_insert(job, at, &added);
        mine = &job->stretches[at];
    }
    if (mine->through < limit) {
        mine->through = limit;
    }
    if (mine->cursor.steps == 0) {
        mine->cursor.steps = cursor->steps;
    }
    if (mine->applied < arrived->applied) {
        mine->applied = arrived->applied;
        mine->ahead = party;
    }
    line_end(core, job, mine);
    return true;
}

struct cursor line_at(const struct job *job, uint64_t position)
{
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        const struct stretch *s = &job->stretches[i];
        if (s->cursor.first <= position && position < s->through) {
            return s->cursor;
        }
    }
    return (struct cursor){0};
}

void line_trim(struct job *job)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        if (job->stretches[i].through >= job->released) {
            job->stretches[kept++] = job->stretches[i];
        }
    }
    job->stretch_count = kept;
}
