/* SPDX-License-Identifier: Apache-2.0
 * The records of a turn: what the directory takes notice of at once, and what the store is told
 * when the turn ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

/* ---- who was placed where ---- */

/* Room for the places of the record at `action`; NULL: no memory, and the engine is broken. */
static struct turn_places *new_places(struct engine *engine, size_t action, uint32_t tasks)
{
    if (engine->place_count == engine->place_capacity) {
        size_t capacity = engine->place_capacity > 0 ? engine->place_capacity * 2 : 4;
        struct turn_places *grown = realloc(engine->places, capacity * sizeof *grown);
        engine->places = grown != NULL ? grown : engine->places;
        engine->place_capacity = grown != NULL ? capacity : engine->place_capacity;
    }
    struct turn_places made = {.action = action,
        .places = calloc((size_t)tasks + 1, sizeof *made.places),
        .workers = calloc((size_t)tasks + 1, sizeof *made.workers)};
    if (engine->place_count == engine->place_capacity || made.places == NULL ||
        made.workers == NULL) {
        struct cadre_error error;
        cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "no memory to record the places of %u tasks", tasks);
        engine_break(engine, &error);
        free(made.places);
        free(made.workers);
        return NULL;
    }
    engine->places[engine->place_count] = made;
    return &engine->places[engine->place_count++];
}

static void add_place(
    struct turn_places *places, const struct core_task_view *task, const char *worker)
{
    snprintf(places->workers[places->count], LIMIT_NAME_BYTES, "%s", worker);
    places->places[places->count] = (struct store_place){.slot = task->slot,
        .incarnation = task->incarnation,
        .lives = task->lives,
        .lives_in = task->lives_in,
        .worker = places->workers[places->count]};
    places->count++;
}

static void keep_started(struct engine *engine, struct directory_entry *entry, size_t action)
{
    struct core_job_view view;
    if (!core_job(engine->core, entry->id, &view)) {
        return; /* it ended in the same step */
    }
    struct turn_places *places = new_places(engine, action, view.tasks);
    for (uint32_t slot = 0; places != NULL && slot < view.tasks; slot++) {
        struct core_task_view task;
        core_job_task(engine->core, entry->id, slot, &task);
        if (task.worker.n != 0) {
            add_place(places, &task, task.worker_name);
            directory_task_place(entry, slot, task.incarnation, task.worker_name);
        }
    }
}

static void keep_roster(struct engine *engine, struct job_id job, size_t action)
{
    struct core_job_view view;
    if (!core_job(engine->core, job, &view)) {
        return;
    }
    struct turn_places *places = new_places(engine, action, view.roster);
    for (uint32_t rank = 0; places != NULL && rank < view.roster; rank++) {
        struct core_task_view task;
        core_job_task(engine->core, job, core_job_member(engine->core, job, rank), &task);
        add_place(places, &task, "");
    }
}

void engine_drop_places(struct engine *engine)
{
    for (size_t i = 0; i < engine->place_count; i++) {
        free(engine->places[i].places);
        free(engine->places[i].workers);
    }
    engine->place_count = 0;
}

/* ---- taking notice ---- */

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

static void note_checkpoint(
    struct engine *engine, struct directory_entry *entry, const struct core_checkpoint *checkpoint)
{
    struct cadre_error error;
    if (directory_checkpoint_add(entry, checkpoint, &error) != CADRE_OK) {
        engine_break(engine, &error);
        return;
    }
    if (checkpoint->digest != 0 && checkpoint->position >= entry->verified.position) {
        entry->verified = (struct verified){checkpoint->position, checkpoint->digest};
    }
    if (directory_checkpoint_surplus(entry) != NULL) {
        engine_note_surplus(engine, entry->id);
    }
}

static void note_ended(struct directory_entry *entry, const struct core_ending *ended)
{
    entry->end_unstored = true;
    entry->ended_us = clock_wall_us();
    entry->state = ended->state;
    entry->code = ended->code;
    entry->exit_code = ended->exit_code;
    memcpy(entry->text, ended->text, sizeof entry->text);
}

void engine_note_record(struct engine *engine, size_t action)
{
    const struct core_record *record = &engine->turn.items[action].record;
    if (record->type == CORE_RECORD_JOB) {
        note_submitted(engine, record);
        return;
    }
    if (record->job.n == 0) {
        return; /* a drain */
    }
    struct directory_entry *entry = directory_find(&engine->directory, record->job);
    if (entry == NULL) {
        CADRE_ASSERT(engine->broken != CADRE_OK); /* its submission found no memory */
        return;
    }
    switch (record->type) {
    case CORE_RECORD_STARTED:
        entry->started_us = clock_wall_us();
        keep_started(engine, entry, action);
        break;
    case CORE_RECORD_QUEUED:
        entry->started_us = 0;
        break;
    case CORE_RECORD_TASK:
        directory_task_place(
            entry, record->task.slot, record->task.incarnation, record->task.worker);
        break;
    case CORE_RECORD_PLAN:
        entry->generation = record->plan.generation.number;
        entry->restarts = record->plan.restarts;
        entry->position = record->plan.resume;
        if (entry->verified.position > record->plan.resume) {
            entry->verified = (struct verified){0};
        }
        keep_roster(engine, record->job, action);
        break;
    case CORE_RECORD_CHECKPOINT:
        note_checkpoint(engine, entry, &record->checkpoint);
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
        directory_checkpoint_lose(entry, &record->lost);
        break;
    case CORE_RECORD_VERIFIED:
        entry->verified = record->verified;
        break;
    case CORE_RECORD_ORIGIN:
        entry->origin = record->checkpoint;
        break;
    case CORE_RECORD_DONE:
        entry->position = record->done.position;
        break;
    case CORE_RECORD_TASK_EXIT:
        directory_task_exit(entry, &(struct store_task_exit){.slot = record->task_exit.slot,
                                       .incarnation = record->task_exit.incarnation,
                                       .state = record->task_exit.state,
                                       .exit = record->task_exit.exit});
        break;
    case CORE_RECORD_ENDING:
        entry->position = engine_position(engine, entry);
        engine_count_steps(engine, entry);
        break;
    case CORE_RECORD_ENDED:
        note_ended(entry, &record->ended);
        directory_note_ended(&engine->directory);
        break;
    case CORE_RECORD_JOB:
    case CORE_RECORD_CONTROL:
    case CORE_RECORD_WATERMARK:
    case CORE_RECORD_FEED:
    case CORE_RECORD_STREAM:
    case CORE_RECORD_END_OF_DATA:
    case CORE_RECORD_BACKED:
    case CORE_RECORD_DRAINED:
    case CORE_RECORD_UNDRAINED:
        break;
    }
}

/* ---- for the store ---- */

static const struct turn_places *places_of(const struct engine *engine, size_t action)
{
    size_t low = 0;
    size_t high = engine->place_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (engine->places[middle].action < action) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < engine->place_count && engine->places[low].action == action;
    return found ? &engine->places[low] : NULL;
}

void engine_fill_record(const struct engine *engine, size_t action, struct store_record *ret_record)
{
    const struct core_record *record = &engine->turn.items[action].record;
    const struct directory_entry *entry = directory_find(&engine->directory, record->job);
    *ret_record = (struct store_record){.record = record};
    if (record->job.n == 0) {
        return;
    }
    CADRE_ASSERT(entry != NULL);
    const struct turn_places *places = NULL;
    switch (record->type) {
    case CORE_RECORD_JOB:
        ret_record->wall_us = entry->submitted_us;
        ret_record->spec = entry->packed.bytes;
        ret_record->spec_bytes = entry->packed.size;
        break;
    case CORE_RECORD_STARTED:
        ret_record->wall_us = entry->started_us;
        places = places_of(engine, action);
        break;
    case CORE_RECORD_PLAN:
        ret_record->wall_us = clock_wall_us();
        places = places_of(engine, action);
        break;
    case CORE_RECORD_ENDING:
        ret_record->committed = entry->position;
        break;
    case CORE_RECORD_ENDED:
        ret_record->wall_us = entry->ended_us;
        break;
    default:
        break;
    }
    if (places != NULL) {
        ret_record->places = places->places;
        ret_record->place_count = places->count;
    }
}
