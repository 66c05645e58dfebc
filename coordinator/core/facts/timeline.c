/* SPDX-License-Identifier: Apache-2.0
 * The timeline of a generation: which positions are steps of which epoch of which stream (protocol,
 * rule 25). A program steps through ranges of steps, each of one epoch; a task that begins one
 * claims it by an arrival, whose cursor is that of its current range. The ranges of all task groups
 * must fit together. arrivals.c calls this.
 *
 *     begin=0             begin=10            begin=12
 *     | stream 1, epoch 0 | stream 2, epoch 0 | stream 1, epoch 0 again, or another ...
 *
 * A range is claimed as far as the window and its epoch reach. A program may leave it earlier: then
 * a later range begins inside and cuts it. That is an error only if a task applied steps beyond the
 * cut as part of the earlier range. Steps admitted beyond a cut belong to the ranges that follow.
 */
#include "coordinator/core/facts/timeline.h"

#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"

static void text_timeline_position(struct text *text, const struct core *core,
    const struct job *job, uint32_t task_group, const struct cursor *cursor, uint64_t position)
{
    uint32_t worker = task_group == NONE ? NONE : job_task_group(core, job, task_group)->worker;
    CADRE_ASSERT(position >= cursor->first);
    CADRE_ASSERT(task_group == NONE || task_group < job->task_groups);
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

/* Rule 25: one position is one step of one epoch. Two claims for it fail the job. */
static void timeline_conflict(struct core *core, struct job *job,
    const struct step_range *step_range, uint32_t other, uint32_t task_group,
    const struct cursor *cursor, uint64_t position)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(step_range < job->step_ranges + job->step_range_count);
    text_add(&text, "at position ");
    text_add_u64(&text, position);
    text_add(&text, ", ");
    text_timeline_position(&text, core, job, other, &step_range->cursor, position);
    text_add(&text, " and ");
    text_timeline_position(&text, core, job, task_group, cursor, position);
    text_add(&text, ": the programs took different paths");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
    CADRE_ASSERT(job->outcome != 0);
}

static struct step_range *timeline_insert(
    struct job *job, uint32_t at, const struct step_range *step_range)
{
    CADRE_ASSERT(at <= job->step_range_count);
    CADRE_ASSERT(at == 0 || job->step_ranges[at - 1].through <= step_range->cursor.begin);
    CADRE_ASSERT(job->step_range_count < STEP_RANGES_MAX);
    memmove(&job->step_ranges[at + 1], &job->step_ranges[at],
        sizeof(*step_range) * (job->step_range_count - at));
    job->step_ranges[at] = *step_range;
    job->step_range_count++;
    CADRE_ASSERT(at + 1 == job->step_range_count ||
                 step_range->through <= job->step_ranges[at + 1].cursor.begin);
    return &job->step_ranges[at];
}

/* Rule 23: an epoch's length is recorded as soon as a task with that length has begun the epoch.
 * The fsync may lag: a plan or a checkpoint behind it syncs it too, and after a lost tail the tasks
 * that ended the epoch report it again. Steps without a batch (stream 0) have no data that could
 * end. */
void timeline_end(struct core *core, struct job *job, const struct cursor *cursor)
{
    struct ended *ended = &job->ends[cursor->stream % ENDS_MAX];
    bool known = ended->stream == cursor->stream && ended->epoch >= cursor->epoch;
    CADRE_ASSERT(ended->stream == 0 || ended->stream % ENDS_MAX == cursor->stream % ENDS_MAX);
    if (cursor->steps == 0 || cursor->stream == 0 || known) {
        return;
    }
    *ended = (struct ended){.stream = cursor->stream, .epoch = cursor->epoch};
    struct core_record *record = record_add(core, job, CORE_RECORD_END_OF_DATA, false);
    record->end_of_data = *cursor;
}

/* Whether the claim fits an older range that begins at another position. */
static bool timeline_adjacent(struct core *core, struct job *job, struct step_range *s,
    uint32_t task_group, const struct agent_arrived *arrived, uint64_t *limit)
{
    const struct cursor *cursor = &arrived->cursor;
    CADRE_ASSERT(s->cursor.begin != cursor->begin);
    if (s->cursor.begin < cursor->begin) {
        if (s->applied > cursor->begin) {
            timeline_conflict(core, job, s, s->ahead, task_group, cursor, cursor->begin);
            return false;
        }
        if (s->through > cursor->begin) {
            s->through = cursor->begin;
        }
    } else {
        if (arrived->applied > s->cursor.begin) {
            timeline_conflict(core, job, s, s->task_group, task_group, cursor, s->cursor.begin);
            return false;
        }
        if (*limit > s->cursor.begin) {
            *limit = s->cursor.begin;
        }
    }
    CADRE_ASSERT(s->cursor.begin > cursor->begin || s->through <= cursor->begin);
    return true;
}

/* Whether the claim is of the older range that begins at the same position. A range of which no
 * step was applied may be replaced by the task group that began it: its step failed there. */
static bool timeline_same(struct core *core, struct job *job, struct step_range *s,
    uint32_t task_group, const struct cursor *cursor)
{
    bool same = s->cursor.stream == cursor->stream && s->cursor.epoch == cursor->epoch &&
                s->cursor.first == cursor->first;
    bool length = s->cursor.steps == 0 || cursor->steps == 0 || s->cursor.steps == cursor->steps;
    CADRE_ASSERT(s->cursor.begin == cursor->begin);
    CADRE_ASSERT(task_group < job->task_groups);
    if (same && length) {
        return true;
    }
    if (same || s->task_group != task_group || s->applied > s->cursor.begin) {
        timeline_conflict(core, job, s, s->task_group, task_group, cursor, cursor->begin);
        return false;
    }
    *s = (struct step_range){
        .cursor = *cursor, .through = cursor->begin, .task_group = task_group, .ahead = task_group};
    CADRE_ASSERT(s->applied <= s->through);
    return true;
}

/* Whether the cursor is that of a step which the task group has the batch of. */
static bool timeline_possible(
    struct core *core, struct job *job, uint32_t task_group, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    bool inside = cursor->steps == 0 || cursor->begin - cursor->first < cursor->steps;
    CADRE_ASSERT(arrived->up_to > 0);
    CADRE_ASSERT(job_task_group(core, job, task_group)->worker != NONE);
    if (cursor->first <= cursor->begin && cursor->begin < arrived->up_to && inside) {
        return true;
    }
    text_add(&text, "worker ");
    text_add(&text, core->workers[job_task_group(core, job, task_group)->worker].name);
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

/* Finds the claim's range, and its index or where it is to be inserted. NULL and true: it is new.
 */
static bool timeline_find(struct core *core, struct job *job, uint32_t task_group,
    const struct agent_arrived *arrived, uint64_t *limit, uint32_t *ret_at,
    struct step_range **ret_mine)
{
    const struct cursor *cursor = &arrived->cursor;
    *ret_at = 0;
    *ret_mine = NULL;
    for (uint32_t i = 0; i < job->step_range_count; i++) {
        struct step_range *s = &job->step_ranges[i];
        if (s->cursor.begin == cursor->begin) {
            if (!timeline_same(core, job, s, task_group, cursor)) {
                return false;
            }
            *ret_mine = s;
        } else if (!timeline_adjacent(core, job, s, task_group, arrived, limit)) {
            return false;
        } else if (s->cursor.begin < cursor->begin) {
            *ret_at = i + 1;
        }
    }
    CADRE_ASSERT(*ret_at <= job->step_range_count);
    return true;
}

/* Drops ranges that all have applied. */
static void timeline_trim(struct job *job)
{
    uint32_t past = 0;
    while (past < job->step_range_count && job->step_ranges[past].through < job->applied.least) {
        past++;
    }
    if (past == 0 && job->step_range_count == STEP_RANGES_MAX) {
        past = 1;
    }
    if (past > 0) {
        job->step_range_count -= past;
        memmove(job->step_ranges, &job->step_ranges[past],
            sizeof(job->step_ranges[0]) * job->step_range_count);
    }
    CADRE_ASSERT(job->step_range_count < STEP_RANGES_MAX);
}

bool timeline_claim(
    struct core *core, struct job *job, uint32_t task_group, const struct agent_arrived *arrived)
{
    const struct cursor *cursor = &arrived->cursor;
    uint64_t limit = arrived->up_to;
    uint32_t at;
    struct step_range *mine;
    CADRE_ASSERT(task_group < job->task_groups);
    CADRE_ASSERT(job->phase == PHASE_RUN);
    if (arrived->up_to <= job->resume || arrived->up_to == cursor->begin) {
        if (arrived->applied > job->resume) {
            timeline_end(core, job, cursor); /* of a range that is over: its claim was lost */
        }
        return true; /* nothing is claimed (of this range) yet */
    }
    if (!timeline_possible(core, job, task_group, arrived)) {
        return false;
    }
    if (cursor->steps > 0 && limit - cursor->first > cursor->steps) {
        limit = cursor->first + cursor->steps;
    }
    timeline_trim(job);
    if (!timeline_find(core, job, task_group, arrived, &limit, &at, &mine)) {
        return false;
    }
    timeline_end(core, job, cursor);
    if (mine == NULL) {
        struct step_range added = {
            .cursor = *cursor, .through = limit, .task_group = task_group, .ahead = task_group};
        mine = timeline_insert(job, at, &added);
    }
    if (mine->through < limit) {
        mine->through = limit;
    }
    if (mine->cursor.steps == 0) {
        mine->cursor.steps = cursor->steps;
    }
    if (mine->applied < arrived->applied) {
        mine->applied = arrived->applied;
        mine->ahead = task_group;
    }
    CADRE_ASSERT(mine->cursor.begin == cursor->begin);
    return true;
}

bool timeline_at(const struct job *job, uint64_t position, struct cursor *ret_cursor)
{
    CADRE_ASSERT(job->step_range_count <= STEP_RANGES_MAX);
    for (uint32_t i = 0; i < job->step_range_count; i++) {
        const struct step_range *s = &job->step_ranges[i];
        if (s->cursor.begin <= position && position < s->through) {
            *ret_cursor = s->cursor;
            return true;
        }
    }
    *ret_cursor = (struct cursor){0};
    return false;
}

uint64_t timeline_known(const struct job *job)
{
    CADRE_ASSERT(job->step_range_count <= STEP_RANGES_MAX);
    uint32_t count = job->step_range_count; /* in the order of positions, without overlaps */
    return count > 0 ? job->step_ranges[count - 1].through : job->resume;
}

void timeline_group_moved(struct job *job, uint32_t from, uint32_t to)
{
    CADRE_ASSERT(from != to);
    CADRE_ASSERT(to == NONE || to < job->task_groups);
    for (uint32_t i = 0; i < job->step_range_count; i++) {
        struct step_range *s = &job->step_ranges[i];
        s->task_group = s->task_group == from ? to : s->task_group;
        s->ahead = s->ahead == from ? to : s->ahead;
    }
}
