/* SPDX-License-Identifier: Apache-2.0
 * The task core's step: what the program does; what it is told and what it says are beside it. */
#include "worker/core/task_parts.h"

#include <string.h>

#include "common/pure/assert.h"

/* ---- what the program does ---- */

static void connect(struct task_core *core, struct task_actions *out)
{
    core->connected = true;
    task_say_hello(core, out);
    if (core->phase == TASK_JOIN && core->joins) {
        task_say_join(core, out);
    }
    task_say_preempt(core, out);
    if (core->phase != TASK_RUN && core->phase != TASK_FROZEN) {
        return;
    }
    /* One that told nothing but that it stands where the generation began tells it again. */
    if (core->claimed || core->arrived > core->resume || core->position > core->resume ||
        core->wanted > core->resume) {
        task_say_fed(core, out);
        task_say_arrive(core, out);
    }
    task_say_part(core, out); /* rule 19; one that is known already does no harm */
    if (core->phase == TASK_FROZEN && !core->report_due) {
        task_say_report(core, out);
    }
}

/* Who received another position than its own has the step it stood in from others: its program is
 * done with it. A joiner's waits for its first one. */
static void become_synced(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase != TASK_SYNC) {
        return; /* aborted while it formed */
    }
    if (!core->clean) {
        core->cursor = event->cursor;
        core->feed = event->feed;
    }
    if (core->joins) {
        core->begun = true;
        core->begun_stream = core->join_stream;
    } else if (core->position != core->resume) {
        core->begun = false;
    }
    core->warm = false;
    core->joins = false;
    core->phase = TASK_RUN;
    core->position = core->resume;
    core->clean = true;
    core->staged = false;
    task_append(out, TASK_ACTION_CHANGED);
    task_say_part(core, out); /* one of an older generation that was not published in it */
    task_settle(core, out);
}

static void apply(struct task_core *core, uint64_t position)
{
    CADRE_ASSERT(!core->applying);
    if (core->phase != TASK_RUN) {
        return;
    }
    CADRE_ASSERT(position == core->position);
    CADRE_ASSERT(core->released > position);
    core->applying = true;
    core->clean = false;
    core->begun = true;
    core->begun_stream = core->cursor.stream;
}

static void applied(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase == TASK_EXIT) {
        core->applying = false;
        return;
    }
    CADRE_ASSERT(core->applying);
    CADRE_ASSERT(event->position == core->position);
    core->applying = false;
    core->clean = true;
    core->position++;
    core->begun = false;
    core->feed = event->feed;
    if (core->report_due) {
        task_say_report(core, out);
        return;
    }
    task_settle(core, out);
    task_arrive(core, false, out);
}

/* It takes the step where it stands. Frozen, it says so once more: whether a joiner can begin where
 * the survivors stand is decided by it, and nobody else can tell. */
static void begin_step(struct task_core *core, uint32_t stream, struct task_actions *out)
{
    bool news = !core->begun || core->begun_stream != stream;
    core->begun = true;
    core->begun_stream = stream;
    if (core->phase == TASK_RUN) {
        core->wanted = core->position + 1;
    } else if (news && core->phase == TASK_FROZEN && !core->report_due &&
               (core->reason == REPORT_ABORT || core->reason == REPORT_PEER_ERROR)) {
        task_say_report(core, out);
    }
}

/* A stall at the first step of an epoch or generation cannot be helped: nothing could be asked for
 * earlier. The wait itself has to be known even when there is nothing to ask for: perhaps another
 * task has finished, and the step can never be released. */
static void stalled(struct task_core *core, uint64_t position, struct task_actions *out)
{
    if (core->phase != TASK_RUN) {
        return;
    }
    CADRE_ASSERT(core->wanted > core->resume); /* READY comes first in each generation */
    bool avoidable =
        position > core->resume && position > core->cursor.first && position != core->halt_at;
    if (avoidable && core->window_steps < LIMIT_WINDOW_STEPS) {
        core->window_steps *= 2;
        core->window_least = core->window_steps;
    }
    begin_step(core, core->cursor.stream, out);
    task_settle(core, out);
    task_arrive(core, true, out);
    if (core->phase == TASK_RUN && core->wanted > core->wanted_told) {
        task_say_arrive(core, out);
    }
}

static void peer_error(struct task_core *core, const char *text, struct task_actions *out)
{
    core->applying = false; /* when it was: torn, and clean stays false */
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        task_freeze(core, REPORT_PEER_ERROR, text, out);
    } else if (core->report_due) {
        task_say_report(core, out);
    }
}

static void keep_part(
    struct task_core *core, const struct task_part *part, struct task_actions *out)
{
    if (core->phase == TASK_JOIN) {
        return;
    }
    core->part = *part;
    core->part.generation = core->generation;
    task_copy_text(core->part_path, sizeof(core->part_path), part->path);
    core->part.path = core->part_path;
    task_say_part(core, out);
    task_append(out, TASK_ACTION_CHANGED);
}

/* Whatever was being done has failed for good. */
static void fail(struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    CADRE_ASSERT(event->code != CADRE_OK);
    if (core->code != CADRE_OK) {
        return;
    }
    core->code = event->code;
    core->applying = false; /* when it was: torn, and clean stays false */
    core->report_due = false;
    if (core->phase == TASK_JOIN) {
        task_copy_text(core->text, sizeof(core->text), event->text);
    } else {
        task_freeze(core, REPORT_FAILED, event->text, out);
    }
}

static void join(struct task_core *core, uint32_t stream, struct task_actions *out)
{
    if (core->phase != TASK_JOIN) {
        return;
    }
    CADRE_ASSERT(core->warm);
    core->joins = true;
    core->join_stream = stream;
    task_say_join(core, out);
}

/* The epoch is left: its arrival was the last that tells of it. */
static void keep_fed(struct task_core *core)
{
    if (core->feed.steps == 0 || core->cursor.stream == 0 || core->position <= core->resume) {
        return;
    }
    if (core->fed_count == TASK_FED_MAX) {
        core->fed_count--;
        memmove(core->fed, core->fed + 1, sizeof(core->fed[0]) * core->fed_count);
    }
    core->fed[core->fed_count++] =
        (struct task_fed){.cursor = core->cursor, .applied = core->position, .feed = core->feed};
}

/* Each run is told before any step of it is: a program that left an epoch early has claimed steps
 * of it that belong to others, and only the tasks know which. A plan begins all runs anew: a joiner
 * cannot know where the one that it comes into began. Frozen, or before SYNCED, nothing of it is
 * taken but that the program is there: where the task will stand is not known. */
static void take_ready(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase != TASK_RUN) {
        begin_step(core, event->cursor.stream, out);
        return;
    }
    struct cursor cursor = event->cursor;
    cursor.begin = cursor.begin > core->resume ? cursor.begin : core->resume;
    bool turned = core->wanted == core->resume || cursor.begin != core->cursor.begin;
    if (cursor.stream != core->cursor.stream || cursor.epoch != core->cursor.epoch) {
        /* Of an epoch that is left early, or was before the plan: what it was fed to its end. */
        bool untold = core->position > core->told || core->wanted == core->resume;
        if (untold && core->feed.steps > 0) {
            task_say_arrive(core, out);
        }
        keep_fed(core);
        core->feed = event->feed;
    }
    uint64_t ready = event->position < POSITION_MAX ? event->position : POSITION_MAX;
    bool news = turned || ready > core->ready || cursor.steps != core->cursor.steps;
    core->ready = ready;
    core->cursor = cursor;
    begin_step(core, cursor.stream, out);
    task_settle(core, out);
    bool said = task_arrive(core, news, out);
    if (turned && !said && core->phase == TASK_RUN) {
        task_say_arrive(core, out);
    }
}

/* Where it stands is told, whether that would be worth a message or not: a checkpoint is published
 * when all members have told of their generation that they hold its position, and one that takes no
 * further step says so by nothing else. */
static void flush(struct task_core *core, struct task_actions *out)
{
    bool news = core->position > core->told || task_is_silent(core);
    if (!task_arrive(core, true, out) && core->phase == TASK_RUN && news) {
        task_say_arrive(core, out);
    }
}

/* The steps behind its last arrival are told with a later step, and a program that takes none for
 * long would keep them to itself. One that steps on is left alone: it tells by its steps. */
static void tick(struct task_core *core, struct task_actions *out)
{
    bool stands = core->position == core->ticked;
    core->ticked = core->position;
    if (stands && core->position > core->told) {
        flush(core, out);
    }
}

/* Told at once: no step follows with which it could be, and joiners that wait for a step of this
 * epoch are to go on. */
static void end_of_data(
    struct task_core *core, const struct cursor *ended, struct task_actions *out)
{
    struct cursor *cursor = &core->cursor;
    bool stands = cursor->stream == ended->stream && cursor->epoch == ended->epoch;
    bool inside = cursor->begin >= cursor->first && cursor->begin - cursor->first < ended->steps;
    if (!stands || cursor->steps > 0 || !inside || core->phase != TASK_RUN) {
        return;
    }
    cursor->steps = ended->steps;
    if (core->wanted > core->resume) {
        task_say_arrive(core, out);
    }
}

/* One that is done waits for those that are not. */
static void stall(
    const struct task_core *core, const struct task_stall *told, struct task_actions *out)
{
    bool done = core->phase == TASK_FROZEN && core->reason == REPORT_FINISHED;
    if (core->phase == TASK_RUN || core->phase == TASK_SYNC || done) {
        task_say_stall(core, told, out);
    }
}

void task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    out->count = 0;
    if (event->now_us > core->now_us) {
        core->now_us = event->now_us;
    }
    if (event->type == TASK_EVENT_DISCONNECTED) {
        core->connected = false;
        return;
    }
    if (core->phase == TASK_EXIT && event->type != TASK_EVENT_APPLIED) {
        return;
    }
    switch (event->type) {
    case TASK_EVENT_CONNECTED:
        connect(core, out);
        break;
    case TASK_EVENT_DISCONNECTED:
        break;
    case TASK_EVENT_DOWN:
        task_take_down(core, event->down, out);
        break;
    case TASK_EVENT_SYNCED:
        become_synced(core, event, out);
        break;
    case TASK_EVENT_SYNC_FAILED:
        if (core->phase == TASK_SYNC) {
            task_freeze(core, REPORT_PEER_ERROR, event->text, out);
        }
        break;
    case TASK_EVENT_READY:
        take_ready(core, event, out);
        break;
    case TASK_EVENT_APPLY:
        apply(core, event->position);
        break;
    case TASK_EVENT_APPLIED:
        applied(core, event, out);
        break;
    case TASK_EVENT_STALLED:
        stalled(core, event->position, out);
        break;
    case TASK_EVENT_PEER_ERROR:
        peer_error(core, event->text, out);
        break;
    case TASK_EVENT_FAILED:
        fail(core, event, out);
        break;
    case TASK_EVENT_JOIN:
        join(core, event->cursor.stream, out);
        break;
    case TASK_EVENT_STREAM:
        task_say_stream(core, event->stream, out);
        break;
    case TASK_EVENT_STALL:
        stall(core, event->stall, out);
        break;
    case TASK_EVENT_FLUSH:
        flush(core, out);
        break;
    case TASK_EVENT_TICK:
        tick(core, out);
        break;
    case TASK_EVENT_END:
        end_of_data(core, &event->cursor, out);
        break;
    case TASK_EVENT_EDGE:
        if (task_core_stops_next(core)) {
            task_freeze(core, REPORT_HALT, "", out);
        }
        break;
    case TASK_EVENT_PREEMPT:
        core->preempted = true;
        core->preempt = *event->preempt;
        task_say_preempt(core, out);
        break;
    case TASK_EVENT_PART:
        keep_part(core, event->part, out);
        break;
    case TASK_EVENT_FINISH:
        core->finished = true;
        core->begun = false;
        task_settle(core, out);
        break;
    }
}

void task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation, uint32_t replicas,
    uint32_t pid, const char *mesh_address)
{
    memset(core, 0, sizeof(*core));
    core->phase = TASK_JOIN;
    core->slot = slot;
    core->incarnation = incarnation;
    core->replicas = replicas;
    core->pid = pid;
    core->checkpoint_at = POSITION_NONE;
    core->halt_at = POSITION_NONE;
    core->published = POSITION_NONE;
    core->window_steps = TASK_WINDOW_START_STEPS;
    core->window_least = TASK_WINDOW_START_STEPS;
    task_copy_text(core->mesh_address, sizeof(core->mesh_address), mesh_address);
}

bool task_core_may_enter(const struct task_core *core, uint64_t position)
{
    return core->phase == TASK_RUN && !core->applying && position == core->position &&
           core->released > position && position < core->halt_at;
}

bool task_core_stops_next(const struct task_core *core)
{
    return core->phase == TASK_RUN && !core->applying && core->halt_kind == HALT_STOP &&
           core->position == core->halt_at;
}

bool task_core_stops(const struct task_core *core)
{
    return core->phase == TASK_FROZEN && core->reason == REPORT_HALT &&
           core->halt_kind == HALT_STOP && core->position == core->halt_at;
}

static const char *running_invariant(const struct task_core *core)
{
    if (core->position < core->resume || core->position > core->released) {
        return "applied steps were released in this generation";
    }
    if (core->told > core->position) {
        return "only applied steps are told as applied";
    }
    if (core->wanted > core->released + 1 || core->wanted > core->position + 1 ||
        core->wanted_told > core->wanted) {
        return "a program wants no step beyond the one where it stands";
    }
    if (!core->clean && !core->applying) {
        return "a running task is clean between its steps";
    }
    if (core->arrived > core->resume && core->wanted == core->resume) {
        return "nothing is claimed before the program has begun a step in this generation";
    }
    if (core->wanted > core->position && !core->begun) {
        return "a step that is wanted is begun";
    }
    if (core->wanted > core->resume &&
        (core->cursor.begin < core->resume || core->cursor.begin > core->position)) {
        return "the run that the program stands in began in this generation";
    }
    bool passed = core->position > core->halt_at || task_halts(core);
    if (!core->applying && (passed || core->finished)) {
        return "who stands at the halt, or has finished, is frozen";
    }
    return NULL;
}

const char *task_core_invariant(const struct task_core *core)
{
    if (core->window_steps < 1 || core->window_steps > LIMIT_WINDOW_STEPS) {
        return "the window is within its limits";
    }
    if (core->phase == TASK_EXIT) {
        return NULL;
    }
    if ((core->phase == TASK_JOIN) != (core->generation.number == 0)) {
        return "a task is in a generation unless it joins";
    }
    if (core->joins && !core->warm) {
        return "only a task that came later joins";
    }
    if (core->code != CADRE_OK && core->phase != TASK_JOIN &&
        (core->phase != TASK_FROZEN || core->reason != REPORT_FAILED)) {
        return "who has failed goes on with nothing";
    }
    if (core->released > core->arrived) {
        return "nothing is released that has not arrived";
    }
    if (core->report_due && (core->phase != TASK_FROZEN || !core->applying)) {
        return "a report waits only for a running apply";
    }
    if (core->staged && (core->phase != TASK_SYNC || core->clean)) {
        return "who receives beside its state is in no generation yet";
    }
    if (core->applying && core->clean) {
        return "a state that is being written is not clean";
    }
    if (core->phase != TASK_RUN) {
        return core->applying && !core->report_due
                   ? "nothing is applied outside a running generation"
                   : NULL;
    }
    return running_invariant(core);
}
