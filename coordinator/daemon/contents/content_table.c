/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/content_table.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 256

/* A SHA-256 is its own table hash. */
static size_t hash_index(const struct content_table *table, const struct sha256 *hash)
{
    size_t at;
    memcpy(&at, hash->bytes, sizeof at);
    return at & (table->capacity - 1);
}

/* The entry of the hash, or the free one where it would be. */
static struct content *entry_of(const struct content_table *table, const struct sha256 *hash)
{
    size_t at = hash_index(table, hash);
    while (
        table->entries[at].state != CONTENT_NONE && !sha256_equal(&table->entries[at].hash, hash)) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->entries[at];
}

static bool content_table_grow(struct content_table *table)
{
    struct content_table grown = {
        .capacity = table->capacity > 0 ? 2 * table->capacity : CAPACITY_MIN};
    grown.entries = calloc(grown.capacity, sizeof *grown.entries);
    if (grown.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->entries[i].state != CONTENT_NONE) {
            *entry_of(&grown, &table->entries[i].hash) = table->entries[i];
        }
    }
    grown.used = table->used;
    free(table->entries);
    *table = grown;
    return true;
}

struct content *content_table_add(struct content_table *table, const struct sha256 *hash)
{
    struct content *content = content_table_find(table, hash);
    if (content != NULL) {
        return content;
    }
    if (2 * (table->used + 1) > table->capacity && !content_table_grow(table)) {
        return NULL;
    }
    content = entry_of(table, hash);
    *content = (struct content){.hash = *hash, .state = CONTENT_ABSENT};
    table->used++;
    return content;
}

struct content *content_table_find(const struct content_table *table, const struct sha256 *hash)
{
    struct content *content = table->capacity > 0 ? entry_of(table, hash) : NULL;
    return content != NULL && content->state != CONTENT_NONE ? content : NULL;
}

/* Entries after it that collided with it move up. */
void content_table_remove(struct content_table *table, struct content *content)
{
    size_t mask = table->capacity - 1;
    size_t hole = (size_t)(content - table->entries);
    for (size_t at = (hole + 1) & mask; table->entries[at].state != CONTENT_NONE;
         at = (at + 1) & mask) {
        size_t home = hash_index(table, &table->entries[at].hash);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->entries[hole] = table->entries[at];
            hole = at;
        }
    }
    table->entries[hole] = (struct content){0};
    table->used--;
}

void content_table_free(struct content_table *table)
{
    free(table->entries);
    *table = (struct content_table){0};
}
