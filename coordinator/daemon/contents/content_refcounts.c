/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/content_references_state.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

#define CAPACITY_MIN 1024

/* The entry of the hash, or the free one where it would be. A SHA-256 is its own table hash. */
static struct content_refcount *content_refcounts_find(
    struct content_refcount *entries, size_t capacity, const struct sha256 *hash)
{
    size_t at;
    memcpy(&at, hash->bytes, sizeof at);
    at &= capacity - 1;
    while (entries[at].used && !sha256_equal(&entries[at].hash, hash)) {
        at = (at + 1) & (capacity - 1);
    }
    return &entries[at];
}

/* Entries with a count of 0 are not copied. */
static bool content_refcounts_grow(struct content_refcounts *counts)
{
    size_t is_referenced = 1;
    for (size_t i = 0; i < counts->capacity; i++) {
        is_referenced += counts->entries[i].used && counts->entries[i].count > 0 ? 1 : 0;
    }
    size_t capacity = CAPACITY_MIN;
    while (capacity < 3 * is_referenced) {
        capacity *= 2;
    }
    struct content_refcount *entries = calloc(capacity, sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < counts->capacity; i++) {
        if (counts->entries[i].used && counts->entries[i].count > 0) {
            *content_refcounts_find(entries, capacity, &counts->entries[i].hash) =
                counts->entries[i];
        }
    }
    free(counts->entries);
    *counts = (struct content_refcounts){
        .entries = entries, .capacity = capacity, .used = is_referenced - 1};
    return true;
}

bool content_refcounts_add(struct content_refcounts *counts, const struct sha256 *hash)
{
    if (2 * (counts->used + 1) > counts->capacity && !content_refcounts_grow(counts)) {
        return false;
    }
    struct content_refcount *entry =
        content_refcounts_find(counts->entries, counts->capacity, hash);
    if (!entry->used) {
        *entry = (struct content_refcount){.hash = *hash, .used = true};
        counts->used++;
    }
    entry->count++;
    return true;
}

uint32_t content_refcounts_drop(struct content_refcounts *counts, const struct sha256 *hash)
{
    struct content_refcount *entry =
        content_refcounts_find(counts->entries, counts->capacity, hash);
    CADRE_ASSERT(entry->used && entry->count > 0);
    return --entry->count;
}

uint32_t content_refcounts_of(const struct content_refcounts *counts, const struct sha256 *hash)
{
    return counts->capacity > 0
               ? content_refcounts_find(counts->entries, counts->capacity, hash)->count
               : 0;
}

void content_refcounts_free(struct content_refcounts *counts)
{
    free(counts->entries);
    *counts = (struct content_refcounts){0};
}
