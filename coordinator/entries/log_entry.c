/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/entries/log_entry.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"

/* Of one entry, unpacked: its records have some 3 KiB each. */
#define UNPACK_BYTES ((size_t)1 << 30)

_Static_assert(LEDGER_EVENT == CORE_RECORD_TERM + 1, "no record of the core has its number");

/* ---- into an entry ---- */

static struct ledger_record ledger_record_of(
    const struct store_record *record, const struct ledger_placement *placements)
{
    if (record->record == NULL) {
        return (struct ledger_record){
            .type = LEDGER_EVENT, .job = record->job, .event = *record->event};
    }
    return (struct ledger_record){.type = record->record->type,
        .job = record->record->job,
        .wall_us = record->wall_us,
        .core = *record->record,
        .spec = record->spec,
        .spec_bytes = record->spec_bytes,
        .placements = placements,
        .placement_count = record->target_count,
        .committed = record->committed};
}

static size_t count_placements(const struct store_record *records, size_t count)
{
    size_t placements = 0;
    for (size_t i = 0; i < count; i++) {
        placements += records[i].target_count;
    }
    return placements;
}

cadre_status log_entry_write(uint32_t format, const struct store_record *records, size_t count,
    struct wire_buffer *buffer, struct cadre_error *error)
{
    size_t all = count_placements(records, count);
    CADRE_FREE_AT_EXIT struct ledger_record *items = calloc(count + 1, sizeof *items);
    CADRE_FREE_AT_EXIT struct ledger_placement *placements = calloc(all + 1, sizeof *placements);
    if (items == NULL || placements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for an entry of %zu records", count);
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        items[i] = ledger_record_of(&records[i], placements + used);
        for (size_t k = 0; k < records[i].target_count; k++) {
            const struct store_placement *from = &records[i].placements[k];
            placements[used++] = (struct ledger_placement){.slot = from->slot,
                .incarnation = from->incarnation,
                .attempts = from->attempts,
                .attempts_generation = from->attempts_generation,
                .worker = from->worker};
        }
    }
    const struct ledger_entry entry = {.format = format, .records = items, .record_count = count};
    return wire_pack_ledger_entry(&entry, buffer, error);
}

/* ---- out of one ---- */

static struct store_placement placement_of(const struct ledger_placement *from)
{
    return (struct store_placement){.slot = from->slot,
        .incarnation = from->incarnation,
        .attempts = from->attempts,
        .attempts_generation = from->attempts_generation,
        .worker = from->worker};
}

/* `placements` has room for those of the record, which is the entry's own. */
static void put_record(
    struct ledger_record *from, struct store_placement *placements, struct store_record *ret_record)
{
    if (from->type == LEDGER_EVENT) {
        *ret_record = (struct store_record){.event = &from->event, .job = from->job};
        return;
    }
    from->core.type = (enum core_record_type)from->type;
    from->core.job = from->job;
    for (size_t i = 0; i < from->placement_count; i++) {
        placements[i] = placement_of(&from->placements[i]);
    }
    *ret_record = (struct store_record){.record = &from->core,
        .wall_us = from->wall_us,
        .spec = from->spec,
        .spec_bytes = from->spec_bytes,
        .placements = from->placement_count > 0 ? placements : NULL,
        .target_count = from->placement_count,
        .committed = from->committed};
}

static void clear(struct entry_records *entry)
{
    free(entry->records);
    free(entry->placements);
    entry->records = NULL;
    entry->placements = NULL;
    entry->count = 0;
    if (entry->arena != NULL) {
        wire_arena_reset(entry->arena);
    }
}

cadre_status log_entry_read(
    struct entry_records *entry, const void *bytes, size_t size, struct cadre_error *error)
{
    struct ledger_entry read;
    clear(entry);
    entry->arena = entry->arena != NULL ? entry->arena : wire_arena_new(UNPACK_BYTES);
    if (entry->arena == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to read an entry");
    }
    CADRE_TRY(wire_unpack_ledger_entry(bytes, size, entry->arena, &read, error));
    size_t placements = 0;
    for (size_t i = 0; i < read.record_count; i++) {
        placements += read.records[i].placement_count;
    }
    entry->records = calloc(read.record_count + 1, sizeof *entry->records);
    entry->placements = calloc(placements + 1, sizeof *entry->placements);
    if (entry->records == NULL || entry->placements == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu records of an entry", read.record_count);
    }
    placements = 0;
    for (size_t i = 0; i < read.record_count; i++) {
        struct ledger_record *from = (struct ledger_record *)(uintptr_t)&read.records[i];
        put_record(from, entry->placements + placements, &entry->records[i]);
        placements += from->placement_count;
    }
    entry->count = read.record_count;
    return CADRE_OK;
}

void log_entry_free(struct entry_records *entry)
{
    clear(entry);
    wire_arena_free(entry->arena);
    *entry = (struct entry_records){0};
}
