/* SPDX-License-Identifier: Apache-2.0
 * How far workers are with what their tasks lack, as their heartbeats report it. For people: no
 * decision uses it, and no record keeps it. engine.c calls it. */
#include "coordinator/engine/engine_state.h"

void engine_note_fetches(
    struct engine *engine, struct link_id link, const struct agent_heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->fetch_count; i++) {
        const struct agent_fetch *fetch = &heartbeat->fetches[i];
        if (engine_task_on_link(engine, fetch->task, link)) {
            struct directory_entry *entry = directory_find(&engine->directory, fetch->task.job);
            entry->tasks[fetch->task.slot].fetch = fetch->fetch;
            engine_note_changed(engine, fetch->task.job);
        }
    }
}
