/* SPDX-License-Identifier: Apache-2.0
 * The line of a generation: which positions are steps of which epoch of which stream. A program
 * steps through runs of steps, each of one epoch; whoever begins a run says so in an arrival, whose
 * cursor is that of the run it stands in. The runs of all parties must fit together.
 *
 *     begin=0             begin=10         begin=12
 *     | stream 1, epoch 0 | stream 2, epoch 0 | stream 1, epoch 0 again, or another ...
 *
 * A run is claimed as far as the window and its epoch reach. A program may leave it before: then a
 * later run begins inside and cuts it. It is an error only when somebody applied steps beyond the
 * cut as part of the earlier one. What was admitted beyond a cut belongs to the runs that follow,
 * as they are told. */
#include "coordinator/core/facts/line.h"

#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"

static void text_place(struct text *text, const struct core *core, const struct job *job,
    uint32_t party, const struct cursor *cursor, uint64_t position)
{
    uint32_t worker = party == NONE ? NONE : job_party(core, job, party)->worker;
    CADRE_ASSERT(position >= cursor->first);
    CADRE_ASSERT(party == NONE || party < job->parties);
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
    CADRE_ASSERT(stretch < job->stretches + job->stretch_count);
    text_add(&text, "at position ");
    text_add_u64(&text, position);
    text_add(&text, ", ");
    text_place(&text, core, job, other, &stretch->cursor, position);
    text_add(&text, " and ");
    text_place(&text, core, job, party, cursor, position);
    text_add(&text, ": the programs took different paths");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
    CADRE_ASSERT(job->outcome != 0);
}

static struct stretch *line_insert(struct job *job, uint32_t at, const struct stretch *stretch)
{
    CADRE_ASSERT(at <= job->stretch_count);
    CADRE_ASSERT(at == 0 || job->stretches[at - 1].through <= stretch->cursor.begin);
    CADRE_ASSERT(job->stretch_count < STRETCHES_MAX);
    memmove(
        &job->stretches[at + 1], &job->stretches[at], sizeof(*stretch) * (job->stretch_count - at));
    job->stretches[at] = *stretch;
    job->stretch_count++;
    CADRE_ASSERT(
        at + 1 == job->stretch_count || stretch->through <= job->stretches[at + 1].cursor.begin);
    return &job->stretches[at];
}

/* An epoch's length is recorded as soon as somebody who knows it has begun the epoch (rule 23).
 * Steps without a batch (stream 0) have no data that could end. */
static void line_end(struct core *core, struct job *job, const struct cursor *cursor)
{
    struct ended *ended = &job->ends[cursor->stream % ENDS_MAX];
    bool known = ended->stream == cursor->stream && ended->epoch == cursor->epoch;
    CADRE_ASSERT(ended->stream == 0 || ended->stream % ENDS_MAX == cursor->stream % ENDS_MAX);
    if (cursor->steps == 0 || cursor->stream == 0 || known) {
        return;
    }
    *ended = (struct ended){.stream = cursor->stream, .epoch = cursor->epoch};
    struct core_record *record = record_add(core, job, CORE_RECORD_END_OF_DATA, true);
    record->end_of_data = *cursor;
}

/* Whether the claim can stand beside an older stretch that begins at another position. */
static bool line_beside(struct core *core, struct job *job, struct stretch *s, uint32_t party,
    const struct agent_arrived *arrived, uint64_t *limit)
{
    const struct cursor *cursor = &arrived->cursor;
    CADRE_ASSERT(s->cursor.begin != cursor->begin);
    if (s->cursor.begin < cursor->begin) {
        if (s->applied > cursor->begin) {
            line_conflict(core, job, s, s->ahead, party, cursor, cursor->begin);
            return false;
        }
        if (s->through > cursor->begin) {
            s->through = cursor->begin;
        }
    } else {
        if (arrived->applied > s->cursor.begin) {
            line_conflict(core, job, s, s->party, party, cursor, s->cursor.begin);
            return false;
        }
        if (*limit > s->cursor.begin) {
            *limit = s->cursor.begin;
        }
    }
    CADRE_ASSERT(s->cursor.begin > cursor->begin || s->through <= cursor->begin);
    return true;
}

/* Whether a claim is of the very run that an older one began. A run of which nobody has applied a
 * step may be given up by the party that began it: the step failed there and nothing came of it. */
static bool line_same(struct core *core, struct job *job, struct stretch *s, uint32_t party,
    const struct cursor *cursor)
{
    bool same = s->cursor.stream == cursor->stream && s->cursor.epoch == cursor->epoch &&
                s->cursor.first == cursor->first;
    bool length = s->cursor.steps == 0 || cursor->steps == 0 || s->cursor.steps == cursor->steps;
    CADRE_ASSERT(s->cursor.begin == cursor->begin);
    CADRE_ASSERT(party < job->parties);
    if (same && length) {
        return true;
    }
    if (same || s->party != party || s->applied > s->cursor.begin) {
        line_conflict(core, job, s, s->party, party, cursor, cursor->begin);
        return false;
    }
    *s = (struct stretch){
        .cursor = *cursor, .through = cursor->begin, .party = party, .ahead = party};
    CADRE_ASSERT(s->applied <= s->through);
    return true;
}

/* A cursor is that of a step which is in hand. */
static bool line_possible(
    struct core *core, struct job *job, uint32_t party, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool inside = cursor->steps == 0 || cursor->begin - cursor->first < cursor->steps;
    CADRE_ASSERT(arrived->up_to > 0);
    CADRE_ASSERT(job_party(core, job, party)->worker != NONE);
    if (cursor->first <= cursor->begin && cursor->begin < arrived->up_to && inside) {
        return true;
    }
    text_add(&text, "worker ");
    text_add(&text, core->workers[job_party(core, job, party)->worker].name);
    text_add(&text, " is ready for position ");
    text_add_u64(&text, arrived->up_to - 1);
    text_add(&text, " and stands behind position ");
    text_add_u64(&text, cursor->begin);
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

/* Finds the run of the claim among those that are known, and where it stands or would stand. NULL
 * and true: it is a new one. */
static bool line_find(struct core *core, struct job *job, uint32_t party,
    const struct agent_arrived *arrived, uint64_t *limit, uint32_t *ret_at,
    struct stretch **ret_mine)
{
    const struct cursor *cursor = &arrived->cursor;
    *ret_at = 0;
    *ret_mine = NULL;
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        struct stretch *s = &job->stretches[i];
        if (s->cursor.begin == cursor->begin) {
            if (!line_same(core, job, s, party, cursor)) {
                return false;
            }
            *ret_mine = s;
        } else if (!line_beside(core, job, s, party, arrived, limit)) {
            return false;
        } else if (s->cursor.begin < cursor->begin) {
            *ret_at = i + 1;
        }
    }
    CADRE_ASSERT(*ret_at <= job->stretch_count);
    return true;
}

/* What all have applied is not asked for again. */
static void line_trim(struct job *job)
{
    uint32_t past = 0;
    while (past < job->stretch_count && job->stretches[past].through < job->applied.least) {
        past++;
    }
    if (past == 0 && job->stretch_count == STRETCHES_MAX) {
        past = 1;
    }
    if (past > 0) {
        job->stretch_count -= past;
        memmove(
            job->stretches, &job->stretches[past], sizeof(job->stretches[0]) * job->stretch_count);
    }
    CADRE_ASSERT(job->stretch_count < STRETCHES_MAX);
}

bool line_claim(
    struct core *core, struct job *job, uint32_t party, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    uint64_t limit = arrived->up_to;
    uint32_t at;
    struct stretch *mine;
    CADRE_ASSERT(party < job->parties);
    CADRE_ASSERT(job->phase == PHASE_RUN);
    if (arrived->up_to <= job->resume || arrived->up_to == cursor->begin) {
        return true; /* nothing is claimed (of this run) yet */
    }
    if (!line_possible(core, job, party, arrived)) {
        return false;
    }
    if (cursor->steps > 0 && limit - cursor->first > cursor->steps) {
        limit = cursor->first + cursor->steps;
    }
    line_trim(job);
    if (!line_find(core, job, party, arrived, &limit, &at, &mine)) {
        return false;
    }
    line_end(core, job, cursor);
    if (mine == NULL) {
        struct stretch added = {
            .cursor = *cursor, .through = limit, .party = party, .ahead = party};
        mine = line_insert(job, at, &added);
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
    CADRE_ASSERT(mine->cursor.begin == cursor->begin);
    return true;
}

bool line_at(const struct job *job, uint64_t position, struct cursor *ret_cursor)
{
    CADRE_ASSERT(job->stretch_count <= STRETCHES_MAX);
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        const struct stretch *s = &job->stretches[i];
        if (s->cursor.begin <= position && position < s->through) {
            *ret_cursor = s->cursor;
            return true;
        }
    }
    *ret_cursor = (struct cursor){0};
    return false;
}

void line_party_moved(struct job *job, uint32_t from, uint32_t to)
{
    CADRE_ASSERT(from != to);
    CADRE_ASSERT(to == NONE || to < job->parties);
    for (uint32_t i = 0; i < job->stretch_count; i++) {
        struct stretch *s = &job->stretches[i];
        s->party = s->party == from ? to : s->party;
        s->ahead = s->ahead == from ? to : s->ahead;
    }
}
