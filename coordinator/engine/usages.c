/* SPDX-License-Identifier: Apache-2.0
 * What tasks and hosts use, as workers' heartbeats report it. For people: no decision uses it, and
 * no record keeps it; it notifies no watcher, because it changes all the time. engine.c calls it.
 */
#include "coordinator/engine/engine_state.h"

static void note_task_usage(
    struct engine *engine, struct link_id link, const struct agent_usage *usage)
{
    if (engine_task_on_link(engine, usage->task, link)) {
        struct directory_entry *entry = directory_find(&engine->directory, usage->task.job);
        entry->tasks[usage->task.slot].usage = usage->usage;
        entry->tasks[usage->task.slot].usage_us = engine->now_us;
    }
}

void engine_note_usages(
    struct engine *engine, struct link_id link, const struct agent_heartbeat *heartbeat)
{
    for (size_t i = 0; i < heartbeat->usage_count; i++) {
        note_task_usage(engine, link, &heartbeat->usages[i]);
    }
    struct worker_detail *detail =
        resource_usage_any(&heartbeat->host) ? engine_detail_on_link(engine, link) : NULL;
    if (detail != NULL) {
        detail->usage = heartbeat->host;
        detail->usage_us = engine->now_us;
    }
}
