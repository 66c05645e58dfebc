/* SPDX-License-Identifier: Apache-2.0
 * Checks memory that another process left: offsets rise and are inside, sums are right, numbers are
 * in range. Any other wrong bytes only give wrong values. Called by store.c. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/ps/store/store_internal.h"

static cadre_status store_open_lost(struct cadre_error *error, const char *what, uint64_t at)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "ps: the %s at byte %" PRIu64 " of its memory is not what a parameter server writes; its "
        "variables are lost, go on from a checkpoint",
        what, at);
}

/* ---- shards ---- */

static bool spec_is_sound(const struct store *store, const struct image_spec *spec)
{
    uint64_t bytes = cadre_dtype_bytes((cadre_dtype)spec->dtype);
    if (memchr(spec->name, 0, sizeof spec->name) == NULL || bytes == 0 ||
        spec->dtype == CADRE_STRING || __builtin_mul_overflow(bytes, spec->rows, &bytes) ||
        __builtin_mul_overflow(bytes, spec->row_elements, &bytes) ||
        !store_contains(store, spec->rows_at, bytes)) {
        return false;
    }
    return true;
}

static bool rule_is_sound(const struct store *store, uint64_t at, const struct shard *shard)
{
    const struct image_rule *kept = store_at(store, at);
    uint64_t bytes = shard->spec.rows * shard->row_elements * shard->element_bytes;
    struct optimizer_rule rule;
    if (!store_contains(store, at, sizeof *kept) ||
        kept->sum !=
            image_checksum(at, kept->slots_at, sizeof kept->slots_at + sizeof kept->bytes)) {
        return false;
    }
    rule_read(kept->bytes, &rule);
    bool sound = rule.kind != OPTIMIZER_NONE && optimizer_check(&rule, NULL) == CADRE_OK &&
                 (shard->spec.dtype == CADRE_F32 || shard->spec.dtype == CADRE_F64);
    for (uint32_t i = 0; sound && i < optimizer_slots(&rule); i++) {
        sound = store_contains(store, kept->slots_at[i], bytes);
    }
    return sound;
}

static bool step_is_sound(const struct store *store, uint64_t at, const struct shard *shard)
{
    const struct image_step *step = store_at(store, at);
    uint64_t elements = shard->spec.rows * shard->row_elements;
    uint64_t bits = (shard->spec.rows / 64 + 1) * sizeof(uint64_t);
    uint64_t sums = 0;
    return store_contains(store, at, sizeof *step) && shard->spec.dtype != CADRE_BOOL &&
           step->sum == image_checksum(at, &step->sums_at, 2 * sizeof(uint64_t)) &&
           !__builtin_mul_overflow(elements, shard->sum_bytes, &sums) &&
           store_contains(store, step->sums_at, sums) &&
           store_contains(store, step->touched_at, bits) &&
           atomic_load(&step->progress) <= elements && atomic_load(&step->kind) <= PUSH_SUB &&
           atomic_load(&step->count) <= atomic_load(&step->contributions);
}

static cadre_status open_shards(struct store *store, struct cadre_error *error)
{
    uint64_t before = 0;
    uint64_t at = atomic_load_explicit(&store->head->shards, memory_order_acquire);
    while (at != 0) {
        struct image_shard *kept = store_at(store, at);
        if (at <= before || !store_contains(store, at, sizeof *kept) ||
            kept->sum != image_checksum(at, &kept->spec, sizeof kept->spec) ||
            !spec_is_sound(store, &kept->spec) ||
            store_count(store) == SHARDS_PER_CHUNK * SHARD_CHUNKS) {
            return store_open_lost(error, "shard", at);
        }
        CADRE_TRY(store_view(store, kept, error));
        struct shard *shard = store_shard(store, store_count(store) - 1);
        uint64_t rule = atomic_load_explicit(&kept->rule, memory_order_acquire);
        if (rule != 0) {
            if (!rule_is_sound(store, rule, shard)) {
                return store_open_lost(error, "optimizer of a shard", rule);
            }
            shard_view_rule(store, shard, store_at(store, rule));
        }
        uint64_t step = atomic_load_explicit(&kept->step, memory_order_acquire);
        if (step != 0) {
            if (!step_is_sound(store, step, shard)) {
                return store_open_lost(error, "step of a shard", step);
            }
            store_view_step(store, shard, store_at(store, step));
        }
        before = at;
        at = atomic_load_explicit(&kept->next, memory_order_acquire);
    }
    return CADRE_OK;
}

/* ---- notes ---- */

static bool text_is_sound(const struct store *store, uint64_t at)
{
    const struct image_text *text = store_at(store, at);
    return store_contains(store, at, sizeof *text) &&
           store_contains(
               store, at, text->room < UINT64_MAX / 2 ? sizeof *text + text->room : UINT64_MAX) &&
           text->bytes <= text->room;
}

static cadre_status check_notes(struct store *store, struct cadre_error *error)
{
    uint64_t before = 0;
    uint64_t at = atomic_load_explicit(&store->head->notes, memory_order_acquire);
    while (at != 0) {
        struct image_note *note = store_at(store, at);
        if (at <= before || !store_contains(store, at, sizeof *note) ||
            memchr(note->name, 0, sizeof note->name) == NULL ||
            note->sum != image_checksum(at, note->name, sizeof note->name)) {
            return store_open_lost(error, "note", at);
        }
        uint64_t text_at = atomic_load_explicit(&note->text, memory_order_acquire);
        const struct image_text *text = store_at(store, text_at);
        if (!text_is_sound(store, text_at) ||
            text->sum != image_checksum(text->bytes, text->text, text->bytes)) {
            return store_open_lost(error, "text of a note", text_at);
        }
        uint64_t spare = atomic_load(&note->spare);
        if (spare != 0 && (spare == text_at || !text_is_sound(store, spare))) {
            return store_open_lost(error, "spare text of a note", spare);
        }
        before = at;
        at = atomic_load_explicit(&note->next, memory_order_acquire);
    }
    return CADRE_OK;
}

/* ---- pushes and journals ---- */

static cadre_status open_table(struct store *store, struct cadre_error *error)
{
    uint64_t at = atomic_load_explicit(&store->head->table, memory_order_acquire);
    if (at == 0) {
        return CADRE_OK;
    }
    struct image_table *table = store_at(store, at);
    uint64_t bytes = 0;
    if (!store_contains(store, at, sizeof *table) || table->check != ~table->capacity ||
        table->capacity == 0 || (table->capacity & (table->capacity - 1)) != 0 ||
        __builtin_mul_overflow(table->capacity, sizeof table->entries[0], &bytes) ||
        !store_contains(store, at + sizeof *table, bytes)) {
        return store_open_lost(error, "table of pushes", at);
    }
    applied_open(store, table);
    return CADRE_OK;
}

static bool segments_are_sound(const struct shard *shard, const struct image_journal *journal)
{
    uint64_t elements = shard->spec.rows * shard->row_elements;
    size_t widest = journal->sums != 0 ? shard->sum_bytes : shard->element_bytes;
    if (journal->segments > JOURNAL_SEGMENTS || journal->length > JOURNAL_BYTES / widest ||
        journal->segments * journal->length > JOURNAL_BYTES / widest ||
        (journal->sums != 0 && shard->step == NULL)) {
        return false;
    }
    for (uint64_t i = 0; i < journal->segments; i++) {
        uint64_t start = journal->starts[i];
        if (start > elements || journal->length > elements - start) {
            return false;
        }
    }
    return true;
}

static bool journal_is_sound(const struct store *store, const struct image_journal *journal)
{
    uint64_t mark = atomic_load_explicit(&journal->mark, memory_order_acquire);
    if (mark == MARK_NONE) {
        return true;
    }
    if (mark > MARK_STEP_END || journal->shard >= store_count(store)) {
        return false;
    }
    const struct shard *shard = store_shard(store, (uint32_t)journal->shard);
    switch ((enum image_mark)mark) {
    case MARK_PIECE:
        return segments_are_sound(shard, journal);
    case MARK_STEP_PIECE:
        return shard->step != NULL && segments_are_sound(shard, journal);
    case MARK_STEP_END:
        return shard->step != NULL;
    default:
        return journal->sums == 0 || shard->step != NULL;
    }
}

static cadre_status open_journals(struct store *store, struct cadre_error *error)
{
    for (uint32_t i = 0; i < STORE_THREADS; i++) {
        uint64_t at = atomic_load_explicit(&store->head->journals[i], memory_order_acquire);
        if (at == 0) {
            continue;
        }
        struct image_journal *journal = store_at(store, at);
        if (!store_contains(store, at, sizeof *journal) || !journal_is_sound(store, journal)) {
            return store_open_lost(error, "journal", at);
        }
        store->journals[i] = journal;
    }
    return CADRE_OK;
}

cadre_status store_open_existing(struct store *store, struct cadre_error *error)
{
    uint64_t end = atomic_load_explicit(&store->head->end, memory_order_acquire);
    if (end < IMAGE_HEAD_BYTES || end > store->memory.mapped || end % IMAGE_ALIGN != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "ps: its memory holds %" PRIu64 " bytes of the %" PRIu64
            " that were in use; its variables are lost, go on from a checkpoint",
            store->memory.mapped, end);
    }
    CADRE_TRY(open_shards(store, error));
    CADRE_TRY(check_notes(store, error));
    CADRE_TRY(open_table(store, error));
    CADRE_TRY(open_journals(store, error));
    return store_recover(store, error);
}
