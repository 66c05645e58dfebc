/* SPDX-License-Identifier: Apache-2.0
 * What readers see while a turn is held: nothing of it, because it is not stored. */
#include "coordinator/engine/engine_state.h"

/* Readers see the records of the turn. */
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
            engine->stored_max = entry->id;
        } else if (action->record.type == CORE_RECORD_ENDED) {
            entry->end_unstored = false;
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
