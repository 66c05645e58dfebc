/* SPDX-License-Identifier: Apache-2.0
 * Recovers what a process left when it died: pieces that were changed in part get their old values
 * back, marked ends are completed, steps are applied. A process that dies in here is followed by
 * one that does the same again. */
#include <string.h>

#include "worker/library/ps/store/store_internal.h"

static cadre_status settle_end(struct store *store, struct shard *shard,
    struct image_journal *journal, struct push_key key, struct cadre_error *error)
{
    struct push_progress progress = {.synchronous = journal->sums != 0};
    atomic_store_explicit(&shard->kept->version, journal->version, memory_order_release);
    if (journal->sums != 0 && journal->count <= atomic_load(&shard->step->contributions)) {
        atomic_store_explicit(&shard->step->count, journal->count, memory_order_release);
    }
    store_order_point();
    CADRE_TRY(applied_claim(store, key, &progress, error));
    applied_progress(store, key, IMAGE_PUSH_WHOLE);
    return CADRE_OK;
}

static cadre_status store_recover_settle(
    struct store *store, struct image_journal *journal, struct cadre_error *error)
{
    uint64_t mark = atomic_load_explicit(&journal->mark, memory_order_acquire);
    if (mark == MARK_NONE) {
        return CADRE_OK;
    }
    struct shard *shard = store_shard(store, (uint32_t)journal->shard);
    struct push_key key = {.closure = journal->closure,
        .ordinal = (uint32_t)journal->ordinal,
        .shard = (uint32_t)journal->shard};
    struct push_progress progress = {0};
    switch ((enum image_mark)mark) {
    case MARK_PIECE:
        if (key.closure == 0 || applied_find(store, key, &progress) == PUSH_NEW ||
            progress.done < journal->after) {
            journal_undo(shard, journal);
        }
        break;
    case MARK_STEP_PIECE:
        if (atomic_load(&shard->step->progress) < journal->after) {
            journal_undo(shard, journal);
        }
        break;
    case MARK_END:
        if (key.closure != 0 && key.closure != IMAGE_PUSH_REMOVED) {
            CADRE_TRY(settle_end(store, shard, journal, key, error));
        }
        break;
    default:
        step_redo_end(shard, journal);
    }
    store_order_point();
    atomic_store_explicit(&journal->mark, MARK_NONE, memory_order_release);
    store_order_point();
    return CADRE_OK;
}

/* Pushes that were begun count as contributions and as updates. */
static void count_begun(struct store *store)
{
    for (uint64_t i = 0; store->table != NULL && i < store->table->capacity; i++) {
        const struct image_push *entry = &store->table->entries[i];
        uint64_t closure = atomic_load(&entry->closure);
        if (closure == 0 || closure == IMAGE_PUSH_REMOVED || entry->shard >= store_count(store) ||
            atomic_load(&entry->progress) == IMAGE_PUSH_WHOLE) {
            continue;
        }
        struct shard *shard = store_shard(store, entry->shard);
        if (entry->synchronous != 0) {
            shard->begun++;
        } else if (atomic_load(&shard->kept->updates) < entry->count) {
            atomic_store(&shard->kept->updates, entry->count);
        }
    }
}

static cadre_status settle_steps(struct store *store, struct cadre_error *error)
{
    for (uint32_t i = 0; i < store_count(store); i++) {
        struct shard *shard = store_shard(store, i);
        struct image_step *step = shard->step;
        if (step == NULL) {
            continue;
        }
        uint64_t count = atomic_load(&step->count);
        shard->begun += count;
        if (count == 0 || count != atomic_load(&step->contributions) || step_waits(shard)) {
            continue;
        }
        if (atomic_load(&step->kind) == PUSH_UPDATE && shard_rule(shard)->kind == OPTIMIZER_NONE) {
            return cadre_error_set(error, CADRE_DATA_LOSS,
                "ps: its memory holds an update of `%s`, which has no optimizer; its variables are "
                "lost, go on from a checkpoint",
                shard->spec.name);
        }
        CADRE_TRY(journal_ready(store, 0, error));
        memset(shard->sums, 0, (size_t)atomic_load(&step->progress) * shard->sum_bytes);
        store_order_point();
        step_apply(store, 0, shard);
    }
    return CADRE_OK;
}

cadre_status store_recover(struct store *store, struct cadre_error *error)
{
    for (uint32_t i = 0; i < STORE_THREADS; i++) {
        if (store->journals[i] != NULL) {
            CADRE_TRY(store_recover_settle(store, store->journals[i], error));
        }
    }
    count_begun(store);
    return settle_steps(store, error);
}
