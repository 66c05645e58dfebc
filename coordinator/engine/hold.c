/* SPDX-License-Identifier: Apache-2.0
 * A turn for which the store has no room: it is held and tried again, and meanwhile nothing is
 * spoken. The core's clock stands still, so that no deadline passes for what was not asked yet. */
#include "common/base/clock.h"
#include "coordinator/engine/engine_state.h"

/* While a turn is held jobs stand still, and what comes is little. Should it be this much, an end
 * that the next start goes on from is better than all of the memory. */
#define HELD_ACTIONS_MAX ((size_t)64 * 1024)

bool engine_hold(struct engine *engine, const struct cadre_error *error)
{
    struct hold *hold = &engine->hold;
    if (engine->options.retry_us == 0 || error->code != CADRE_RESOURCE_EXHAUSTED ||
        engine->turn.count > HELD_ACTIONS_MAX) {
        return false;
    }
    if (!hold->held) {
        hold->held = true;
        hold->since_us = engine->now_us;
    }
    hold->retry_at_us = engine->now_us + engine->options.retry_us;
    hold->error = *error;
    return true;
}

/* The records of the turn are no news to readers any more. */
static void show(struct engine *engine)
{
    for (size_t i = 0; i < engine->turn.count; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type != CORE_ACTION_RECORD) {
            continue;
        }
        struct directory_entry *entry = directory_find(&engine->directory, action->record.job);
        if (action->record.type == CORE_RECORD_JOB) {
            wire_buffer_free(&entry->packed);
            engine->hold.stored_max = entry->id;
        } else if (action->record.type == CORE_RECORD_ENDED) {
            entry->end_unstored = false;
        }
    }
}

void engine_note_stored(struct engine *engine)
{
    struct hold *hold = &engine->hold;
    show(engine);
    if (hold->held) {
        hold->held = false;
        hold->lag_us += engine->now_us - hold->since_us;
    }
}

bool engine_held(const struct engine *engine, struct cadre_error *ret_error)
{
    if (engine->hold.held) {
        *ret_error = engine->hold.error;
    }
    return engine->hold.held;
}

uint64_t engine_core_time(const struct engine *engine, uint64_t now_us)
{
    return (engine->hold.held ? engine->hold.since_us : now_us) - engine->hold.lag_us;
}

uint64_t engine_real_time(const struct engine *engine, uint64_t core_us)
{
    return core_us < CADRE_TIME_NEVER - engine->hold.lag_us ? core_us + engine->hold.lag_us
                                                            : CADRE_TIME_NEVER;
}

struct directory_entry *engine_find_stored(const struct engine *engine, struct job_id job)
{
    return job.n <= engine->hold.stored_max.n ? directory_find(&engine->directory, job) : NULL;
}
