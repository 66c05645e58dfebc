/* SPDX-License-Identifier: Apache-2.0
 * What readers see while a turn is held: nothing of it, because it is not stored. */
#include "coordinator/engine/engine_state.h"

void engine_show_submitted(struct engine *engine, struct directory_entry *entry)
{
    engine->stored_max = entry->id;
}

void engine_show_ended(struct directory_entry *entry)
{
    entry->end_unstored = false;
}

/* Readers see the records of the turn; those of a shared log, once its entry is stored. */
static void held_show(struct engine *engine)
{
    for (size_t i = 0; i < engine->turn.count; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type != CORE_ACTION_RECORD) {
            continue;
        }
        struct directory_entry *entry = directory_find(&engine->directory, action->record.job);
        if (action->record.type == CORE_RECORD_JOB) {
            wire_buffer_free(&entry->packed);
        }
        if (action->record.type == CORE_RECORD_JOB && engine->options.log == NULL) {
            engine_show_submitted(engine, entry);
        } else if (action->record.type == CORE_RECORD_ENDED && engine->options.log == NULL) {
            engine_show_ended(entry);
        }
    }
}

void engine_note_stored(struct engine *engine)
{
    held_show(engine);
    hold_ends(&engine->hold, engine->now_us);
}

bool engine_held(const struct engine *engine, struct cadre_error *ret_error)
{
    if (engine->hold.held) {
        *ret_error = engine->hold.error;
    }
    return engine->hold.held;
}

struct directory_entry *engine_find_stored(const struct engine *engine, struct job_id job)
{
    return job.n <= engine->stored_max.n ? directory_find(&engine->directory, job) : NULL;
}
