/* SPDX-License-Identifier: Apache-2.0
 * A change that survives: the old values go to the thread's journal, a mark is set, the elements
 * change, the progress of the push is written, the mark is cleared. A process that finds a mark
 * without the progress puts the old values back. The journal stays in the processor's cache, so a
 * piece costs little more than reading and writing its elements. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

size_t journal_piece_elements(const struct shard *shard)
{
    return JOURNAL_BYTES /
           (shard->sum_bytes > shard->element_bytes ? shard->sum_bytes : shard->element_bytes);
}

uint64_t store_block_rows(const struct store *store, uint32_t shard)
{
    const struct shard *one = store_shard(store, shard);
    uint64_t row_bytes = one->row_elements * one->element_bytes;
    uint64_t rows = row_bytes == 0 ? STORE_BLOCK_BYTES : STORE_BLOCK_BYTES / row_bytes;
    return rows == 0 ? 1 : rows;
}

cadre_status journal_ready(struct store *store, uint32_t thread, struct cadre_error *error)
{
    CADRE_ASSERT(thread < STORE_THREADS);
    if (store->scratch[thread] == NULL) {
        store->scratch[thread] = calloc(1, sizeof *store->scratch[thread]);
        if (store->scratch[thread] == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "ps has no memory to apply pushes in");
        }
    }
    if (store->journals[thread] == NULL) {
        uint64_t at = 0;
        CADRE_TRY(store_alloc(store, sizeof(struct image_journal), &at, error, "a journal"));
        atomic_store_explicit(&store->head->journals[thread], at, memory_order_release);
        store->journals[thread] = store_at(store, at);
    }
    return CADRE_OK;
}

/* The address of element `start` in array 0 (rows or sums) or one behind it (slots); NULL: there is
 * no such array. */
static char *part_at(const struct shard *shard, bool sums, unsigned part, uint64_t start)
{
    if (sums) {
        return part == 0 ? shard->sums + start * shard->sum_bytes : NULL;
    }
    char *base = part == 0 ? shard->rows : shard->slots[part - 1];
    return base == NULL ? NULL : base + start * shard->element_bytes;
}

void journal_begin(
    struct store *store, uint32_t thread, const struct journal_piece *piece, enum image_mark mark)
{
    struct image_journal *journal = store->journals[thread];
    struct shard *shard = piece->shard;
    journal->shard = piece->key.shard;
    journal->closure = piece->key.closure;
    journal->ordinal = piece->key.ordinal;
    journal->after = piece->after;
    journal->sums = piece->sums;
    journal->segments = piece->segments;
    journal->length = piece->length;
    memcpy(journal->starts, piece->starts, piece->segments * sizeof piece->starts[0]);
    size_t bytes = piece->length * (piece->sums ? shard->sum_bytes : shard->element_bytes);
    for (unsigned part = 0; part < JOURNAL_ARRAYS && part_at(shard, piece->sums, part, 0) != NULL;
         part++) {
        for (size_t i = 0; i < piece->segments; i++) {
            memcpy(journal->old[part] + i * bytes,
                part_at(shard, piece->sums, part, piece->starts[i]), bytes);
        }
    }
    store_order_point();
    atomic_store_explicit(&journal->mark, mark, memory_order_release);
    store_order_point();
}

void journal_commit(struct store *store, uint32_t thread, const struct journal_piece *piece)
{
    struct image_journal *journal = store->journals[thread];
    store_order_point();
    if (atomic_load_explicit(&journal->mark, memory_order_relaxed) == MARK_STEP_PIECE) {
        atomic_store_explicit(&piece->shard->step->progress, piece->after, memory_order_release);
    } else if (piece->key.closure != 0) {
        applied_progress(store, piece->key, piece->after);
    }
    store_order_point();
    atomic_store_explicit(&journal->mark, MARK_NONE, memory_order_release);
    store_order_point();
}

void journal_undo(struct shard *shard, const struct image_journal *journal)
{
    bool sums = journal->sums != 0;
    size_t bytes = journal->length * (sums ? shard->sum_bytes : shard->element_bytes);
    for (unsigned part = 0; part < JOURNAL_ARRAYS && part_at(shard, sums, part, 0) != NULL;
         part++) {
        for (size_t i = 0; i < journal->segments; i++) {
            memcpy(part_at(shard, sums, part, journal->starts[i]), journal->old[part] + i * bytes,
                bytes);
            store_order_point();
        }
    }
}

/* ---- what is done to elements ---- */

struct change change_of(
    const struct shard *shard, enum push_kind kind, double rate, uint64_t count, double trust)
{
    struct change change = {.kind = kind};
    if (kind == PUSH_UPDATE) {
        const struct optimizer_rule *rule = shard_rule(shard);
        rate = isnan(rate) ? schedule_rate(&rule->schedule, rule->rate, count - 1) : rate;
        change.update = optimizer_update_of(rule, rate, count - 1, trust);
    }
    return change;
}

void change_run(const struct store *store, struct shard *shard, const struct change *change,
    uint64_t start, const void *values, size_t length)
{
    char *rows = part_at(shard, false, 0, start);
    cadre_dtype dtype = shard->spec.dtype;
    switch (change->kind) {
    case PUSH_ADD:
        store->isa->add[dtype](rows, values, length);
        break;
    case PUSH_SUB:
        store->isa->sub[dtype](rows, values, length);
        break;
    case PUSH_ASSIGN:
        memcpy(rows, values, length * shard->element_bytes);
        break;
    case PUSH_UPDATE:
        optimizer_run(&change->update, dtype, length, rows, values,
            (void *const[OPTIMIZER_SLOTS]){part_at(shard, false, 1, start),
                part_at(shard, false, 2, start), part_at(shard, false, 3, start)});
        break;
    }
}
