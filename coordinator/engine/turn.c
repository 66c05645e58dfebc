/* SPDX-License-Identifier: Apache-2.0
 * A turn: steps that gather actions, then one commit, then messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"
#include "coordinator/engine/synced_first.h"

/* A core that requests "now" more often than this in one event is looping. */
#define TICKS_PER_STEP_MAX 100000

static bool make_room(struct engine *engine)
{
    struct core_actions *turn = &engine->turn;
    if (turn->capacity - turn->count >= CORE_ACTIONS_PER_STEP_MAX) {
        return true;
    }
    size_t capacity = turn->capacity > 0 ? turn->capacity * 2 : 4 * CORE_ACTIONS_PER_STEP_MAX;
    struct core_action *grown = realloc(turn->items, capacity * sizeof *grown);
    if (grown == NULL) {
        struct cadre_error error;
        cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu actions of a turn", capacity);
        engine_break(engine, &error);
        return false;
    }
    turn->items = grown;
    turn->capacity = capacity;
    return true;
}

void engine_add_forget(struct engine *engine, struct job_id job, struct link_id link)
{
    if (engine->broken == CADRE_OK && make_room(engine)) {
        engine->turn.items[engine->turn.count++] = (struct core_action){
            .type = CORE_ACTION_FORGET_JOB, .forget_job = {.job = job, .link = link}};
    }
}

static void add_answer(struct engine *engine, struct call_id call, cadre_status code,
    struct job_id job, const char *text)
{
    CADRE_ASSERT(!engine->sending);
    if (engine->broken != CADRE_OK || !make_room(engine)) {
        return;
    }
    struct core_action *action = &engine->turn.items[engine->turn.count++];
    *action = (struct core_action){
        .type = CORE_ACTION_ANSWER, .answer = {.call = call, .code = code, .job = job}};
    snprintf(action->answer.text, sizeof action->answer.text, "%s", text);
}

void engine_answer(struct engine *engine, struct call_id call, cadre_status code, const char *text)
{
    add_answer(engine, call, code, (struct job_id){0}, text);
}

void engine_answer_job(struct engine *engine, struct call_id call, struct job_id job)
{
    add_answer(engine, call, CADRE_OK, job, "");
}

void engine_add_record(struct engine *engine, const struct core_record *record)
{
    CADRE_ASSERT(!engine->sending);
    if (engine->broken != CADRE_OK || !make_room(engine)) {
        return;
    }
    engine->turn.items[engine->turn.count] =
        (struct core_action){.type = CORE_ACTION_RECORD, .record = *record};
    engine_note_record(engine, engine->turn.count++);
}

void engine_note_changed(struct engine *engine, struct job_id job)
{
    struct directory_entry *entry = directory_find(&engine->directory, job);
    if (entry == NULL || entry->changed) {
        return;
    }
    if (engine->changed_count == engine->changed_capacity) {
        size_t capacity = engine->changed_capacity > 0 ? engine->changed_capacity * 2 : 16;
        struct job_id *grown = realloc(engine->changed, capacity * sizeof *grown);
        if (grown == NULL) {
            struct cadre_error error;
            cadre_error_set(
                &error, CADRE_RESOURCE_EXHAUSTED, "no memory to notify of %zu jobs", capacity);
            engine_break(engine, &error);
            return;
        }
        engine->changed = grown;
        engine->changed_capacity = capacity;
    }
    engine->changed[engine->changed_count++] = job;
    entry->changed = true;
}

/* The core's invariants, of the jobs that the step changed: after each one in debug builds, and in
 * those for AddressSanitizer, in which all tests run. */
static void check_core(const struct engine *engine)
{
#if !defined NDEBUG || defined __SANITIZE_ADDRESS__
    const char *broken = core_invariant(engine->core, false);
    if (broken != NULL) {
        cadre_panic(broken, __FILE__, __LINE__);
    }
#else
    (void)engine;
#endif
}

static void step_once(struct engine *engine, const struct core_event *event)
{
    if (engine->broken != CADRE_OK || !make_room(engine)) {
        return;
    }
    size_t before = engine->turn.count;
    core_step(engine->core, event, &engine->turn);
    check_core(engine);
    for (size_t i = before; i < engine->turn.count; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type == CORE_ACTION_RECORD) {
            engine_note_record(engine, i);
        } else if (action->type == CORE_ACTION_JOB_CHANGED) {
            engine_history_changed(engine, action->job);
        }
    }
}

void engine_step(struct engine *engine, const struct core_event *event)
{
    CADRE_ASSERT(!engine->sending);
    uint64_t at_us = hold_core_time(&engine->hold, event->now_us);
    struct core_event then;
    engine->now_us = event->now_us;
    if (at_us != event->now_us) {
        then = *event;
        then.now_us = at_us;
        event = &then;
    }
    step_once(engine, event);
    struct core_event tick = {.type = CORE_EVENT_TICK, .now_us = at_us};
    for (unsigned n = 0; core_wake_us(engine->core) <= at_us; n++) {
        CADRE_ASSERT(n < TICKS_PER_STEP_MAX);
        if (engine->broken != CADRE_OK) {
            return;
        }
        step_once(engine, &tick);
    }
}

uint64_t engine_sync_due_us(const struct engine *engine)
{
    bool waits = engine->unsynced && engine->options.sync_us > 0;
    return waits
               ? lagging_due_us(&engine->log.lagging, engine->unsynced_us, engine->options.sync_us)
               : CADRE_TIME_NEVER;
}

static void note_synced(struct engine *engine, bool synced)
{
    if (synced) {
        engine->unsynced = false;
    } else if (!engine->unsynced) {
        engine->unsynced = true;
        engine->unsynced_us = engine->now_us;
    }
}

static size_t count_records(const struct engine *engine)
{
    size_t count = engine->history.count + engine->removals.count + (engine->term_unstored ? 1 : 0);
    for (size_t i = 0; i < engine->turn.count; i++) {
        count += engine->turn.items[i].type == CORE_ACTION_RECORD ? 1 : 0;
    }
    return count;
}

/* The start of the coordinator before all else, and what is not kept any more after it. */
static void fill_records(
    const struct engine *engine, const struct core_record *term, struct store_record *records)
{
    size_t filled = 0;
    if (engine->term_unstored) {
        records[filled++] = (struct store_record){.record = term};
    }
    for (size_t i = 0; i < engine->turn.count; i++) {
        if (engine->turn.items[i].type == CORE_ACTION_RECORD) {
            engine_fill_record(engine, i, &records[filled++]);
        }
    }
    for (size_t i = 0; i < engine->history.count; i++) {
        engine_history_fill(engine, i, &records[filled++]);
    }
    for (size_t i = 0; i < engine->removals.count; i++) {
        records[filled++] = (struct store_record){.record = &engine->removals.items[i]};
    }
}

/* Whether the turn is on the disk before it is sent. `ends_wait`: ends of tasks are not there yet.
 */
static bool wants_sync(
    const struct engine *engine, bool ends_wait, const struct store_record *records, size_t count)
{
    bool sync = engine_sync_due_us(engine) <= engine->now_us ||
                (ends_wait && synced_first_tells(&engine->turn));
    for (size_t i = 0; i < count && !sync; i++) {
        sync = records[i].record != NULL && records[i].record->sync;
    }
    return sync;
}

/* One transaction for every record of the turn. */
static cadre_status store_turn(struct engine *engine, struct cadre_error *error)
{
    const struct core_record term = {
        .type = CORE_RECORD_TERM, .sync = true, .start = engine->term.start};
    bool ends_wait = engine->ends_unsynced || synced_first_records(&engine->turn);
    CADRE_TRY(engine_find_removals(engine, error));
    size_t count = count_records(engine);
    CADRE_FREE_AT_EXIT struct store_record *records = calloc(count + 1, sizeof *records);
    if (records == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to commit %zu records", count);
    }
    fill_records(engine, &term, records);
    bool sync = wants_sync(engine, ends_wait, records, count);
    if (engine->options.log != NULL) {
        const struct store_record *events =
            records + (count - engine->removals.count - engine->history.count);
        bool due = engine_sync_due_us(engine) <= engine->now_us;
        engine_count_turn(engine);
        return engine_log_turn(engine, records, count, events, due, error);
    }
    if (count == 0 && !sync) {
        return CADRE_OK;
    }
    uint64_t began_us = clock_monotonic_us();
    CADRE_TRY(engine->store->ops->commit(engine->store, records, count, sync, error));
    engine_count_turn(engine);
    histogram_add(&engine->counts.commit, clock_monotonic_us() - began_us);
    engine->counts.commits++;
    engine->history.count = 0;
    engine->term_unstored = false;
    engine->ends_unsynced = ends_wait && !sync;
    note_synced(engine, sync);
    return CADRE_OK;
}

static struct newest_messages *newest_messages(void *user, struct job_id job)
{
    const struct engine *engine = user;
    struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL ? &entry->newest : NULL;
}

static void count_releases(struct engine *engine, uint64_t releases)
{
    engine->counts.releases += releases;
    if (releases > 0 && engine->arrived_us != 0) {
        histogram_add(&engine->counts.release, clock_monotonic_us() - engine->arrived_us);
    }
    engine->arrived_us = 0;
}

static bool is_idle(const struct engine *engine)
{
    return engine->turn.count == 0 && engine->history.count == 0 && engine->changed_count == 0 &&
           !engine->surplus && engine->removals.asked == 0 && !engine->term_unstored &&
           !engine->hold.held && !engine_log_has_stored(engine) &&
           engine_sync_due_us(engine) > engine->now_us;
}

/* Watchers are notified. */
static void send_changed(struct engine *engine)
{
    for (size_t i = 0; i < engine->changed_count; i++) {
        struct directory_entry *entry = directory_find(&engine->directory, engine->changed[i]);
        if (entry == NULL) {
            continue; /* its removal was stored meanwhile */
        }
        uint64_t awaited = engine_log_awaited_change(engine, entry);
        entry->changed = false;
        if (awaited != 0) {
            const struct delayed_item item = {
                .kind = DELAYED_CHANGED, .entry = awaited, .job = engine->changed[i]};
            engine_log_delay(engine, &item, NULL, 0);
        } else {
            engine->sink.job_changed(engine->user, engine->changed[i]);
        }
    }
    engine->changed_count = 0;
}

/* Everything of the turn that is no record. */
static void send_turn(struct engine *engine)
{
    uint64_t releases = 0;
    const struct newest_of newest = {.find = newest_messages, .user = engine};
    outdated_note(&engine->turn, &newest);
    for (size_t i = 0; i < engine->turn.count && engine->broken == CADRE_OK; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type != CORE_ACTION_RECORD && !outdated_is(&engine->turn, i, &newest)) {
            engine_send(engine, action);
            releases += outdated_is_message(action, CORE_MESSAGE_RELEASE) ? 1 : 0;
        }
    }
    count_releases(engine, releases);
    engine->turn.count = 0;
    engine_drop_placements(engine);
    send_changed(engine);
}

cadre_status engine_flush(struct engine *engine, uint64_t now_us, struct cadre_error *error)
{
    CADRE_ASSERT(!engine->reads_only);
    engine->now_us = now_us;
    if (engine->broken != CADRE_OK) {
        *error = engine->broken_error;
        return engine->broken;
    }
    if (is_idle(engine) || hold_waits(&engine->hold, now_us)) {
        engine->arrived_us = engine->hold.held ? engine->arrived_us : 0;
        return CADRE_OK;
    }
    cadre_status status = store_turn(engine, error);
    if (status != CADRE_OK && engine->options.log == NULL &&
        hold_takes(&engine->hold, now_us, engine->options.retry_us, engine->turn.count, error)) {
        return CADRE_OK;
    }
    if (status != CADRE_OK) {
        engine_break(engine, error);
        return status;
    }
    engine_note_stored(engine);
    engine->sending = true;
    engine_log_send_stored(engine);
    send_turn(engine);
    if (engine->broken == CADRE_OK) {
        engine_remove(engine);
    }
    engine->sending = false;
    if (engine->broken != CADRE_OK) {
        *error = engine->broken_error;
    }
    return engine->broken;
}
