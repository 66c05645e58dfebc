/* SPDX-License-Identifier: Apache-2.0
 * The published checkpoints: which jobs begin at which, and what follows when one is damaged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/object_path.h"
#include "coordinator/engine/engine_state.h"

/* Of a job that ended, which the core does not know. A job that is going loses it anyway, and no
 * record may follow that of its removal. */
static void forget_damaged(
    struct engine *engine, const struct directory_entry *entry, uint64_t position, const char *why)
{
    struct core_record record = {.type = CORE_RECORD_CHECKPOINT_LOST,
        .sync = true,
        .job = entry->id,
        .lost.position = position};
    if (!entry->going) {
        snprintf(record.lost.why, sizeof record.lost.why, "%s", why);
        engine_add_record(engine, &record);
    }
}

static bool has_own(const struct directory_entry *entry, uint64_t position)
{
    size_t at = 0;
    while (at < entry->checkpoint_count && entry->checkpoints[at].position != position) {
        at++;
    }
    return at < entry->checkpoint_count;
}

/* The newest whole checkpoint for the job that was to begin at `entry`'s, unless a client named
 * that one. */
static void look_for_origin(const struct engine *engine, const struct directory_entry *entry,
    struct core_checkpoint_damaged *damaged, char remedy[LIMIT_TEXT_BYTES])
{
    const struct job_spec *spec = &entry->spec;
    const struct directory_entry *from = directory_find(&engine->directory, spec->restore_from);
    const struct core_checkpoint *before =
        from != NULL ? directory_checkpoint_before(from, damaged->position) : NULL;
    damaged->source = spec->restore_from;
    damaged->remedy = remedy;
    engine_describe_kept(from, spec->restore_from, damaged->position, remedy);
    if (before != NULL && spec->restore_step == 0 &&
        (!before->shared || object_path_is(before->path) ||
            strcmp(spec->checkpoint_folder, from->spec.checkpoint_folder) == 0)) {
        damaged->has_previous = true;
        damaged->previous = *before;
    }
}

void engine_checkpoint_damaged(
    struct engine *engine, uint64_t now_us, struct job_id job, uint64_t position, const char *why)
{
    struct directory_entry *entry = directory_find(&engine->directory, job);
    char remedy[LIMIT_TEXT_BYTES] = "";
    if (entry == NULL) {
        return;
    }
    bool own = has_own(entry, position);
    bool final = job_state_is_final(entry->state);
    bool origin = entry->checkpoint_count == 0 && entry->restores &&
                  entry->origin.position == position && !final;
    if (own && final) {
        forget_damaged(engine, entry, position, why);
        return;
    }
    if (!own && !origin) {
        return;
    }
    struct core_event event = {.type = CORE_EVENT_CHECKPOINT_DAMAGED,
        .now_us = now_us,
        .damaged = {.job = job, .position = position, .is_origin = !own, .why = why}};
    const struct core_checkpoint *before =
        own ? directory_checkpoint_before(entry, position) : NULL;
    if (before != NULL) {
        event.damaged.has_previous = true;
        event.damaged.previous = *before;
    } else if (!own) {
        look_for_origin(engine, entry, &event.damaged, remedy);
    }
    engine_step(engine, &event);
}

bool engine_checkpoint_at(
    struct engine *engine, struct job_id job, uint32_t i, struct core_checkpoint *ret_checkpoint)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    if (entry == NULL || i >= entry->checkpoint_count) {
        return false;
    }
    *ret_checkpoint = entry->checkpoints[i];
    return true;
}

bool engine_checkpoint(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    if (entry == NULL || entry->checkpoint_count == 0) {
        return false;
    }
    *ret_checkpoint = entry->checkpoints[entry->checkpoint_count - 1];
    return true;
}

bool engine_begins_at(
    struct engine *engine, struct job_id job, struct core_checkpoint *ret_checkpoint)
{
    const struct directory_entry *entry = directory_find(&engine->directory, job);
    const struct core_checkpoint *newest =
        entry != NULL ? directory_checkpoint_before(entry, UINT64_MAX) : NULL;
    if (newest != NULL) {
        *ret_checkpoint = *newest;
    }
    return newest != NULL;
}

cadre_status engine_each_checkpoint(struct engine *engine,
    void (*visit)(void *user, struct job_id job, const struct core_checkpoint *checkpoint),
    void *user, struct cadre_error *error)
{
    if (engine->broken != CADRE_OK) {
        *error = engine->broken_error; /* the list may not be whole */
        return engine->broken;
    }
    for (size_t i = 0; i < engine->directory.count; i++) {
        const struct directory_entry *entry = engine->directory.entries[i];
        for (size_t k = 0; k < entry->checkpoint_count; k++) {
            visit(user, entry->id, &entry->checkpoints[k]);
        }
        /* Another job's, which may be removed: kept until this one has its own. */
        if (entry->restores && entry->checkpoint_count == 0) {
            visit(user, entry->id, &entry->origin);
        }
    }
    const struct delayed_item *item;
    for (size_t i = 0; (item = delayed_at(&engine->log.delayed, i)) != NULL; i++) {
        if (item->kind == DELAYED_DROPPED) {
            visit(user, item->job, (const struct core_checkpoint *)(const void *)item->bytes);
        }
    }
    return CADRE_OK;
}
