/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/content_table.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 256

/* A hash is its own hash. */
static size_t home_of(const struct content_table *table, const struct sha256 *hash)
{
    size_t at;
    memcpy(&at, hash->bytes, sizeof at);
    return at & (table->capacity - 1);
}

/* The place of the hash, or the free one where it would be. */
static struct content *place_of(const struct content_table *table, const struct sha256 *hash)
{
    size_t at = home_of(table, hash);
    while (
        table->places[at].state != CONTENT_NONE && !sha256_equal(&table->places[at].hash, hash)) {
        at = (at + 1) & (table->capacity - 1);
    }
    return &table->places[at];
}

static bool grow(struct content_table *table)
{
    struct content_table grown = {
        .capacity = table->capacity > 0 ? 2 * table->capacity : CAPACITY_MIN};
    grown.places = calloc(grown.capacity, sizeof *grown.places);
    if (grown.places == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->places[i].state != CONTENT_NONE) {
            *place_of(&grown, &table->places[i].hash) = table->places[i];
        }
    }
    grown.used = table->used;
    free(table->places);
    *table = grown;
    return true;
}

struct content *content_table_add(struct content_table *table, const struct sha256 *hash)
{
    struct content *content = content_table_find(table, hash);
    if (content != NULL) {
        return content;
    }
    if (2 * (table->used + 1) > table->capacity && !grow(table)) {
        return NULL;
    }
    content = place_of(table, hash);
    *content = (struct content){.hash = *hash, .state = CONTENT_ABSENT};
    table->used++;
    return content;
}

struct content *content_table_find(const struct content_table *table, const struct sha256 *hash)
{
    struct content *content = table->capacity > 0 ? place_of(table, hash) : NULL;
    return content != NULL && content->state != CONTENT_NONE ? content : NULL;
}

/* Those behind it that it kept from their place move up. */
void content_table_remove(struct content_table *table, struct content *content)
{
    size_t mask = table->capacity - 1;
    size_t hole = (size_t)(content - table->places);
    for (size_t at = (hole + 1) & mask; table->places[at].state != CONTENT_NONE;
         at = (at + 1) & mask) {
        size_t home = home_of(table, &table->places[at].hash);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->places[hole] = table->places[at];
            hole = at;
        }
    }
    table->places[hole] = (struct content){0};
    table->used--;
}

void content_table_free(struct content_table *table)
{
    free(table->places);
    *table = (struct content_table){0};
}
