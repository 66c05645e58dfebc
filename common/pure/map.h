/* SPDX-License-Identifier: Apache-2.0
 * A fixed table from 64-bit keys to 32-bit values in memory that the caller owns: open addressing,
 * linear probing, at most half full, no tombstones. A key may have several values (hashes of
 * names); a pair (key, value) is stored once. */
#ifndef CADRE_PURE_MAP_H
#define CADRE_PURE_MAP_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"

#define MAP_NONE UINT32_MAX

struct map_entry {
    uint64_t key;
    uint32_t value;
    bool used;
};

struct map {
    struct map_entry *entries;
    uint32_t mask;
    uint32_t count;
};

/* The number of slots for `items_max` values: the power of two that is at least twice as large.
 * items_max is at most 2^29. */
static inline uint32_t map_capacity(uint32_t items_max)
{
    uint32_t capacity = 8;
    CADRE_ASSERT(items_max <= (UINT32_C(1) << 29));
    while (capacity < 2 * items_max) {
        capacity *= 2;
    }
    return capacity;
}

static inline void map_init(struct map *map, struct map_entry *entries, uint32_t capacity)
{
    CADRE_ASSERT(capacity >= 8 && (capacity & (capacity - 1)) == 0);
    memset(entries, 0, sizeof(*entries) * capacity);
    map->entries = entries;
    map->mask = capacity - 1;
    map->count = 0;
}

static inline uint32_t map_home(const struct map *map, uint64_t key)
{
    return (uint32_t)prng_mix(key) & map->mask;
}

/* The slot of the first value of `key`, or MAP_NONE; then of the next one, until MAP_NONE. */
static inline uint32_t map_scan(const struct map *map, uint64_t key, uint32_t index)
{
    while (map->entries[index].used) {
        if (map->entries[index].key == key) {
            return index;
        }
        index = (index + 1) & map->mask;
    }
    return MAP_NONE;
}

static inline uint32_t map_first(const struct map *map, uint64_t key)
{
    return map_scan(map, key, map_home(map, key));
}

static inline uint32_t map_next(const struct map *map, uint64_t key, uint32_t index)
{
    return map_scan(map, key, (index + 1) & map->mask);
}

/* The value of a key that has one; MAP_NONE when the key is not there. */
static inline uint32_t map_get(const struct map *map, uint64_t key)
{
    uint32_t index = map_first(map, key);
    return index == MAP_NONE ? MAP_NONE : map->entries[index].value;
}

static inline void map_add(struct map *map, uint64_t key, uint32_t value)
{
    uint32_t index = map_home(map, key);
    CADRE_ASSERT(map->count < (map->mask + 1) / 2);
    while (map->entries[index].used) {
        CADRE_ASSERT(map->entries[index].key != key || map->entries[index].value != value);
        index = (index + 1) & map->mask;
    }
    map->entries[index] = (struct map_entry){.key = key, .value = value, .used = true};
    map->count++;
}

/* The pair must be there. What probed past it is moved up, so that no search meets a hole. */
static inline void map_remove(struct map *map, uint64_t key, uint32_t value)
{
    uint32_t hole = map_first(map, key);
    while (hole != MAP_NONE && map->entries[hole].value != value) {
        hole = map_next(map, key, hole);
    }
    CADRE_ASSERT(hole != MAP_NONE);
    for (uint32_t at = (hole + 1) & map->mask; map->entries[at].used; at = (at + 1) & map->mask) {
        uint32_t home = map_home(map, map->entries[at].key);
        if (((at - home) & map->mask) >= ((at - hole) & map->mask)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
    }
    map->entries[hole] = (struct map_entry){.used = false};
    map->count--;
}

#endif
