/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/hash_counts.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

#define CAPACITY_MIN 1024

/* The place of the hash, or the free one where it would be. A hash is its own hash. */
static struct hash_count *find(
    struct hash_count *places, size_t capacity, const struct sha256 *hash)
{
    size_t at;
    memcpy(&at, hash->bytes, sizeof at);
    at &= capacity - 1;
    while (places[at].used && !sha256_equal(&places[at].hash, hash)) {
        at = (at + 1) & (capacity - 1);
    }
    return &places[at];
}

/* Those that nobody needs are left behind. */
static bool grow(struct hash_counts *counts)
{
    size_t needed = 1;
    for (size_t i = 0; i < counts->capacity; i++) {
        needed += counts->places[i].used && counts->places[i].count > 0 ? 1 : 0;
    }
    size_t capacity = CAPACITY_MIN;
    while (capacity < 3 * needed) {
        capacity *= 2;
    }
    struct hash_count *places = calloc(capacity, sizeof *places);
    if (places == NULL) {
        return false;
    }
    for (size_t i = 0; i < counts->capacity; i++) {
        if (counts->places[i].used && counts->places[i].count > 0) {
            *find(places, capacity, &counts->places[i].hash) = counts->places[i];
        }
    }
    free(counts->places);
    *counts = (struct hash_counts){.places = places, .capacity = capacity, .used = needed - 1};
    return true;
}

bool hash_counts_add(struct hash_counts *counts, const struct sha256 *hash)
{
    if (2 * (counts->used + 1) > counts->capacity && !grow(counts)) {
        return false;
    }
    struct hash_count *place = find(counts->places, counts->capacity, hash);
    if (!place->used) {
        *place = (struct hash_count){.hash = *hash, .used = true};
        counts->used++;
    }
    place->count++;
    return true;
}

uint32_t hash_counts_drop(struct hash_counts *counts, const struct sha256 *hash)
{
    struct hash_count *place = find(counts->places, counts->capacity, hash);
    CADRE_ASSERT(place->used && place->count > 0);
    return --place->count;
}

uint32_t hash_counts_of(const struct hash_counts *counts, const struct sha256 *hash)
{
    return counts->capacity > 0 ? find(counts->places, counts->capacity, hash)->count : 0;
}

void hash_counts_free(struct hash_counts *counts)
{
    free(counts->places);
    *counts = (struct hash_counts){0};
}
