/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "stage_state.h"
#include "tests/lib/speed.h"

#define STAGE_US (20 * CADRE_US_PER_S)

/* --- saying --- */

static void send_roster(struct stage *stage, const struct task_down *down)
{
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        stage_send(stage->roster[i], down);
    }
}

static void send_release(struct stage *stage)
{
    struct task_down down = {.type = TASK_DOWN_RELEASE, .generation = stage->generation};
    down.release = (struct task_release){.generation = stage->generation,
        .up_to = stage->released,
        .checkpoint_at = POSITION_NONE,
        .halt_at = stage->halt_at,
        .halt_kind = stage->halt_at == POSITION_NONE ? HALT_NONE : HALT_REGROUP,
        .halt_stream = stage->halt_stream,
        .published = stage->end->published};
    send_roster(stage, &down);
}

static void send_warm(struct stage *stage, struct attempt *attempt)
{
    struct stream_position streams[STAGE_CONSUMPTIONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < stage->end->consumption_count; i++) {
        const struct stage_consumption *consumption = &stage->end->consumptions[i];
        size_t at = 0;
        while (at < count && streams[at].stream != consumption->cursor.stream) {
            at++;
        }
        count = at == count ? count + 1 : count;
        streams[at] = (struct stream_position){.stream = consumption->cursor.stream,
            .epoch = consumption->cursor.epoch,
            .steps = consumption->cursor.steps,
            .applied = consumption->consumption.steps};
    }
    struct task_down down = {.type = TASK_DOWN_WARM};
    down.warm =
        (struct task_warm){.streams = streams, .stream_count = count, .tasks = stage->roster_count};
    attempt->phase = ATTEMPT_WARM;
    stage_send(attempt, &down);
}

/* --- generations --- */

static struct attempt *reported_at(struct stage *stage, uint64_t position)
{
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        struct attempt *attempt = stage->roster[i];
        if (attempt->phase == ATTEMPT_REPORTED && attempt->report.clean &&
            attempt->report.position == position) {
            return attempt;
        }
    }
    return NULL;
}

static void send_plan(struct stage *stage, uint32_t source)
{
    struct roster_entry entries[STAGE_TASKS_MAX];
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        struct attempt *attempt = stage->roster[i];
        entries[i] = (struct roster_entry){.slot = attempt->slot,
            .incarnation = attempt->incarnation,
            .replicas = stage->job->replicas,
            .mesh_address = attempt->mesh_address};
        attempt->phase = ATTEMPT_RUNS;
        attempt->member = true;
        attempt->has_arrived = false;
    }
    stage->generation.number++;
    stage->generation.nonce = stage->generation.number * 7919;
    stage->end->generations = stage->generation.number;
    stage->end->roster = stage->roster_count;
    stage->collecting = false;
    stage->met = stage->met || (stage->job->grows > 0 &&
                                   stage->roster_count == stage->job->tasks + stage->job->grows);
    stage->released = stage->resume;
    stage->halt_at = POSITION_NONE;
    struct task_down down = {.type = TASK_DOWN_PLAN, .generation = stage->generation};
    down.plan = (struct task_plan){.generation = stage->generation,
        .roster = entries,
        .roster_count = stage->roster_count,
        .resume = stage->resume,
        .source = source,
        .checkpoint_at = POSITION_NONE,
        .halt_at = POSITION_NONE};
    memset(down.plan.key, (int)stage->generation.number, sizeof down.plan.key);
    bool second = stage->generation.number % 2 == 0;
    if (stage->roster_count > 1 && (second || stage->job->spreads)) {
        stage_send_parts(stage, &down);
    } else {
        send_roster(stage, &down);
    }
    if (stage->generation.number == stage->job->kills_at_generation) {
        program_signal(&stage->attempts[stage->job->kills].program, SIGKILL);
    }
}

static void first_plan(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->job->tasks; i++) {
        if (stage->attempts[i].mesh_address[0] == '\0') {
            return;
        }
    }
    stage->roster_count = stage->job->tasks;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        stage->roster[i] = &stage->attempts[i];
    }
    stage->resume = stage->job->resume;
    send_plan(stage, SOURCE_NONE);
}

/* A joiner comes in where all survivors have begun the step that it waits for. */
static bool is_aligned(const struct stage *stage, const struct attempt *joiner)
{
    bool aligned = joiner->phase == ATTEMPT_JOINS;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct attempt *attempt = stage->roster[i];
        aligned = aligned &&
                  (attempt->report.position < stage->resume ||
                      (attempt->report.begun && attempt->report.stream == joiner->join_stream &&
                          !attempt->report.nested));
    }
    return aligned;
}

/* Whether all members that run have reported; the dead leave the roster then. */
static bool all_reported(struct stage *stage, bool *ret_finished)
{
    uint32_t survivors = 0;
    *ret_finished = true;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct attempt *attempt = stage->roster[i];
        if (attempt->phase != ATTEMPT_GONE && attempt->phase != ATTEMPT_REPORTED) {
            return false;
        }
    }
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        struct attempt *attempt = stage->roster[i];
        attempt->member = attempt->phase == ATTEMPT_REPORTED;
        *ret_finished =
            *ret_finished && attempt->member && attempt->report.reason == REPORT_FINISHED;
        if (attempt->member) {
            stage->roster[survivors++] = attempt;
        }
    }
    stage->roster_count = survivors;
    return survivors > 0;
}

static void next_plan(struct stage *stage)
{
    bool finished = false;
    if (!all_reported(stage, &finished)) {
        return;
    }
    stage->resume = 0;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct task_report *report = &stage->roster[i]->report;
        if (report->clean && report->position > stage->resume) {
            stage->resume = report->position;
        }
    }
    if (reported_at(stage, stage->resume) == NULL) {
        stage->failed = true;
        snprintf(stage->end->text, sizeof stage->end->text, "no task has its state any more");
        return;
    }
    if (finished && !stage->collecting) {
        stage->end->done = true;
        stage->end->published_at_goodbye = stage->end->published;
        stage->end->position = stage->resume;
        send_roster(
            stage, &(struct task_down){.type = TASK_DOWN_GOODBYE, .generation = stage->generation});
        return;
    }
    if (stage->job->rotates) {
        struct attempt *first = stage->roster[0];
        memmove(
            stage->roster, stage->roster + 1, (stage->roster_count - 1) * sizeof stage->roster[0]);
        stage->roster[stage->roster_count - 1] = first;
    }
    uint32_t source = 0;
    while (stage->roster[source] != reported_at(stage, stage->resume)) {
        source++;
    }
    uint32_t joiners = 0;
    struct attempt *joining[STAGE_TASKS_MAX];
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        if (is_aligned(stage, &stage->attempts[i])) {
            joining[joiners++] = &stage->attempts[i];
        }
    }
    for (uint32_t i = 0; i < joiners; i++) {
        stage->roster[stage->roster_count++] = joining[i];
    }
    send_plan(stage, source);
}

static void begin_collecting(struct stage *stage, const char *why)
{
    if (stage->generation.number == 0 || stage->collecting) {
        return;
    }
    stage->collecting = true;
    send_roster(
        stage, &(struct task_down){
                   .type = TASK_DOWN_ABORT, .generation = stage->generation, .reason = why});
}

/* --- hearing --- */

static const struct attempt *last_joiner(const struct stage *stage)
{
    const struct attempt *joiner = NULL;
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        joiner = stage->attempts[i].phase == ATTEMPT_JOINS ? &stage->attempts[i] : joiner;
    }
    return joiner;
}

/* Not before the step that it is to come in behind is released. */
static bool may_join(const struct stage *stage)
{
    return stage->job->joins_behind == 0 || stage->released > stage->job->joins_behind;
}

/* Whatever a member does, it begins a step of the joiner's stream next, or the halt is lifted. */
static void steer_joiners(struct stage *stage)
{
    const struct attempt *joiner = last_joiner(stage);
    if (stage->collecting || stage->end->done || stage->roster_count == 0 || !may_join(stage)) {
        return;
    }
    bool all_begun = true;
    bool other = false;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct attempt *attempt = stage->roster[i];
        bool here = attempt->has_arrived && attempt->arrived.wanted == stage->released + 1;
        all_begun = all_begun && attempt->has_arrived;
        other = other || (here && joiner != NULL &&
                             (attempt->arrived.cursor.stream != joiner->join_stream ||
                                 attempt->arrived.cursor.nested));
    }
    bool gone_on = joiner != NULL && joiner->join_stream != stage->halt_stream;
    if (stage->halt_at != POSITION_NONE && (other || gone_on)) {
        stage->halt_at = POSITION_NONE;
        send_release(stage);
    }
    if (stage->halt_at == POSITION_NONE && joiner != NULL && all_begun && !other) {
        stage->halt_at = stage->released;
        stage->halt_stream = joiner->join_stream;
        send_release(stage);
    }
}

/* True: it is of an epoch that no task has reported before. */
static bool keep_consumption(struct stage *stage, const struct task_arrive *arrive)
{
    struct stage_end *end = stage->end;
    size_t at = 0;
    while (at < end->consumption_count &&
           (end->consumptions[at].cursor.stream != arrive->cursor.stream ||
               end->consumptions[at].cursor.epoch != arrive->cursor.epoch)) {
        at++;
    }
    if (arrive->cursor.stream == 0 || at == STAGE_CONSUMPTIONS_MAX) {
        return false;
    }
    bool next = at == end->consumption_count;
    end->consumption_count += next ? 1 : 0;
    if (arrive->consumption.steps >= end->consumptions[at].consumption.steps) {
        end->consumptions[at] = (struct stage_consumption){
            .cursor = arrive->cursor, .consumption = arrive->consumption};
    }
    return next;
}

static bool is_over(const struct stage *stage, uint32_t stream)
{
    bool over = false;
    for (size_t i = 0; i < stage->end->consumption_count;
         i++) { /* the newest epoch of it is the last */
        const struct stage_consumption *consumption = &stage->end->consumptions[i];
        if (consumption->cursor.stream == stream) {
            over = consumption->cursor.steps > 0 &&
                   consumption->consumption.steps >= consumption->cursor.steps;
        }
    }
    return over;
}

static bool is_past(const struct stage *stage, uint32_t stream, uint64_t epoch)
{
    bool past = false;
    for (size_t i = 0; i < stage->end->consumption_count; i++) {
        const struct cursor *cursor = &stage->end->consumptions[i].cursor;
        past = past || (cursor->stream == stream && cursor->epoch > epoch);
    }
    return past;
}

/* They wait for the next epoch, or report another stream. */
static void outdate_joiners(struct stage *stage, uint32_t stream)
{
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        struct attempt *attempt = &stage->attempts[i];
        if (attempt->phase == ATTEMPT_JOINS && attempt->join_stream == stream) {
            send_warm(stage, attempt);
            attempt->phase = ATTEMPT_JOINS;
        }
    }
}

/* No step is released from here on, for now. */
static uint64_t limit(const struct stage *stage)
{
    const struct stage_job *job = stage->job;
    uint64_t at = stage->halt_at;
    uint32_t greeted = 0;
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        greeted += stage->attempts[i].mesh_address[0] != '\0' ? 1 : 0;
    }
    bool complete = stage->met || stage->roster_count == job->tasks + job->grows;
    if (job->waits_at > 0 && !complete && at > job->waits_at) {
        at = job->waits_at;
    }
    if (job->joins_behind > 0 && !stage->met && at > job->joins_behind) {
        at = last_joiner(stage) == NULL ? job->joins_behind : job->joins_behind + 1;
    }
    if (job->greets_at > 0 && greeted < job->tasks + job->grows && at > job->greets_at) {
        at = job->greets_at;
    }
    if (job->asks_at > 0 && !stage->asked && at > job->asks_at) {
        at = job->asks_at;
    }
    return at;
}

static void release_more(struct stage *stage)
{
    uint64_t up_to = limit(stage);
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct attempt *member = stage->roster[i];
        uint64_t theirs = member->has_arrived ? member->arrived.up_to : stage->resume;
        up_to = theirs < up_to ? theirs : up_to;
    }
    if (up_to <= stage->released || stage->collecting) {
        return;
    }
    if (stage->lost_us > 0) {
        uint64_t took_us = clock_monotonic_us() - stage->lost_us;
        stage->end->regroup_us =
            took_us > stage->end->regroup_us ? took_us : stage->end->regroup_us;
        stage->lost_us = 0;
    }
    stage->released = up_to;
    send_release(stage);
}

static void on_arrive(
    struct stage *stage, struct attempt *attempt, const struct task_arrive *arrive)
{
    if (!generation_equal(arrive->generation, stage->generation)) {
        return;
    }
    attempt->arrived = *arrive;
    attempt->has_arrived = true;
    bool was_over = is_over(stage, arrive->cursor.stream);
    bool next = keep_consumption(stage, arrive);
    if (next || (!was_over && is_over(stage, arrive->cursor.stream))) {
        outdate_joiners(stage, arrive->cursor.stream);
    }
    uint64_t applied = UINT64_MAX;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct attempt *member = stage->roster[i];
        uint64_t done = member->has_arrived ? member->arrived.applied : stage->resume;
        applied = done < applied ? done : applied;
    }
    steer_joiners(stage);
    release_more(stage);
    if (!stage->grown && stage->job->grows > 0 && applied >= stage->job->grows_at) {
        stage->grown = true;
        for (uint32_t i = 0; i < stage->job->grows; i++) {
            stage_start(stage, stage->job->tasks + i);
        }
    }
}

/* The joiner is aligned but for one member, which may have been frozen on its way there. */
static void mark_aligned(const struct stage *stage)
{
    char name[64];
    char path[TEST_PATH_BYTES];
    uint32_t begun = 0;
    for (uint32_t i = 0; i < stage->roster_count; i++) {
        const struct attempt *attempt = stage->roster[i];
        begun += attempt->phase == ATTEMPT_REPORTED && attempt->report.begun ? 1 : 0;
    }
    if (stage->job->joins_behind > 0 && last_joiner(stage) != NULL &&
        begun + 1 == stage->roster_count) {
        snprintf(name, sizeof name, "aligned-%" PRIu64, stage->job->joins_behind);
        test_write(test_path(path, stage->folder, name), "");
    }
}

static void on_report(
    struct stage *stage, struct attempt *attempt, const struct task_report *report)
{
    if (!generation_equal(report->generation, stage->generation)) {
        return;
    }
    if (report->reason == REPORT_FAILED) {
        stage->failed = true;
        snprintf(stage->end->text, sizeof stage->end->text, "%s", report->text);
        return;
    }
    attempt->phase = ATTEMPT_REPORTED;
    attempt->report = *report;
    mark_aligned(stage);
    if (report->reason != REPORT_FINISHED && report->reason != REPORT_HALT) {
        begin_collecting(stage, "a task lost another one");
    }
    next_plan(stage);
}

static void on_stream(struct stage *stage, const struct task_stream *stream)
{
    struct stage_end *end = stage->end;
    CADRE_ASSERT(stream->stream >= 1 && stream->stream <= 4);
    end->streams[stream->stream - 1] = *stream;
    snprintf(end->stream_names[stream->stream - 1], 128, "%s", stream->name);
    end->stream_count = stream->stream > end->stream_count ? stream->stream : end->stream_count;
}

static void on_join(struct stage *stage, struct attempt *attempt, const struct task_join *join)
{
    attempt->phase = ATTEMPT_JOINS;
    attempt->join_stream = join->stream;
    if (is_over(stage, join->stream) || is_past(stage, join->stream, join->epoch)) {
        outdate_joiners(stage, join->stream);
    }
    stage->asked = true;
    steer_joiners(stage);
    release_more(stage);
}

static void on_part(struct stage *stage, const struct task_part *part)
{
    if (++stage->end->parts > stage->job->parts_lost) {
        stage->end->published = part->position;
        send_release(stage);
    }
    if (stage->end->parts == 1 && stage->job->kills_at_part > 0) {
        program_signal(&stage->attempts[stage->job->kills_at_part - 1].program, SIGKILL);
    }
}

static void on_stall(
    struct stage *stage, const struct attempt *attempt, const struct task_stall *stall)
{
    stage->end->stalls++;
    stage->end->stall_slot = stall->slot;
    struct attempt *other = &stage->attempts[stall->slot];
    if (stage->job->kills_stalled && other != attempt) {
        program_signal(&other->program, SIGKILL);
    }
    if (stage->job->drops_stalled && other != attempt && !other->dropped) {
        other->dropped = true;
        other->phase = ATTEMPT_GONE;
        stage->collecting = true;
        next_plan(stage);
    }
}

void stage_on_up(struct stage *stage, struct attempt *attempt, const struct task_up *up)
{
    switch (up->type) {
    case TASK_UP_HELLO:
        snprintf(attempt->mesh_address, sizeof attempt->mesh_address, "%s", up->hello.mesh_address);
        if (stage->generation.number == 0) {
            first_plan(stage);
        } else if (up->hello.generation.number == 0) {
            send_warm(stage, attempt);
            release_more(stage);
        }
        break;
    case TASK_UP_ARRIVE:
        on_arrive(stage, attempt, &up->arrive);
        break;
    case TASK_UP_REPORT:
        on_report(stage, attempt, &up->report);
        break;
    case TASK_UP_PART:
        on_part(stage, &up->part);
        break;
    case TASK_UP_JOIN:
        on_join(stage, attempt, &up->join);
        break;
    case TASK_UP_STREAM:
        on_stream(stage, &up->stream);
        break;
    case TASK_UP_STALL:
        on_stall(stage, attempt, &up->stall);
        break;
    case TASK_UP_PREEMPT:
    case TASK_UP_PROGRESS:
    case TASK_UP_SHARDS:
    case TASK_UP_BACKED:
    case TASK_UP_VALUES:
    case TASK_UP_SPANS:
        break;
    }
}

void stage_on_gone(struct stage *stage, struct attempt *attempt)
{
    close(attempt->fd);
    attempt->fd = -1;
    bool was_member = attempt->member && !stage->end->done;
    attempt->phase = ATTEMPT_GONE;
    if (!was_member) {
        return;
    }
    stage->lost_us = clock_monotonic_us();
    begin_collecting(stage, "a task was killed");
    if (stage->job->replaces) {
        stage_start(stage, attempt->slot);
    }
    next_plan(stage);
}

static void send_away_joiners(struct stage *stage)
{
    for (uint32_t i = 0; i < stage->attempt_count; i++) {
        struct attempt *attempt = &stage->attempts[i];
        if (!attempt->member && attempt->phase != ATTEMPT_GONE) {
            stage_send(attempt, &(struct task_down){.type = TASK_DOWN_SUPERSEDED});
        }
    }
}

void stage_run(const struct stage_job *job, struct stage_end *ret_end)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    *ret_end = (struct stage_end){.published = POSITION_NONE};
    stage->job = job;
    stage->end = ret_end;
    stage_make_folder(ret_end->folder);
    stage->folder = ret_end->folder;
    stage->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    stage->halt_at = POSITION_NONE;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        stage_start(stage, slot);
    }
    uint64_t end_us = clock_monotonic_us() + speed_scaled_us(STAGE_US);
    bool sent_away = false;
    while (!stage->failed && clock_monotonic_us() < end_us && stage_turn(stage)) {
        if (ret_end->done && !sent_away) {
            sent_away = true;
            send_away_joiners(stage);
        }
    }
    bool late = clock_monotonic_us() >= end_us;
    stage->failed = stage->failed || late;
    if (late) {
        snprintf(ret_end->text, sizeof ret_end->text, "the stage waited for too long");
    }
    stage_collect(stage);
    wire_arena_free(stage->arena);
    free(stage);
}

void stage_end_free(struct stage_end *end)
{
    for (uint32_t i = 0; i < end->started; i++) {
        free(end->printed[i]);
        free(end->erred[i]);
    }
}
