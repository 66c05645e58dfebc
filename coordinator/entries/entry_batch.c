/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/entries/entry_batch.h"

#include <stdlib.h>
#include <string.h>

/* Of several entries: each has some 3 KiB in memory. */
#define RECORDS_MAX 4096

void entry_batch_clear(struct entry_batch *batch)
{
    batch->count = 0;
    batch->entry_count = 0;
}

static cadre_status make_room(struct entry_batch *batch, size_t records, struct cadre_error *error)
{
    if (batch->count + records <= batch->capacity) {
        return CADRE_OK;
    }
    size_t capacity = 2 * (batch->count + records);
    struct store_record *grown = realloc(batch->records, capacity * sizeof *grown);
    if (grown == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu records of entries", batch->count + records);
    }
    batch->records = grown;
    batch->capacity = capacity;
    return CADRE_OK;
}

cadre_status entry_batch_add(
    struct entry_batch *batch, const void *bytes, size_t size, struct cadre_error *error)
{
    if (batch->entry_count == ENTRY_BATCH_MAX) {
        return cadre_error_set(
            error, CADRE_OUT_OF_RANGE, "a batch has at most %d entries", ENTRY_BATCH_MAX);
    }
    struct entry_records *entry = &batch->entries[batch->entry_count];
    CADRE_TRY(log_entry_read(entry, bytes, size, error));
    if (batch->entry_count > 0 && batch->count + entry->count > RECORDS_MAX) {
        return cadre_error_set(
            error, CADRE_OUT_OF_RANGE, "a batch has at most %d records", RECORDS_MAX);
    }
    CADRE_TRY(make_room(batch, entry->count, error));
    if (entry->count > 0) {
        memcpy(
            batch->records + batch->count, entry->records, entry->count * sizeof *batch->records);
    }
    batch->count += entry->count;
    batch->entry_count++;
    return CADRE_OK;
}

void entry_batch_free(struct entry_batch *batch)
{
    for (size_t i = 0; i < ENTRY_BATCH_MAX; i++) {
        log_entry_free(&batch->entries[i]);
    }
    free(batch->records);
    *batch = (struct entry_batch){0};
}
