/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/lagging.h"

#include <stdlib.h>

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

/* NULL: there is none. */
static struct lagging_record *find_outdated(
    struct lagging *lagging, const struct core_record *record, size_t newest)
{
    for (size_t number = newest; number != 0; number = lagging->items[number - 1].before) {
        if (outdates(record, &lagging->items[number - 1].record)) {
            return &lagging->items[number - 1];
        }
    }
    return NULL;
}

bool lagging_add(
    struct lagging *lagging, const struct core_record *record, struct lagging_newest *newest)
{
    size_t before = newest->round == lagging->round ? newest->number : 0;
    struct lagging_record *outdated = find_outdated(lagging, record, before);
    if (outdated != NULL) {
        outdated->record = *record;
        return true;
    }
    if (lagging->count == lagging->capacity) {
        size_t capacity = lagging->capacity > 0 ? lagging->capacity * 2 : 16;
        struct lagging_record *grown = realloc(lagging->items, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        lagging->items = grown;
        lagging->capacity = capacity;
    }
    lagging->items[lagging->count++] = (struct lagging_record){*record, before};
    *newest = (struct lagging_newest){lagging->count, lagging->round};
    return true;
}

void lagging_clear(struct lagging *lagging)
{
    lagging->count = 0;
    lagging->round++;
}

void lagging_free(struct lagging *lagging)
{
    free(lagging->items);
    *lagging = (struct lagging){0};
}
