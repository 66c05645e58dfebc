/* SPDX-License-Identifier: Apache-2.0
 * A turn: steps that gather actions, then one commit, then speech. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

/* A core that asks for "now" more often than this in one event is looping. */
#define TICKS_PER_STEP_MAX 100000

void engine_break(struct engine *engine, const struct cadre_error *error)
{
    if (engine->broken == CADRE_OK) {
        engine->broken = error->code;
        engine->broken_error = *error;
    }
}

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

void engine_answer(struct engine *engine, struct call_id call, cadre_status code, const char *text)
{
    CADRE_ASSERT(!engine->speaking);
    if (engine->broken != CADRE_OK || !make_room(engine)) {
        return;
    }
    struct core_action *action = &engine->turn.items[engine->turn.count++];
    *action =
        (struct core_action){.type = CORE_ACTION_ANSWER, .answer = {.call = call, .code = code}};
    snprintf(action->answer.text, sizeof action->answer.text, "%s", text);
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
                &error, CADRE_RESOURCE_EXHAUSTED, "no memory to tell of %zu jobs", capacity);
            engine_break(engine, &error);
            return;
        }
        engine->changed = grown;
        engine->changed_capacity = capacity;
    }
    engine->changed[engine->changed_count++] = job;
    entry->changed = true;
}

static void note_submitted(struct engine *engine, const struct core_record *record)
{
    CADRE_ASSERT(engine->submitting != NULL);
    engine->submitting->id = record->job;
    struct cadre_error error;
    if (directory_add(&engine->directory, engine->submitting, &error) != CADRE_OK) {
        engine_break(engine, &error);
        return;
    }
    engine->submitting = NULL;
}

static void note_checkpoint(struct directory_entry *entry, const struct core_record *record)
{
    snprintf(entry->checkpoint, sizeof entry->checkpoint, "%u/%s", record->checkpoint.slot,
        record->checkpoint.path);
}

/* Keeps the directory in step with what the core decided. */
static void note_record(struct engine *engine, const struct core_record *record)
{
    if (record->type == CORE_RECORD_JOB) {
        note_submitted(engine, record);
        return;
    }
    struct directory_entry *entry = directory_find(&engine->directory, record->job);
    if (entry == NULL) {
        CADRE_ASSERT(engine->broken != CADRE_OK); /* its submission found no memory */
        return;
    }
    switch (record->type) {
    case CORE_RECORD_STARTED:
        entry->started_us = clock_wall_us();
        break;
    case CORE_RECORD_PLAN:
        entry->generation = record->plan.generation.number;
        break;
    case CORE_RECORD_WATERMARK:
        entry->position = record->watermark.up_to;
        break;
    case CORE_RECORD_CHECKPOINT:
        note_checkpoint(entry, record);
        break;
    case CORE_RECORD_DONE:
        entry->position = record->done.position;
        break;
    case CORE_RECORD_TASK_EXIT:
        CADRE_ASSERT(record->task_exit.slot < entry->task_count);
        entry->tasks[record->task_exit.slot].incarnation = record->task_exit.incarnation;
        entry->tasks[record->task_exit.slot].state = record->task_exit.state;
        entry->tasks[record->task_exit.slot].has_exit = record->task_exit.state == TASK_EXITED;
        entry->tasks[record->task_exit.slot].exit = record->task_exit.exit;
        break;
    case CORE_RECORD_ENDED:
        entry->ended_us = clock_wall_us();
        entry->state = record->ended.state;
        entry->code = record->ended.code;
        entry->exit_code = record->ended.exit_code;
        memcpy(entry->text, record->ended.text, sizeof entry->text);
        break;
    case CORE_RECORD_JOB:
    case CORE_RECORD_END_OF_DATA:
        break;
    }
}

static void step_once(struct engine *engine, const struct core_event *event)
{
    if (engine->broken != CADRE_OK || !make_room(engine)) {
        return;
    }
    size_t before = engine->turn.count;
    core_step(engine->core, event, &engine->turn);
    for (size_t i = before; i < engine->turn.count; i++) {
        if (engine->turn.items[i].type == CORE_ACTION_RECORD) {
            note_record(engine, &engine->turn.items[i].record);
        }
    }
}

void engine_step(struct engine *engine, const struct core_event *event)
{
    CADRE_ASSERT(!engine->speaking);
    engine->now_us = event->now_us;
    step_once(engine, event);
    struct core_event tick = {.type = CORE_EVENT_TICK, .now_us = event->now_us};
    for (unsigned n = 0; core_wake_us(engine->core) <= event->now_us; n++) {
        CADRE_ASSERT(n < TICKS_PER_STEP_MAX);
        if (engine->broken != CADRE_OK) {
            return;
        }
        step_once(engine, &tick);
    }
}

static cadre_status fill_record(struct engine *engine, const struct core_record *record,
    struct store_record *ret_record, struct cadre_error *error)
{
    const struct directory_entry *entry = directory_find(&engine->directory, record->job);
    CADRE_ASSERT(entry != NULL);
    *ret_record = (struct store_record){.record = record};
    switch (record->type) {
    case CORE_RECORD_JOB:
        ret_record->wall_us = entry->submitted_us;
        ret_record->spec = entry->packed.bytes;
        ret_record->spec_bytes = entry->packed.size;
        return CADRE_OK;
    case CORE_RECORD_STARTED:
        ret_record->wall_us = entry->started_us;
        return CADRE_OK;
    case CORE_RECORD_ENDED:
        ret_record->wall_us = entry->ended_us;
        return CADRE_OK;
    case CORE_RECORD_PLAN: {
        uint8_t *roster = NULL;
        CADRE_TRY(
            engine_pack_roster(engine, record->job, &roster, &ret_record->roster_bytes, error));
        ret_record->roster = roster;
        return CADRE_OK;
    }
    default:
        return CADRE_OK;
    }
}

static void free_records(struct store_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (records[i].record->type == CORE_RECORD_PLAN) {
            free((void *)(uintptr_t)records[i].roster);
        }
    }
    free(records);
}

/* One transaction for every record of the turn. */
static cadre_status commit(struct engine *engine, struct cadre_error *error)
{
    size_t count = 0;
    for (size_t i = 0; i < engine->turn.count; i++) {
        count += engine->turn.items[i].type == CORE_ACTION_RECORD ? 1 : 0;
    }
    if (count == 0) {
        return CADRE_OK;
    }
    struct store_record *records = calloc(count, sizeof *records);
    if (records == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to commit %zu records", count);
    }
    bool sync = false;
    size_t filled = 0;
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < engine->turn.count && status == CADRE_OK; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type == CORE_ACTION_RECORD) {
            status = fill_record(engine, &action->record, &records[filled], error);
            filled += status == CADRE_OK ? 1 : 0;
            sync = sync || action->record.sync;
        }
    }
    if (status == CADRE_OK) {
        status = engine->store->ops->commit(engine->store, records, filled, sync, error);
    }
    free_records(records, filled);
    return status;
}

/* The spec's packed form is in the store now. */
static void drop_packed(struct engine *engine)
{
    for (size_t i = 0; i < engine->turn.count; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type == CORE_ACTION_RECORD && action->record.type == CORE_RECORD_JOB) {
            wire_buffer_free(&directory_find(&engine->directory, action->record.job)->packed);
        }
    }
}

/* A later release of the same job in this turn says everything an earlier one does. */
static bool is_outdated(const struct engine *engine, size_t index)
{
    const struct core_action *action = &engine->turn.items[index];
    if (action->type != CORE_ACTION_TELL_JOB || action->tell_job.tell != CORE_TELL_RELEASE ||
        action->tell_job.one) {
        return false;
    }
    for (size_t i = index + 1; i < engine->turn.count; i++) {
        const struct core_action *later = &engine->turn.items[i];
        if (later->type == CORE_ACTION_TELL_JOB && later->tell_job.tell == CORE_TELL_RELEASE &&
            !later->tell_job.one && later->tell_job.job.n == action->tell_job.job.n &&
            generation_equal(later->tell_job.generation, action->tell_job.generation)) {
            return true;
        }
    }
    return false;
}

static cadre_status forget_surplus(struct engine *engine, struct cadre_error *error)
{
    struct directory_entry *oldest;
    while ((oldest = directory_surplus(&engine->directory, engine->options.keep_jobs)) != NULL) {
        struct job_id job = oldest->id;
        CADRE_TRY(engine->store->ops->forget(engine->store, job, error));
        directory_remove(&engine->directory, job);
        engine->sink.job_forgotten(engine->user, job);
    }
    return CADRE_OK;
}

/* Everything of the turn that is no record; true when a job ended in it. */
static bool speak_turn(struct engine *engine)
{
    bool ended = false;
    for (size_t i = 0; i < engine->turn.count && engine->broken == CADRE_OK; i++) {
        const struct core_action *action = &engine->turn.items[i];
        ended = ended || action->type == CORE_ACTION_JOB_ENDED;
        if (action->type != CORE_ACTION_RECORD && !is_outdated(engine, i)) {
            engine_speak(engine, action);
        }
    }
    engine->turn.count = 0;
    for (size_t i = 0; i < engine->changed_count; i++) {
        directory_find(&engine->directory, engine->changed[i])->changed = false;
        engine->sink.job_changed(engine->user, engine->changed[i]);
    }
    engine->changed_count = 0;
    return ended;
}

cadre_status engine_flush(struct engine *engine, uint64_t now_us, struct cadre_error *error)
{
    engine->now_us = now_us;
    if (engine->broken != CADRE_OK) {
        *error = engine->broken_error;
        return engine->broken;
    }
    if (engine->turn.count == 0 && engine->changed_count == 0) {
        return CADRE_OK;
    }
    cadre_status status = commit(engine, error);
    if (status != CADRE_OK) {
        engine_break(engine, error);
        return status;
    }
    drop_packed(engine);
    engine->speaking = true;
    bool ended = speak_turn(engine);
    if (ended && engine->broken == CADRE_OK && forget_surplus(engine, error) != CADRE_OK) {
        engine_break(engine, error);
    }
    engine->speaking = false;
    if (engine->broken != CADRE_OK) {
        *error = engine->broken_error;
    }
    return engine->broken;
}
