/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/placements.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct placements *placements, uint32_t tasks)
{
    *placements = (struct placements){.items = calloc((size_t)tasks + 1, sizeof *placements->items),
        .workers = calloc((size_t)tasks + 1, sizeof *placements->workers)};
    if (placements->items != NULL && placements->workers != NULL) {
        return true;
    }
    placements_drop(placements);
    return false;
}

static void placements_add(
    struct placements *placements, const struct core_task_view *task, const char *worker)
{
    char *name = placements->workers[placements->count];
    memcpy(name, worker, strnlen(worker, LIMIT_NAME_BYTES - 1));
    placements->items[placements->count] = (struct store_placement){.slot = task->slot,
        .incarnation = task->incarnation,
        .attempts = task->attempts,
        .attempts_generation = task->attempts_generation,
        .worker = name};
    placements->count++;
}

bool placements_wanted(const struct core_record *record)
{
    return record->type == CORE_RECORD_STARTED || record->type == CORE_RECORD_PLAN;
}

bool placements_keep(
    const struct core *core, const struct core_record *record, struct placements *ret_placements)
{
    struct core_job_view view;
    struct core_task_view task;
    *ret_placements = (struct placements){0};
    if (!core_job(core, record->job, &view)) {
        return true;
    }
    bool roster = record->type == CORE_RECORD_PLAN;
    uint32_t count = roster ? view.roster : view.tasks;
    if (!make_room(ret_placements, count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        core_job_task(core, record->job, roster ? core_job_member(core, record->job, i) : i, &task);
        if (roster || task.worker.n != 0) {
            placements_add(ret_placements, &task, roster ? "" : task.worker_name);
        }
    }
    return true;
}

void placements_drop(struct placements *placements)
{
    free(placements->items);
    free(placements->workers);
    *placements = (struct placements){0};
}

void placements_fill(const struct placements *placements, struct store_record *record)
{
    record->placements = placements->items;
    record->target_count = placements->count;
}
