/* SPDX-License-Identifier: Apache-2.0
 * What is not kept any more: checkpoints beyond what their job keeps, and jobs that ended beyond
 * what the coordinator keeps. It is recorded with the turn that makes it so; it goes, with its
 * files, when that is stored and sent, because no message that was sent names it. What is in the
 * shared log goes when its entry is stored: another coordinator may lead by then, whose ledger has
 * it still. */
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
    size_t surplus = entry->going ? 0 : directory_checkpoints_surplus(entry);
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
    size_t ended = directory->ended - directory->going;
    size_t surplus = ended > engine->options.keep_jobs ? ended - engine->options.keep_jobs : 0;
    for (size_t i = 0; surplus > 0 && i < directory->count; i++) {
        const struct directory_entry *entry = directory->entries[i];
        if (job_state_is_final(entry->state) && !entry->going) {
            CADRE_TRY(add_removal(engine, CORE_RECORD_FORGOTTEN, entry->id, 0, error));
            surplus--;
        }
    }
    return CADRE_OK;
}

cadre_status engine_find_removals(struct engine *engine, struct cadre_error *error)
{
    engine->removals.count = engine->removals.asked;
    if (engine->surplus) {
        CADRE_TRY(add_all_checkpoints(engine, error));
    }
    return a_job_ended(engine) ? add_jobs(engine, error) : CADRE_OK;
}

static void delay(struct engine *engine, enum delayed_kind kind, struct job_id job,
    const struct core_checkpoint *dropped)
{
    const struct delayed_item item = {.kind = kind, .entry = engine->log.waited, .job = job};
    engine_log_delay(engine, &item, dropped, dropped != NULL ? sizeof *dropped : 0);
}

static void remove_job(struct engine *engine, struct directory_entry *entry)
{
    struct job_id job = entry->id;
    if (engine->options.log == NULL) {
        directory_remove(&engine->directory, job);
        engine->sink.job_forgotten(engine->user, job);
        return;
    }
    if (!entry->going) {
        directory_note_going(&engine->directory, entry);
    }
    delay(engine, DELAYED_FORGOTTEN, job, NULL);
}

static void remove_one(struct engine *engine, const struct core_record *removal)
{
    struct directory_entry *entry = directory_find(&engine->directory, removal->job);
    CADRE_ASSERT(entry != NULL);
    if (removal->type == CORE_RECORD_FORGOTTEN) {
        remove_job(engine, entry);
        return;
    }
    const struct core_checkpoint dropped = entry->checkpoints[0];
    CADRE_ASSERT(dropped.position == removal->dropped);
    directory_checkpoint_drop_oldest(entry);
    if (engine->options.log != NULL) { /* engine_each_checkpoint() has it until then */
        delay(engine, DELAYED_DROPPED, removal->job, &dropped);
    } else {
        engine->sink.checkpoint_dropped(engine->user, removal->job, &dropped);
    }
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
    engine->removals.asked = 0;
    engine->surplus = false;
    engine->surplus_of_all = false;
    engine->surplus_count = 0;
}

bool engine_job_may_go(const struct engine *engine, struct job_id job)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    return entry != NULL && job_state_is_final(entry->state) && engine->broken == CADRE_OK &&
           !engine->sending && !entry->changed && !entry->end_unstored && !entry->going;
}

/* With the next turn. */
static cadre_status ask_to_forget(
    struct engine *engine, struct job_id job, struct cadre_error *error)
{
    struct turn_removals *removals = &engine->removals;
    CADRE_ASSERT(removals->count == removals->asked);
    CADRE_TRY(add_removal(engine, CORE_RECORD_FORGOTTEN, job, 0, error));
    removals->asked = removals->count;
    directory_note_going(&engine->directory, directory_find(&engine->directory, job));
    return CADRE_OK;
}

static cadre_status forget_now(struct engine *engine, struct job_id job, struct cadre_error *error)
{
    const struct core_record forgotten = {.type = CORE_RECORD_FORGOTTEN, .sync = true, .job = job};
    const struct store_record stored = {.record = &forgotten};
    CADRE_TRY(engine->store->ops->commit(engine->store, &stored, 1, true, error));
    remove_one(engine, &forgotten);
    return CADRE_OK;
}

cadre_status engine_forget_job(struct engine *engine, struct job_id job, struct cadre_error *error)
{
    CADRE_ASSERT(engine_job_may_go(engine, job));
    cadre_status status = engine->options.log != NULL ? ask_to_forget(engine, job, error)
                                                      : forget_now(engine, job, error);
    if (status != CADRE_OK) {
        engine_break(engine, error);
    }
    return status;
}
