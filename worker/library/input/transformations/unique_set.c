/* SPDX-License-Identifier: Apache-2.0
 * A hash table with open addressing over strings that lie one behind the other. */
#include "worker/library/input/transformations/unique_set.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "worker/library/input/node/available_memory.h"

/* The machine's memory is looked at each time so much more is held. */
#define CHECKED_EACH_BYTES ((size_t)16 << 20)

void unique_set_clear(struct unique_set *set)
{
    free(set->keys);
    free(set->table);
    free(set->bytes);
    *set = (struct unique_set){0};
}

static uint64_t hash_of(const uint8_t *bytes, size_t count)
{
    uint64_t hash = prng_mix(count);
    for (; count >= sizeof hash; bytes += sizeof hash, count -= sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes, sizeof word);
        hash = prng_mix(hash ^ word);
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, count);
    return count > 0 ? prng_mix(hash ^ rest) : hash;
}

/* Where the key is in the table, or would be. */
static size_t unique_set_find(
    const struct unique_set *set, uint64_t hash, const void *bytes, size_t count)
{
    size_t at = (size_t)hash & (set->table_count - 1);
    while (set->table[at] != 0) {
        const struct unique_key *key = &set->keys[set->table[at] - 1];
        if (key->hash == hash && key->count == count &&
            (count == 0 || memcmp(set->bytes + key->at, bytes, count) == 0)) {
            break;
        }
        at = (at + 1) & (set->table_count - 1);
    }
    return at;
}

static cadre_status no_memory(const struct unique_set *set, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "unique: no memory for more than %zu different elements", set->count);
}

/* Twice as many places; it is at most half full. */
static cadre_status grow_table(struct unique_set *set, struct cadre_error *error)
{
    if (2 * (set->count + 1) <= set->table_count) {
        return CADRE_OK;
    }
    size_t table_count = set->table_count == 0 ? 64 : 2 * set->table_count;
    uint64_t *table = calloc(table_count, sizeof table[0]);
    if (table == NULL) {
        return no_memory(set, error);
    }
    for (size_t i = 0; i < set->count; i++) {
        size_t at = (size_t)set->keys[i].hash & (table_count - 1);
        while (table[at] != 0) {
            at = (at + 1) & (table_count - 1);
        }
        table[at] = i + 1;
    }
    free(set->table);
    set->table = table;
    set->table_count = table_count;
    return CADRE_OK;
}

/* Room for one more key of `count` bytes. */
static cadre_status grow_keys(struct unique_set *set, size_t count, struct cadre_error *error)
{
    if (set->count == set->key_capacity) {
        size_t capacity = set->key_capacity == 0 ? 32 : 2 * set->key_capacity;
        struct unique_key *keys = realloc(set->keys, capacity * sizeof keys[0]);
        if (keys == NULL) {
            return no_memory(set, error);
        }
        set->keys = keys;
        set->key_capacity = capacity;
    }
    if (set->bytes == NULL || count > set->capacity - set->used) {
        size_t capacity = set->capacity + set->capacity / 2 + count + 256;
        uint8_t *bytes = realloc(set->bytes, capacity);
        if (bytes == NULL) {
            return no_memory(set, error);
        }
        set->bytes = bytes;
        set->capacity = capacity;
    }
    return CADRE_OK;
}

/* Stops before the machine has no memory left for anybody. */
static cadre_status check_memory(struct unique_set *set, struct cadre_error *error)
{
    size_t held = set->capacity + set->key_capacity * sizeof set->keys[0] +
                  set->table_count * sizeof set->table[0];
    bool short_of_it = fault_point("unique.memory");
    if (held - set->checked >= CHECKED_EACH_BYTES) {
        set->checked = held;
        short_of_it = short_of_it || available_memory_is_low();
    }
    if (!short_of_it) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "unique: %zu different elements take %zu bytes and this machine's memory is short; "
        "remove what is there twice before training",
        set->count, held);
}

cadre_status unique_set_add(struct unique_set *set, const void *bytes, size_t count, bool *ret_new,
    struct cadre_error *error)
{
    const uint64_t hash = hash_of(bytes, count);
    *ret_new = false;
    CADRE_TRY(grow_table(set, error));
    size_t at = unique_set_find(set, hash, bytes, count);
    if (set->table[at] != 0) {
        return CADRE_OK;
    }
    CADRE_TRY(grow_keys(set, count, error));
    CADRE_TRY(check_memory(set, error));
    memcpy(set->bytes + set->used, bytes, count);
    set->keys[set->count] = (struct unique_key){hash, set->used, count};
    set->used += count;
    set->count++;
    set->table[at] = set->count;
    *ret_new = true;
    return CADRE_OK;
}
