/* SPDX-License-Identifier: Apache-2.0
 * A table of the memory peer: plain items in the order of their key. */
#ifndef CADRE_COORDINATOR_STORE_ROWS_H
#define CADRE_COORDINATOR_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>

struct rows {
    void *items;
    size_t item_bytes;
    size_t count;
    size_t capacity;
    size_t reserved; /* of the free room: how many rows_put cannot fail for */
    int (*compare)(const void *a, const void *b);
};

/* Room for `extra` more, besides what was reserved before; false: no memory, nothing changed. */
bool rows_reserve(struct rows *rows, size_t extra);

/* Replaces the item with an equal key, or goes between its neighbours; room must be reserved. */
void rows_put(struct rows *rows, const void *item);

/* NULL: there is none with an equal key. */
void *rows_find(const struct rows *rows, const void *key);
/* By index, from 0, in order of key. */
void *rows_at(const struct rows *rows, size_t index);

/* Keeps the items for which `keep` is true. */
void rows_filter(
    struct rows *rows, bool (*keep)(const void *item, const void *user), const void *user);

/* *ret_copy has the items and no room beyond them; false: no memory. */
bool rows_copy(const struct rows *rows, struct rows *ret_copy);
/* Empty again; the struct is the caller's. */
void rows_free(struct rows *rows);

#endif
