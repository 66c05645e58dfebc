/* SPDX-License-Identifier: Apache-2.0
 * See store.h: opening, memory, reading. Called by server/ and by the other files of the store. */
#include "worker/library/ps/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

void (*store_fault_hook)(void);

/* ---- memory ---- */

cadre_status store_alloc(struct store *store, uint64_t bytes, uint64_t *ret_at,
    struct cadre_error *error, const char *format, ...)
{
    pthread_mutex_lock(&store->growth);
    uint64_t at = atomic_load_explicit(&store->head->end, memory_order_relaxed);
    uint64_t left = 0;
    bool grown = memory_grow(&store->memory, at + store_aligned(bytes), &left);
    if (grown) {
        atomic_store_explicit(&store->head->end, at + store_aligned(bytes), memory_order_release);
        *ret_at = at;
    }
    left += store->memory.mapped - at;
    pthread_mutex_unlock(&store->growth);
    if (grown) {
        return CADRE_OK;
    }
    char what[CADRE_ERROR_TEXT_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const double gib = 1024.0 * 1024.0 * 1024.0;
    const double mib = 1024.0 * 1024.0;
    bool large = (double)bytes >= 0.1 * gib;
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "ps has no room for %s: %.1f %s were asked for and %.1f %s are left; add servers (--ps) or "
        "memory",
        what, (double)bytes / (large ? gib : mib), large ? "GiB" : "MiB",
        (double)left / (large ? gib : mib), large ? "GiB" : "MiB");
}

bool store_contains(const struct store *store, uint64_t at, uint64_t bytes)
{
    uint64_t end = atomic_load_explicit(&store->head->end, memory_order_relaxed);
    return at >= IMAGE_HEAD_BYTES && at % IMAGE_ALIGN == 0 && at <= end && bytes <= end - at;
}

/* ---- opening ---- */

uint64_t store_head_sum(const struct image_head *head)
{
    return image_checksum(IMAGE_MAGIC, &head->version, 4 * sizeof(uint64_t));
}

static cadre_status begin_empty(
    struct store *store, const struct store_options *options, struct cadre_error *error)
{
    uint64_t left = 0;
    if (store->head != NULL) {
        atomic_store(&store->head->magic, 0);
        store->head = NULL;
    }
    CADRE_TRY(memory_empty(&store->memory, error));
    if (!memory_grow(&store->memory, IMAGE_HEAD_BYTES, &left)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "ps has no room for a single page, %" PRIu64 " bytes are left; add memory", left);
    }
    struct image_head *head = store_at(store, 0);
    if (getrandom(&head->nonce, sizeof head->nonce, 0) != sizeof head->nonce) {
        return cadre_error_errno(error, errno, "ps: draw a number for its memory");
    }
    head->version = IMAGE_VERSION;
    head->generation = options->generation.number;
    head->generation_nonce = options->generation.nonce;
    head->sum = store_head_sum(head);
    atomic_store(&head->end, IMAGE_HEAD_BYTES);
    atomic_store(&head->loading, options->expects_copy);
    store_order_point();
    atomic_store_explicit(&head->magic, IMAGE_MAGIC, memory_order_release);
    store->head = head;
    return CADRE_OK;
}

static cadre_status open_memory(struct store *store, const struct store_options *options,
    bool *ret_existing, struct cadre_error *error)
{
    const char *lost = "ps: what its memory holds was not written by a parameter server of this "
                       "version, or is cut; give it an empty one";
    struct image_head *head = store_at(store, 0);
    *ret_existing = false;
    if (store->memory.mapped == 0 && !store->memory.cut) {
        return begin_empty(store, options, error);
    }
    if (store->memory.mapped < IMAGE_HEAD_BYTES) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "%s", lost);
    }
    uint64_t magic = atomic_load_explicit(&head->magic, memory_order_acquire);
    if (magic == 0) { /* a process died before it wrote the head */
        return begin_empty(store, options, error);
    }
    if (magic != IMAGE_MAGIC || head->sum != store_head_sum(head) ||
        head->version != IMAGE_VERSION) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "%s", lost);
    }
    store->head = head;
    struct generation kept = {.number = head->generation, .nonce = head->generation_nonce};
    if (!generation_equal(kept, options->generation) || atomic_load(&head->loading) != 0) {
        return begin_empty(store, options, error);
    }
    *ret_existing = true;
    return store_open_existing(store, error);
}

cadre_status store_open(const struct store_options *options, struct store **ret_store,
    bool *ret_existing, struct cadre_error *error)
{
    *ret_store = NULL;
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "ps has no memory to begin with");
    }
    store->memory.fd = -1;
    store->isa = store_isa();
    pthread_mutex_init(&store->growth, NULL);
    pthread_mutex_init(&store->creation, NULL);
    pthread_mutex_init(&store->pushes, NULL);
    cadre_status status = memory_open(options->fd, options->limit_bytes, &store->memory, error);
    if (status == CADRE_OK) {
        status = open_memory(store, options, ret_existing, error);
    }
    if (status != CADRE_OK) {
        *ret_existing = false;
        store_close(store);
        return status;
    }
    *ret_store = store;
    return CADRE_OK;
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    for (uint32_t i = 0; i < atomic_load(&store->count); i++) {
        pthread_mutex_destroy(&store_shard(store, i)->lock);
    }
    for (size_t i = 0; i < SHARD_CHUNKS; i++) {
        free(store->chunks[i]);
    }
    for (size_t i = 0; i < STORE_THREADS; i++) {
        if (store->scratch[i] != NULL) {
            free(store->scratch[i]->rows);
            free(store->scratch[i]->other);
            free(store->scratch[i]);
        }
    }
    pthread_mutex_destroy(&store->growth);
    pthread_mutex_destroy(&store->creation);
    pthread_mutex_destroy(&store->pushes);
    memory_close(&store->memory);
    free(store);
}

uint64_t store_nonce(const struct store *store)
{
    return store->head->nonce;
}

/* ---- reading ---- */

uint32_t store_count(const struct store *store)
{
    return atomic_load_explicit(&store->count, memory_order_acquire);
}

const struct store_spec *store_spec(const struct store *store, uint32_t shard)
{
    return &store_shard(store, shard)->spec;
}

const struct optimizer_rule *store_rule(const struct store *store, uint32_t shard)
{
    return shard_rule(store_shard(store, shard));
}

uint64_t store_version(const struct store *store, uint32_t shard)
{
    return atomic_load_explicit(&store_shard(store, shard)->kept->version, memory_order_acquire);
}

uint64_t store_steps(const struct store *store, uint32_t shard)
{
    return atomic_load_explicit(&store_shard(store, shard)->kept->steps, memory_order_acquire);
}

const void *store_rows(const struct store *store, uint32_t shard, uint64_t first, uint64_t rows)
{
    const struct shard *one = store_shard(store, shard);
    CADRE_ASSERT(first <= one->spec.rows && rows <= one->spec.rows - first);
    return one->rows + first * one->row_elements * one->element_bytes;
}

void *store_slot(const struct store *store, uint32_t shard, uint32_t slot)
{
    const struct shard *one = store_shard(store, shard);
    return slot < OPTIMIZER_SLOTS && shard_rule(one)->kind != OPTIMIZER_NONE ? one->slots[slot]
                                                                             : NULL;
}

uint64_t store_updates(const struct store *store, uint32_t shard)
{
    return atomic_load_explicit(&store_shard(store, shard)->kept->updates, memory_order_acquire);
}

void store_set_updates(struct store *store, uint32_t shard, uint64_t updates)
{
    struct shard *one = store_shard(store, shard);
    pthread_mutex_lock(&one->lock);
    atomic_store_explicit(&one->kept->updates, updates, memory_order_release);
    pthread_mutex_unlock(&one->lock);
}

void store_gather(
    const struct store *store, uint32_t shard, const int64_t *ids, size_t count, void *ret_rows)
{
    const struct shard *one = store_shard(store, shard);
    size_t row_bytes = (size_t)one->row_elements * one->element_bytes;
    char *into = ret_rows;
    for (size_t i = 0; i < count; i++) {
        CADRE_ASSERT(ids[i] >= 0 && (uint64_t)ids[i] < one->spec.rows);
        memcpy(into + i * row_bytes, one->rows + (size_t)ids[i] * row_bytes, row_bytes);
    }
}
