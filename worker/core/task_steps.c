/* SPDX-License-Identifier: Apache-2.0
 * The steps of the program: begun, waited for, applied; and the runs and epochs that they are of.
 * task_core.c calls it. */
#include "worker/core/task_internal.h"

#include <string.h>

#include "common/pure/assert.h"

void task_on_apply(struct task_core *core, uint64_t position)
{
    CADRE_ASSERT(!core->applying);
    /* Rule 10: a frozen task does not apply: `applying` stays false. */
    if (core->phase != TASK_RUN) {
        return;
    }
    CADRE_ASSERT(position == core->position);
    CADRE_ASSERT(core->released > position);
    CADRE_ASSERT(core->clean); /* a step is applied to a whole state */
    core->applying = true;
    core->clean = false;
    core->begun = true;
    core->begun_stream = core->cursor.stream;
    core->begun_nested = core->cursor.nested;
}

/* A task that is alone and can go straight on with its next step says what is due as that begins,
 * or by a tick: no other one waits for it, and the coordinator takes a lone task that stands still
 * for slow only if its newest arrival says that it is within a step. */
static bool says_as_next_begins(const struct task_core *core)
{
    bool goes_on = core->released > core->position && core->ready > core->position;
    return core->alone && !core->plain && goes_on;
}

void task_on_applied(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase == TASK_EXIT) {
        core->applying = false;
        return;
    }
    CADRE_ASSERT(core->applying);
    CADRE_ASSERT(event->position == core->position);
    CADRE_ASSERT(!core->clean);
    CADRE_ASSERT(core->position < core->released); /* a release is never taken back */
    core->applying = false;
    core->clean = true;
    core->position++;
    core->begun = false;
    core->consumption = event->consumption;
    if (core->report_due) {
        task_send_report(core, out);
        return;
    }
    task_settle(core, out);
    if (!says_as_next_begins(core)) {
        task_arrive(core, false, out);
    }
}

/* The program takes the step at its position. A frozen task reports it once more, because it
 * decides whether a joiner can begin at the survivors' position, and no other message has it. */
static void begin_step(
    struct task_core *core, const struct cursor *cursor, struct task_actions *out)
{
    CADRE_ASSERT(core->phase != TASK_EXIT);
    bool news = !core->begun || core->begun_stream != cursor->stream ||
                core->begun_nested != cursor->nested;
    core->begun = true;
    core->begun_stream = cursor->stream;
    core->begun_nested = cursor->nested;
    if (core->phase == TASK_RUN) {
        CADRE_ASSERT(core->wanted <= core->position + 1); /* steps are begun in order */
        core->wanted = core->position + 1;
    } else if (news && core->phase == TASK_FROZEN && !core->report_due &&
               (core->reason == REPORT_ABORT || core->reason == REPORT_PEER_ERROR)) {
        task_send_report(core, out);
    }
}

/* Whether the program has begun a step and no arrival of this generation says so. */
static bool is_unsent_begun(const struct task_core *core)
{
    return core->phase == TASK_RUN && core->wanted > core->wanted_sent;
}

/* A stall at the first step of a generation is unavoidable, because no step could be claimed
 * earlier. The wait is reported even when there is nothing to claim, because another task
 * may have finished, and the step can then never be released. */
void task_on_stalled(struct task_core *core, uint64_t position, struct task_actions *out)
{
    if (core->phase != TASK_RUN) {
        return;
    }
    CADRE_ASSERT(position == core->position);
    CADRE_ASSERT(core->wanted > core->resume); /* READY comes first in each generation */
    bool avoidable = position > core->resume && position != core->halt_at;
    if (avoidable && core->window_steps < LIMIT_WINDOW_STEPS) {
        core->window_steps *= 2;
        core->window_least = core->window_steps;
    }
    CADRE_ASSERT(core->window_steps <= LIMIT_WINDOW_STEPS);
    begin_step(core, &core->cursor, out);
    task_settle(core, out);
    task_arrive(core, true, out);
    if (is_unsent_begun(core)) {
        task_send_arrive(core, out);
    }
}

/* The epoch is left: no later arrival reports it. */
static void keep_consumed(struct task_core *core)
{
    if (core->consumption.steps == 0 || core->cursor.stream == 0 ||
        core->position <= core->resume) {
        return;
    }
    CADRE_ASSERT(core->consumed_count <= TASK_CONSUMED_MAX);
    if (core->consumed_count == TASK_CONSUMED_MAX) {
        core->consumed_count--;
        memmove(
            core->consumed, core->consumed + 1, sizeof(core->consumed[0]) * core->consumed_count);
    }
    CADRE_ASSERT(core->consumed_count < TASK_CONSUMED_MAX);
    core->consumed[core->consumed_count++] = (struct task_consumed){
        .cursor = core->cursor, .applied = core->position, .consumption = core->consumption};
    /* Also when the arrival before had all of it: the daemon keeps it once the task has turned. */
    if (core->consumed_unsent < core->consumed_count) {
        core->consumed_unsent++;
    }
}

/* The first run of a generation is reported before any step of it: a plan begins all runs again,
 * because a joiner has no record of where its run began. Later ones are reported when more steps
 * are claimed: a program that left an epoch early has claimed steps of it that belong to the
 * following runs. Frozen, or before SYNCED, only `begun` is taken, because the position may still
 * change. */
void task_on_ready(struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase != TASK_RUN) {
        begin_step(core, &event->cursor, out);
        return;
    }
    CADRE_ASSERT(!core->applying); /* the step before it is done */
    struct cursor cursor = event->cursor;
    cursor.begin = cursor.begin > core->resume ? cursor.begin : core->resume;
    CADRE_ASSERT(cursor.begin <= core->position);
    bool first = core->wanted == core->resume;
    if (cursor.stream != core->cursor.stream || cursor.epoch != core->cursor.epoch) {
        if (first && core->consumption.steps > 0) {
            task_send_arrive(core, out); /* what the epoch before the plan consumed to its end */
        }
        keep_consumed(core);
        core->consumption = event->consumption;
    }
    uint64_t ready = event->position < POSITION_MAX ? event->position : POSITION_MAX;
    CADRE_ASSERT(core->arrived <= POSITION_MAX + LIMIT_WINDOW_STEPS);
    core->ready = ready;
    core->cursor = cursor;
    begin_step(core, &cursor, out);
    task_settle(core, out);
    bool due = first || core->consumed_unsent == TASK_CONSUMED_MAX; /* else the next drops one */
    bool relay_up = task_arrive(core, due, out);
    if (due && !relay_up && core->phase == TASK_RUN) {
        task_send_arrive(core, out);
    }
}

/* Sends its position even if that alone is not worth a message: a checkpoint is published when all
 * members have reported its position in their generation, and a task that takes no further step has
 * no other message for it. */
void task_on_flush(struct task_core *core, struct task_actions *out)
{
    bool compared = core->verified.digest != 0 && !core->verified_sent;
    bool news = core->position > core->sent_applied || is_unsent_begun(core) || compared ||
                task_is_silent(core);
    CADRE_ASSERT(core->phase != TASK_RUN || core->sent_applied <= core->position);
    if (!task_arrive(core, true, out) && core->phase == TASK_RUN && news) {
        task_send_arrive(core, out);
    }
}

/* The steps after its last arrival are reported with a later step, and so is one that is begun; a
 * program that takes none for long would never report them, nor that it is in a step for long. A
 * task that takes steps needs no tick. */
void task_on_tick(struct task_core *core, struct task_actions *out)
{
    bool is_idle = core->position == core->ticked;
    core->ticked = core->position;
    CADRE_ASSERT(core->phase != TASK_EXIT);
    if (is_idle && (core->position > core->sent_applied || is_unsent_begun(core))) {
        task_on_flush(core, out);
    }
}

/* Sent at once: no later step carries it, and joiners that wait for a step of this epoch wait for
 * it. */
void task_on_end(struct task_core *core, const struct cursor *ended, struct task_actions *out)
{
    struct cursor *cursor = &core->cursor;
    bool is_idle = cursor->stream == ended->stream && cursor->epoch == ended->epoch;
    bool inside = cursor->begin >= cursor->first && cursor->begin - cursor->first < ended->steps;
    if (!is_idle || cursor->steps > 0 || !inside || core->phase != TASK_RUN) {
        return;
    }
    CADRE_ASSERT(ended->steps > 0); /* the run began inside of it */
    cursor->steps = ended->steps;
    if (core->wanted > core->resume) {
        task_send_arrive(core, out);
    }
}
