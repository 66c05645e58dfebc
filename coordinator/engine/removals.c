/* SPDX-License-Identifier: Apache-2.0
 * What is not kept any more: checkpoints beyond what their job keeps, and jobs that ended beyond
 * what the coordinator keeps. It is recorded with the turn that makes it so; it goes, with its
 * files, when that is stored and sent, because no message that was sent names it. */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

static bool is_noted(const struct engine *engine, struct job_id job)
{
    size_t i = 0;
    while (i < engine->surplus_count && engine->surplus_of[i].n != job.n) {
        i++;
    }
    return i < engine->surplus_count;
}

void engine_note_surplus(struct engine *engine, struct job_id job)
{
    engine->surplus = true;
    if (is_noted(engine, job)) {
        return; /* by another checkpoint of this turn */
    }
    if (engine->surplus_count == engine->surplus_capacity) {
        size_t capacity = engine->surplus_capacity > 0 ? engine->surplus_capacity * 2 : 16;
        struct job_id *grown = realloc(engine->surplus_of, capacity * sizeof *grown);
        if (grown == NULL) {
            engine->surplus_of_all = true;
            return;
        }
        engine->surplus_of = grown;
        engine->surplus_capacity = capacity;
    }
    engine->surplus_of[engine->surplus_count++] = job;
}

static cadre_status add_removal(struct engine *engine, enum core_record_type type,
    struct job_id job, uint64_t position, struct cadre_error *error)
{
    struct turn_removals *removals = &engine->removals;
    if (removals->count == removals->capacity) {
        size_t capacity = removals->capacity > 0 ? removals->capacity * 2 : 4;
        struct core_record *grown = realloc(removals->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu removals", capacity);
        }
        removals->items = grown;
        removals->capacity = capacity;
    }
    removals->items[removals->count++] =
        (struct core_record){.type = type, .sync = true, .job = job, .dropped = position};
    return CADRE_OK;
}

static cadre_status add_checkpoints(
    struct engine *engine, const struct directory_entry *entry, struct cadre_error *error)
{
    size_t surplus = directory_checkpoints_surplus(entry);
    for (size_t i = 0; i < surplus; i++) {
        CADRE_TRY(add_removal(engine, CORE_RECORD_CHECKPOINT_DROPPED, entry->id,
            entry->checkpoints[i].position, error));
    }
    return CADRE_OK;
}

static cadre_status add_all_checkpoints(struct engine *engine, struct cadre_error *error)
{
    for (size_t i = 0; engine->surplus_of_all && i < engine->directory.count; i++) {
        CADRE_TRY(add_checkpoints(engine, engine->directory.entries[i], error));
    }
    for (size_t i = 0; !engine->surplus_of_all && i < engine->surplus_count; i++) {
        const struct directory_entry *entry =
            directory_find(&engine->directory, engine->surplus_of[i]);
        if (entry != NULL) {
            CADRE_TRY(add_checkpoints(engine, entry, error));
        }
    }
    return CADRE_OK;
}

static bool a_job_ended(const struct engine *engine)
{
    bool ended = false;
    for (size_t i = 0; i < engine->turn.count && !ended; i++) {
        ended = engine->turn.items[i].type == CORE_ACTION_JOB_ENDED;
    }
    return ended;
}

/* The oldest that ended. */
static cadre_status add_jobs(struct engine *engine, struct cadre_error *error)
{
    const struct directory *directory = &engine->directory;
    size_t surplus = directory->ended > engine->options.keep_jobs
                         ? directory->ended - engine->options.keep_jobs
                         : 0;
    for (size_t i = 0; surplus > 0 && i < directory->count; i++) {
        const struct directory_entry *entry = directory->entries[i];
        if (job_state_is_final(entry->state)) {
            CADRE_TRY(add_removal(engine, CORE_RECORD_FORGOTTEN, entry->id, 0, error));
            surplus--;
        }
    }
    return CADRE_OK;
}

cadre_status engine_find_removals(struct engine *engine, struct cadre_error *error)
{
    engine->removals.count = 0;
    if (engine->surplus) {
        CADRE_TRY(add_all_checkpoints(engine, error));
    }
    return a_job_ended(engine) ? add_jobs(engine, error) : CADRE_OK;
}

/* At once, or when the entry of the shared log is stored that has the record. */
static void report(struct engine *engine, enum delayed_kind kind, struct job_id job,
    const struct core_checkpoint *dropped)
{
    if (engine->options.log != NULL) {
        const struct delayed_item item = {.kind = kind, .entry = engine->log.waited, .job = job};
        engine_log_delay(engine, &item, dropped, dropped != NULL ? sizeof *dropped : 0);
    } else if (kind == DELAYED_FORGOTTEN) {
        engine->sink.job_forgotten(engine->user, job);
    } else {
        engine->sink.checkpoint_dropped(engine->user, job, dropped);
    }
}

static void remove_one(struct engine *engine, const struct core_record *removal)
{
    struct directory_entry *entry = directory_find(&engine->directory, removal->job);
    CADRE_ASSERT(entry != NULL);
    if (removal->type == CORE_RECORD_FORGOTTEN) {
        directory_remove(&engine->directory, removal->job);
        report(engine, DELAYED_FORGOTTEN, removal->job, NULL);
        return;
    }
    const struct core_checkpoint dropped = entry->checkpoints[0];
    CADRE_ASSERT(dropped.position == removal->dropped);
    directory_checkpoint_drop_oldest(entry);
    report(engine, DELAYED_DROPPED, removal->job, &dropped);
}

void engine_remove(struct engine *engine)
{
    if (engine->options.log != NULL && !engine->log.waits) {
        return; /* nothing of it is recorded yet */
    }
    for (size_t i = 0; i < engine->removals.count; i++) {
        remove_one(engine, &engine->removals.items[i]);
    }
    engine->removals.count = 0;
    engine->surplus = false;
    engine->surplus_of_all = false;
    engine->surplus_count = 0;
}

bool engine_job_may_go(const struct engine *engine, struct job_id job)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL && job_state_is_final(entry->state) && engine->broken == CADRE_OK &&
           !engine->sending && !entry->changed && !entry->end_unstored;
}

cadre_status engine_forget_job(struct engine *engine, struct job_id job, struct cadre_error *error)
{
    CADRE_ASSERT(engine_job_may_go(engine, job));
    const struct core_record forgotten = {.type = CORE_RECORD_FORGOTTEN, .sync = true, .job = job};
    const struct store_record stored = {.record = &forgotten};
    cadre_status status = engine->store->ops->commit(engine->store, &stored, 1, true, error);
    if (status != CADRE_OK) {
        engine_break(engine, error);
        return status;
    }
    remove_one(engine, &forgotten);
    return CADRE_OK;
}
