/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/lagging.h"

#include <stdlib.h>

#include "common/pure/assert.h"

#define SECOND_US 1000000

static bool outdates(const struct core_record *newer, const struct core_record *older)
{
    if (newer->type != older->type) {
        return false;
    }
    if (newer->type == CORE_RECORD_WATERMARK) {
        return generation_equal(newer->watermark.generation, older->watermark.generation);
    }
    const struct cursor *a = &newer->consumption.cursor;
    const struct cursor *b = &older->consumption.cursor;
    return newer->type == CORE_RECORD_CONSUMED && a->stream == b->stream && a->epoch == b->epoch &&
           a->first == b->first && a->begin == b->begin;
}

size_t lagging_count_of(const struct lagging *lagging, const struct lagging_of_job *its)
{
    return its->round == lagging->round ? its->count : 0;
}

static size_t oldest_of(const struct lagging *lagging, const struct lagging_of_job *its)
{
    return lagging_count_of(lagging, its) > 0 ? its->oldest : 0;
}

/* NULL: there is none. */
static struct lagging_record *find_outdated(
    struct lagging *lagging, const struct core_record *record, const struct lagging_of_job *its)
{
    for (size_t number = oldest_of(lagging, its); number != 0;
         number = lagging->items[number - 1].next) {
        if (outdates(record, &lagging->items[number - 1].record)) {
            return &lagging->items[number - 1];
        }
    }
    return NULL;
}

static bool has_room(struct lagging *lagging)
{
    if (lagging->filled < lagging->capacity) {
        return true;
    }
    size_t capacity = lagging->capacity > 0 ? lagging->capacity * 2 : 16;
    struct lagging_record *grown = realloc(lagging->items, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    lagging->items = grown;
    lagging->capacity = capacity;
    return true;
}

bool lagging_add(
    struct lagging *lagging, const struct core_record *record, struct lagging_of_job *its)
{
    struct lagging_record *outdated = find_outdated(lagging, record, its);
    if (outdated != NULL) {
        outdated->record = *record;
        return true;
    }
    if (!has_room(lagging)) {
        return false;
    }
    lagging->items[lagging->filled++] = (struct lagging_record){.record = *record};
    lagging->count++;
    if (lagging_count_of(lagging, its) == 0) {
        *its = (struct lagging_of_job){.oldest = lagging->filled, .round = lagging->round};
    } else {
        lagging->items[its->newest - 1].next = lagging->filled;
    }
    its->newest = lagging->filled;
    its->count++;
    return true;
}

void lagging_list_of(const struct lagging *lagging, const struct lagging_of_job *its,
    const struct core_record **ret_records)
{
    size_t count = 0;
    for (size_t number = oldest_of(lagging, its); number != 0;
         number = lagging->items[number - 1].next) {
        ret_records[count++] = &lagging->items[number - 1].record;
    }
    CADRE_ASSERT(count == lagging_count_of(lagging, its));
}

void lagging_take_of(struct lagging *lagging, struct lagging_of_job *its)
{
    for (size_t number = oldest_of(lagging, its); number != 0;
         number = lagging->items[number - 1].next) {
        lagging->items[number - 1].taken = true;
        lagging->count--;
    }
    *its = (struct lagging_of_job){0};
    if (lagging->count == 0) {
        lagging_clear(lagging);
    }
}

void lagging_list(const struct lagging *lagging, const struct core_record **ret_records)
{
    size_t count = 0;
    for (size_t i = 0; i < lagging->filled; i++) {
        if (!lagging->items[i].taken) {
            ret_records[count++] = &lagging->items[i].record;
        }
    }
    CADRE_ASSERT(count == lagging->count);
}

void lagging_clear(struct lagging *lagging)
{
    lagging->filled = 0;
    lagging->count = 0;
    lagging->round++;
}

uint64_t lagging_due_us(const struct lagging *lagging, uint64_t since_us, uint64_t sync_us)
{
    uint64_t allowed_us = lagging->count * (uint64_t)SECOND_US / LAGGING_RECORDS_PER_S;
    return since_us + (sync_us > allowed_us ? sync_us : allowed_us);
}

void lagging_free(struct lagging *lagging)
{
    free(lagging->items);
    *lagging = (struct lagging){0};
}
