/* SPDX-License-Identifier: Apache-2.0
 * Which pushes were applied, and how far: a table of open addressing. An entry is free, has a push,
 * or is removed: its push was forgotten, and another one may take it. When more than three quarters
 * of the entries are not free, those in use move to another table, large enough that as many pushes
 * come before the next time: so each costs constant time, forgetting included. Called by
 * store_push.c, store_sparse.c, store_step.c and store_recover.c. */
#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

#define APPLIED_CAPACITY_MIN 1024

static uint64_t first_entry(const struct image_table *table, struct push_key key)
{
    uint64_t both = ((uint64_t)key.shard << 32) | key.ordinal;
    return prng_mix(prng_mix(key.closure) ^ both) & (table->capacity - 1);
}

static uint64_t closure_of(const struct image_push *entry)
{
    return atomic_load_explicit(&entry->closure, memory_order_acquire);
}

static bool store_applied_forgotten(const struct store *store, const struct image_push *entry)
{
    uint64_t closure = closure_of(entry);
    return closure == IMAGE_PUSH_REMOVED ||
           (entry->active == 0 &&
               closure < atomic_load_explicit(&store->head->forgotten, memory_order_relaxed));
}

static struct image_push *store_applied_find(struct store *store, struct push_key key)
{
    struct image_table *table = store->table;
    if (table == NULL) {
        return NULL;
    }
    uint64_t at = first_entry(table, key);
    for (uint64_t tried = 0; tried < table->capacity; tried++) {
        struct image_push *entry = &table->entries[(at + tried) & (table->capacity - 1)];
        uint64_t closure = closure_of(entry);
        if (closure == 0) {
            return NULL;
        }
        if (closure == key.closure && entry->ordinal == key.ordinal && entry->shard == key.shard) {
            return entry;
        }
    }
    return NULL;
}

/* The key is not there, and an entry is free. */
static struct image_push *store_applied_insert(struct store *store, struct image_table *table,
    struct push_key key, const struct push_progress *progress, uint64_t *used)
{
    uint64_t at = first_entry(table, key);
    struct image_push *entry = &table->entries[at];
    while (closure_of(entry) != 0 && !store_applied_forgotten(store, entry)) {
        at = (at + 1) & (table->capacity - 1);
        entry = &table->entries[at];
    }
    if (closure_of(entry) == 0) {
        ++*used;
    } else {
        atomic_store_explicit(&entry->closure, IMAGE_PUSH_REMOVED, memory_order_release);
        store_order_point();
    }
    entry->ordinal = key.ordinal;
    entry->shard = key.shard;
    entry->count = progress->count;
    entry->active = 0;
    entry->synchronous = progress->synchronous;
    atomic_store_explicit(&entry->trust, store_bits(progress->trust), memory_order_relaxed);
    atomic_store_explicit(&entry->progress, progress->done, memory_order_relaxed);
    store_order_point();
    atomic_store_explicit(&entry->closure, key.closure, memory_order_release);
    return entry;
}

/* ---- a larger one ---- */

static uint64_t table_bytes(uint64_t capacity)
{
    return sizeof(struct image_table) + capacity * sizeof(struct image_push);
}

static void move_live(struct store *store, struct image_table *to, uint64_t *ret_used)
{
    const struct image_table *from = store->table;
    *ret_used = 0;
    for (uint64_t i = 0; from != NULL && i < from->capacity; i++) {
        const struct image_push *entry = &from->entries[i];
        if (closure_of(entry) == 0 || store_applied_forgotten(store, entry)) {
            continue;
        }
        struct push_key key = {
            .closure = closure_of(entry), .ordinal = entry->ordinal, .shard = entry->shard};
        struct push_progress progress = {.done = atomic_load(&entry->progress),
            .count = entry->count,
            .trust = store_double(atomic_load(&entry->trust)),
            .synchronous = entry->synchronous != 0};
        store_applied_insert(store, to, key, &progress, ret_used)->active = entry->active;
    }
}

static uint64_t wanted_capacity(const struct store *store)
{
    uint64_t live = 0;
    for (uint64_t i = 0; store->table != NULL && i < store->table->capacity; i++) {
        const struct image_push *entry = &store->table->entries[i];
        live += closure_of(entry) != 0 && !store_applied_forgotten(store, entry);
    }
    uint64_t capacity = store->table != NULL ? store->table->capacity : APPLIED_CAPACITY_MIN;
    while (capacity / 2 <= live) { /* at least a quarter of it for pushes to come */
        capacity *= 2;
    }
    return capacity;
}

static cadre_status store_applied_move(struct store *store, struct cadre_error *error)
{
    uint64_t capacity = wanted_capacity(store);
    uint64_t at = store->spare_table;
    if (at != 0 && capacity == store->table->capacity) {
        memset(store_at(store, at), 0, (size_t)table_bytes(capacity));
        store->spare_table = 0;
    } else {
        CADRE_TRY(store_alloc(store, table_bytes(capacity), &at, error,
            "the numbers of %" PRIu64 " pushes", capacity / 2));
    }
    struct image_table *table = store_at(store, at);
    table->capacity = capacity;
    table->check = ~capacity;
    uint64_t used = 0;
    move_live(store, table, &used);
    store_order_point();
    bool same = store->table != NULL && store->table->capacity == capacity;
    uint64_t old = same ? store_offset(store, store->table) : 0;
    atomic_store_explicit(&store->head->table, at, memory_order_release);
    store->table = table;
    store->used = used;
    store->spare_table = old;
    return CADRE_OK;
}

enum push_state applied_find(
    struct store *store, struct push_key key, struct push_progress *ret_progress)
{
    *ret_progress = (struct push_progress){0};
    enum push_state state = PUSH_NEW;
    pthread_mutex_lock(&store->pushes);
    const struct image_push *entry = store_applied_find(store, key);
    if (entry != NULL) {
        *ret_progress = (struct push_progress){
            .done = atomic_load_explicit(&entry->progress, memory_order_relaxed),
            .count = entry->count,
            .trust = store_double(atomic_load_explicit(&entry->trust, memory_order_relaxed)),
            .synchronous = entry->synchronous != 0};
        state = entry->active != 0                       ? PUSH_ACTIVE
                : ret_progress->done == IMAGE_PUSH_WHOLE ? PUSH_WHOLE
                                                         : PUSH_BEGUN;
    }
    /* Another push may have taken its entry. */
    if (state != PUSH_ACTIVE && key.closure < atomic_load(&store->head->forgotten)) {
        state = PUSH_WHOLE;
    }
    pthread_mutex_unlock(&store->pushes);
    return state;
}

cadre_status applied_claim(struct store *store, struct push_key key,
    const struct push_progress *progress, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&store->pushes);
    struct image_push *entry = store_applied_find(store, key);
    if (entry == NULL) {
        if (store->table == NULL || store->used + 1 > store->table->capacity / 4 * 3) {
            status = store_applied_move(store, error);
        }
        if (status == CADRE_OK) {
            entry = store_applied_insert(store, store->table, key, progress, &store->used);
        }
    }
    if (entry != NULL) {
        entry->active = 1;
    }
    pthread_mutex_unlock(&store->pushes);
    return status;
}

void applied_release(struct store *store, struct push_key key)
{
    pthread_mutex_lock(&store->pushes);
    struct image_push *entry = store_applied_find(store, key);
    CADRE_ASSERT(entry != NULL && entry->active != 0);
    entry->active = 0;
    pthread_mutex_unlock(&store->pushes);
}

void applied_progress(struct store *store, struct push_key key, uint64_t done)
{
    pthread_mutex_lock(&store->pushes);
    struct image_push *entry = store_applied_find(store, key);
    CADRE_ASSERT(entry != NULL);
    atomic_store_explicit(&entry->progress, done, memory_order_release);
    if (done == IMAGE_PUSH_WHOLE) {
        entry->active = 0;
    }
    pthread_mutex_unlock(&store->pushes);
}

void applied_trust(struct store *store, struct push_key key, double trust)
{
    pthread_mutex_lock(&store->pushes);
    struct image_push *entry = store_applied_find(store, key);
    CADRE_ASSERT(entry != NULL);
    atomic_store_explicit(&entry->trust, store_bits(trust), memory_order_release);
    pthread_mutex_unlock(&store->pushes);
}

static bool is_open_contribution(const struct image_push *entry, uint32_t shard)
{
    uint64_t closure = closure_of(entry);
    return closure != 0 && closure != IMAGE_PUSH_REMOVED && entry->shard == shard &&
           entry->synchronous != 0 &&
           atomic_load_explicit(&entry->progress, memory_order_relaxed) != IMAGE_PUSH_WHOLE;
}

bool applied_drop(struct store *store, uint32_t shard)
{
    pthread_mutex_lock(&store->pushes);
    struct image_table *table = store->table;
    uint64_t entries = table == NULL ? 0 : table->capacity;
    bool active = false;
    for (uint64_t i = 0; i < entries; i++) {
        struct image_push *entry = &table->entries[i];
        active = active || (is_open_contribution(entry, shard) && entry->active != 0);
    }
    for (uint64_t i = 0; !active && i < entries; i++) {
        if (is_open_contribution(&table->entries[i], shard)) {
            atomic_store_explicit(
                &table->entries[i].progress, IMAGE_PUSH_WHOLE, memory_order_release);
            store_order_point();
        }
    }
    pthread_mutex_unlock(&store->pushes);
    return !active;
}

void applied_open(struct store *store, struct image_table *table)
{
    store->table = table;
    store->used = 0;
    for (uint64_t i = 0; i < table->capacity; i++) {
        store->used += closure_of(&table->entries[i]) != 0;
        table->entries[i].active = 0;
    }
}

void store_forget(struct store *store, uint64_t closure)
{
    closure = closure < IMAGE_PUSH_REMOVED ? closure : IMAGE_PUSH_REMOVED - 1;
    pthread_mutex_lock(&store->pushes);
    if (closure > atomic_load_explicit(&store->head->forgotten, memory_order_relaxed)) {
        atomic_store_explicit(&store->head->forgotten, closure, memory_order_release);
    }
    pthread_mutex_unlock(&store->pushes);
}

bool store_applied(const struct store *store, uint32_t shard, uint64_t closure, uint32_t ordinal)
{
    struct push_key key = {.closure = closure, .ordinal = ordinal, .shard = shard};
    struct push_progress progress;
    return closure != 0 &&
           applied_find((struct store *)(uintptr_t)store, key, &progress) == PUSH_WHOLE;
}
