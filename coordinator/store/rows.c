/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

void *rows_at(const struct rows *rows, size_t index)
{
    return (uint8_t *)rows->items + index * rows->item_bytes;
}

bool rows_reserve(struct rows *rows, size_t extra)
{
    size_t needed = rows->count + rows->reserved + extra;
    if (needed > rows->capacity) {
        size_t capacity = rows->capacity * 2 > needed ? rows->capacity * 2 : needed;
        void *grown = fault_point("store.allocate")
                          ? NULL
                          : realloc(rows->items, capacity * rows->item_bytes);
        if (grown == NULL) {
            return false;
        }
        rows->items = grown;
        rows->capacity = capacity;
    }
    rows->reserved += extra;
    return true;
}

/* The index of the first item that is not less than `key`. */
static size_t lower_bound(const struct rows *rows, const void *key)
{
    size_t low = 0;
    size_t high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows->compare(rows_at(rows, middle), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void *rows_find(const struct rows *rows, const void *key)
{
    size_t at = lower_bound(rows, key);
    bool found = at < rows->count && rows->compare(rows_at(rows, at), key) == 0;
    return found ? rows_at(rows, at) : NULL;
}

void rows_put(struct rows *rows, const void *item)
{
    size_t at = lower_bound(rows, item);
    if (at == rows->count || rows->compare(rows_at(rows, at), item) != 0) {
        CADRE_ASSERT(rows->reserved > 0 && rows->count < rows->capacity);
        memmove((uint8_t *)rows->items + (at + 1) * rows->item_bytes, rows_at(rows, at),
            (rows->count - at) * rows->item_bytes);
        rows->count++;
        rows->reserved--;
    }
    memcpy(rows_at(rows, at), item, rows->item_bytes);
}

void rows_filter(
    struct rows *rows, bool (*keep)(const void *item, const void *user), const void *user)
{
    size_t kept = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (!keep(rows_at(rows, i), user)) {
            continue;
        }
        if (kept != i) {
            memcpy(rows_at(rows, kept), rows_at(rows, i), rows->item_bytes);
        }
        kept++;
    }
    rows->count = kept;
}

bool rows_copy(const struct rows *rows, struct rows *ret_copy)
{
    *ret_copy = (struct rows){.item_bytes = rows->item_bytes, .compare = rows->compare};
    if (rows->count == 0) {
        return true;
    }
    if (!rows_reserve(ret_copy, rows->count)) {
        return false;
    }
    memcpy(ret_copy->items, rows->items, rows->count * rows->item_bytes);
    ret_copy->count = rows->count;
    ret_copy->reserved = 0;
    return true;
}

void rows_free(struct rows *rows)
{
    free(rows->items);
    rows->items = NULL;
    rows->count = 0;
    rows->capacity = 0;
    rows->reserved = 0;
}
