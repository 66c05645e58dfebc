/* SPDX-License-Identifier: Apache-2.0
 * How far workers are with what their tasks lack, as their heartbeats report it, and programs with
 * their checkpoints. For people: no decision uses it, and no record keeps it. engine.c calls it. */
#include "coordinator/engine/engine_state.h"

void engine_note_fetch(struct engine *engine, struct link_id link, struct task_ref task,
    const struct task_fetch *fetch)
{
    if (engine_task_on_link(engine, task, link)) {
        struct directory_entry *entry = directory_find(&engine->directory, task.job);
        entry->tasks[task.slot].fetch = *fetch;
        engine_note_changed(engine, task.job);
    }
}

void engine_note_fetches(
    struct engine *engine, struct link_id link, const struct agent_heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->fetch_count; i++) {
        const struct agent_fetch *fetch = &heartbeat->fetches[i];
        engine_note_fetch(engine, link, fetch->task, &fetch->fetch);
    }
}
