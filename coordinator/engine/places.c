/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/places.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct places *places, uint32_t tasks)
{
    *places = (struct places){.items = calloc((size_t)tasks + 1, sizeof *places->items),
        .workers = calloc((size_t)tasks + 1, sizeof *places->workers)};
    if (places->items != NULL && places->workers != NULL) {
        return true;
    }
    places_drop(places);
    return false;
}

static void add(struct places *places, const struct core_task_view *task, const char *worker)
{
    char *name = places->workers[places->count];
    memcpy(name, worker, strnlen(worker, LIMIT_NAME_BYTES - 1));
    places->items[places->count] = (struct store_place){.slot = task->slot,
        .incarnation = task->incarnation,
        .lives = task->lives,
        .lives_in = task->lives_in,
        .worker = name};
    places->count++;
}

bool places_wanted(const struct core_record *record)
{
    return record->type == CORE_RECORD_STARTED || record->type == CORE_RECORD_PLAN;
}

bool places_keep(
    const struct core *core, const struct core_record *record, struct places *ret_places)
{
    struct core_job_view view;
    struct core_task_view task;
    *ret_places = (struct places){0};
    if (!core_job(core, record->job, &view)) {
        return true;
    }
    bool roster = record->type == CORE_RECORD_PLAN;
    uint32_t count = roster ? view.roster : view.tasks;
    if (!make_room(ret_places, count)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        core_job_task(core, record->job, roster ? core_job_member(core, record->job, i) : i, &task);
        if (roster || task.worker.n != 0) {
            add(ret_places, &task, roster ? "" : task.worker_name);
        }
    }
    return true;
}

void places_drop(struct places *places)
{
    free(places->items);
    free(places->workers);
    *places = (struct places){0};
}

void places_fill(const struct places *places, struct store_record *record)
{
    record->places = places->items;
    record->place_count = places->count;
}
