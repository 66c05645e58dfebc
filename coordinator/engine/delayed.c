/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/delayed.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

#define FIRST_CAPACITY 64

static struct delayed_item *at(const struct delayed *delayed, size_t i)
{
    return &delayed->items[(delayed->first + i) & (delayed->capacity - 1)];
}

static bool make_room(struct delayed *delayed)
{
    if (delayed->count < delayed->capacity) {
        return true;
    }
    size_t capacity = delayed->capacity > 0 ? delayed->capacity * 2 : FIRST_CAPACITY;
    struct delayed_item *items = calloc(capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    for (size_t i = 0; i < delayed->count; i++) {
        items[i] = *at(delayed, i);
    }
    free(delayed->items);
    delayed->items = items;
    delayed->first = 0;
    delayed->capacity = capacity;
    return true;
}

bool delayed_add(
    struct delayed *delayed, const struct delayed_item *item, const void *bytes, size_t size)
{
    uint8_t *copy = NULL;
    if (!make_room(delayed)) {
        return false;
    }
    CADRE_ASSERT(delayed->count == 0 || at(delayed, delayed->count - 1)->entry <= item->entry);
    if (size > 0) {
        copy = malloc(size);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, bytes, size);
    }
    struct delayed_item *added = at(delayed, delayed->count);
    *added = *item;
    added->bytes = copy;
    added->size = size;
    delayed->count++;
    return true;
}

bool delayed_take(struct delayed *delayed, uint64_t stored, struct delayed_item *ret_item)
{
    if (delayed->count == 0 || at(delayed, 0)->entry > stored) {
        return false;
    }
    *ret_item = *at(delayed, 0);
    delayed->first = (delayed->first + 1) & (delayed->capacity - 1);
    delayed->count--;
    return true;
}

const struct delayed_item *delayed_at(const struct delayed *delayed, size_t i)
{
    return i < delayed->count ? at(delayed, i) : NULL;
}

void delayed_free(struct delayed *delayed)
{
    for (size_t i = 0; i < delayed->count; i++) {
        free(at(delayed, i)->bytes);
    }
    free(delayed->items);
    *delayed = (struct delayed){0};
}
