/* SPDX-License-Identifier: Apache-2.0
 * See read_ahead_slots.h. */
#include "worker/library/input/read_ahead/read_ahead_slots.h"

#include <stdlib.h>

struct read_ahead_slot **read_ahead_slot_at(struct read_ahead *ahead, uint64_t number)
{
    return &ahead->ring[(ahead->first + number) % ahead->capacity];
}

static void read_ahead_slot_free(struct read_ahead_slot *slot)
{
    iterator_state_writer_clear(&slot->position);
    cadre_element_release(&slot->element);
    id_list_clear(&slot->ids);
    free(slot);
}

/* For use again: keeps the memory of its lists. */
static void slot_reuse(struct read_ahead *ahead, struct read_ahead_slot *slot)
{
    cadre_element_release(&slot->element);
    slot->ids.count = 0;
    slot->position.count = 0;
    slot->behind = ahead->unused;
    ahead->unused = slot;
}

static bool grow_ring(struct read_ahead *ahead)
{
    uint64_t capacity = ahead->capacity == 0 ? 16 : 2 * ahead->capacity;
    struct read_ahead_slot **ring = calloc(capacity, sizeof ring[0]);
    if (ring == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < ahead->count; i++) {
        ring[i] = *read_ahead_slot_at(ahead, i);
    }
    free(ahead->ring);
    ahead->ring = ring;
    ahead->capacity = capacity;
    ahead->first = 0;
    return true;
}

struct read_ahead_slot *read_ahead_slot_claim(struct read_ahead *ahead)
{
    if (ahead->count == ahead->capacity && !grow_ring(ahead)) {
        return NULL;
    }
    struct read_ahead_slot *slot = ahead->unused;
    if (slot == NULL) {
        slot = calloc(1, sizeof *slot);
        if (slot == NULL) {
            return NULL;
        }
        ahead->made++;
    } else {
        ahead->unused = slot->behind;
    }
    slot->read = false;
    slot->done = false;
    slot->has_state = false;
    slot->rows = 0;
    slot->rows_given = 0;
    slot->error.code = CADRE_OK;
    slot->behind = NULL;
    *read_ahead_slot_at(ahead, ahead->count) = slot;
    ahead->count++;
    return slot;
}

void read_ahead_slot_remove(struct read_ahead *ahead, uint64_t number)
{
    struct read_ahead_slot *slot = *read_ahead_slot_at(ahead, number);
    for (; number > 0; number--) {
        *read_ahead_slot_at(ahead, number) = *read_ahead_slot_at(ahead, number - 1);
    }
    ahead->first = (ahead->first + 1) % ahead->capacity;
    ahead->count--;
    slot_reuse(ahead, slot);
}

void read_ahead_slot_remove_last(struct read_ahead *ahead)
{
    struct read_ahead_slot *slot = *read_ahead_slot_at(ahead, --ahead->count);
    slot_reuse(ahead, slot);
}

cadre_status read_ahead_slot_ids(const struct read_ahead_slot *slot, size_t first, size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    bool one_each = slot->ids.count == slot->rows && slot->rows > 0;
    if (one_each) {
        return id_list_add_range(ids, &slot->ids, first, count, error);
    }
    return id_list_add_range(ids, &slot->ids, 0, first == 0 ? slot->ids.count : 0, error);
}

cadre_status read_ahead_slot_rows(const struct read_ahead_slot *slot, size_t count, bool alone,
    cadre_element *ret_element, struct cadre_error *error)
{
    int64_t first = (int64_t)slot->rows_given;
    for (uint32_t i = 0; i < slot->element.count; i++) {
        cadre_tensor *rows = slot->element.tensors[i];
        cadre_tensor **view = &ret_element->tensors[i];
        cadre_status status = alone ? tensor_view_row(rows, first, view, error)
                                    : tensor_view_rows(rows, first, (int64_t)count, view, error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

void read_ahead_slots_clear(struct read_ahead *ahead)
{
    while (ahead->count > 0) {
        read_ahead_slot_remove(ahead, 0);
    }
    while (ahead->unused != NULL) {
        struct read_ahead_slot *slot = ahead->unused;
        ahead->unused = slot->behind;
        read_ahead_slot_free(slot);
    }
    free(ahead->ring);
}
