/* SPDX-License-Identifier: Apache-2.0
 * The records of a turn: applied to the directory at once, and filled for the store when the turn
 * ends. turn.c calls it. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

/* ---- placements ---- */

/* NULL: no memory, and the engine is broken. */
static const struct placements *keep_placements(struct engine *engine, size_t action)
{
    const struct core_record *record = &engine->turn.items[action].record;
    if (engine->target_count == engine->placement_capacity) {
        size_t capacity = engine->placement_capacity > 0 ? engine->placement_capacity * 2 : 4;
        struct turn_placements *grown = realloc(engine->placements, capacity * sizeof *grown);
        engine->placements = grown != NULL ? grown : engine->placements;
        engine->placement_capacity = grown != NULL ? capacity : engine->placement_capacity;
    }
    struct placements made;
    bool kept = placements_keep(engine->core, record, &made);
    if (engine->target_count == engine->placement_capacity || !kept) {
        struct cadre_error error;
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to record the places of job %llu", (unsigned long long)record->job.n);
        engine_break(engine, &error);
        placements_drop(&made);
        return NULL;
    }
    struct turn_placements *at = &engine->placements[engine->target_count++];
    *at = (struct turn_placements){.action = action, .of = made};
    return &at->of;
}

static const struct placements *note_started(
    struct engine *engine, struct directory_entry *entry, size_t action)
{
    const struct placements *placements = keep_placements(engine, action);
    for (size_t i = 0; placements != NULL && i < placements->count; i++) {
        const struct store_placement *placement = &placements->items[i];
        directory_task_placed(entry, placement->slot, placement->incarnation, placement->worker);
    }
    return placements;
}

void engine_drop_placements(struct engine *engine)
{
    for (size_t i = 0; i < engine->target_count; i++) {
        placements_drop(&engine->placements[i].of);
    }
    engine->target_count = 0;
}

/* ---- into the directory ---- */

static void note_submitted(struct engine *engine, const struct core_record *record)
{
    CADRE_ASSERT(engine->submitting != NULL);
    engine->submitting->id = record->job;
    struct cadre_error error;
    if (directory_add(&engine->directory, engine->submitting, &error) != CADRE_OK) {
        engine_break(engine, &error);
        return;
    }
    engine_history_record(engine, engine->submitting, record, NULL);
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
    if (directory_checkpoints_surplus(entry) > 0) {
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
        engine_history_record(engine, NULL, record, NULL);
        return; /* of a worker */
    }
    const struct placements *placements = NULL;
    struct directory_entry *entry = directory_find(&engine->directory, record->job);
    if (entry == NULL) {
        CADRE_ASSERT(engine->broken != CADRE_OK); /* its submission found no memory */
        return;
    }
    switch (record->type) {
    case CORE_RECORD_STARTED:
        entry->started_us = clock_wall_us();
        placements = note_started(engine, entry, action);
        break;
    case CORE_RECORD_QUEUED:
        entry->started_us = 0;
        break;
    case CORE_RECORD_TASK:
        directory_task_placed(
            entry, record->task.slot, record->task.incarnation, record->task.worker);
        break;
    case CORE_RECORD_PLAN:
        entry->generation = record->plan.generation.number;
        entry->restarts = record->plan.restarts;
        entry->position = record->plan.resume;
        if (entry->verified.position > record->plan.resume) {
            entry->verified = (struct verified){0};
        }
        placements = keep_placements(engine, action);
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
    case CORE_RECORD_CONSUMED:
    case CORE_RECORD_STREAM:
    case CORE_RECORD_END_OF_DATA:
    case CORE_RECORD_BACKED:
    case CORE_RECORD_PUBLISHED:
    case CORE_RECORD_DIVERGED:
    case CORE_RECORD_CULPRIT:
    case CORE_RECORD_DRAINED:
    case CORE_RECORD_UNDRAINED:
        break;
    case CORE_RECORD_CHECKPOINT_DROPPED:
    case CORE_RECORD_FORGOTTEN:
    case CORE_RECORD_TERM:
        CADRE_ASSERT(false); /* the engine's, of no step */
        break;
    }
    engine_history_record(engine, entry, record, placements);
}

/* ---- for the store ---- */

static const struct placements *placements_of(const struct engine *engine, size_t action)
{
    size_t low = 0;
    size_t high = engine->target_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (engine->placements[middle].action < action) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < engine->target_count && engine->placements[low].action == action;
    return found ? &engine->placements[low].of : NULL;
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
    switch (record->type) {
    case CORE_RECORD_JOB:
        ret_record->wall_us = entry->submitted_us;
        ret_record->spec = entry->packed.bytes;
        ret_record->spec_bytes = entry->packed.size;
        break;
    case CORE_RECORD_STARTED:
        ret_record->wall_us = entry->started_us;
        break;
    case CORE_RECORD_PLAN:
        ret_record->wall_us = clock_wall_us();
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
    const struct placements *placements =
        placements_wanted(record) ? placements_of(engine, action) : NULL;
    if (placements != NULL) {
        placements_fill(placements, ret_record);
    }
}
