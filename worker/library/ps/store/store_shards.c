/* SPDX-License-Identifier: Apache-2.0
 * Shards: checks of their specs, and making them. Called by store.h's users and store_open.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/ps/store/store_internal.h"

void store_spec_of(const struct image_spec *kept, struct store_spec *ret_spec)
{
    *ret_spec = (struct store_spec){.shard = kept->shard,
        .dtype = (cadre_dtype)kept->dtype,
        .rows = kept->rows,
        .row_elements = kept->row_elements};
    snprintf(ret_spec->name, sizeof ret_spec->name, "%s", kept->name);
}

static void image_of(const struct store_spec *spec, struct image_spec *ret_existing)
{
    *ret_existing = (struct image_spec){.shard = spec->shard,
        .dtype = (uint32_t)spec->dtype,
        .rows = spec->rows,
        .row_elements = spec->row_elements};
    snprintf(ret_existing->name, sizeof ret_existing->name, "%s", spec->name);
}

cadre_status store_view(struct store *store, struct image_shard *kept, struct cadre_error *error)
{
    uint32_t count = atomic_load_explicit(&store->count, memory_order_relaxed);
    struct shard **chunk = &store->chunks[count / SHARDS_PER_CHUNK];
    if (*chunk == NULL) {
        *chunk = calloc(SHARDS_PER_CHUNK, sizeof **chunk);
        if (*chunk == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "ps has no memory for %u shards", count + 1);
        }
    }
    struct shard *shard = store_shard(store, count);
    store_spec_of(&kept->spec, &shard->spec);
    shard->number = count;
    shard->kept = kept;
    shard->rows = store_at(store, kept->spec.rows_at);
    shard->element_bytes = cadre_dtype_bytes(shard->spec.dtype);
    shard->row_elements = shard->spec.row_elements;
    shard->sum_bytes = shard->spec.dtype == CADRE_F16 || shard->spec.dtype == CADRE_BF16
                           ? sizeof(float)
                           : shard->element_bytes;
    pthread_mutex_init(&shard->lock, NULL);
    atomic_store_explicit(&store->count, count + 1, memory_order_release);
    return CADRE_OK;
}

void shard_view_rule(struct store *store, struct shard *shard, const struct image_rule *kept)
{
    rule_read(kept->bytes, &shard->rule);
    for (uint32_t i = 0; i < optimizer_slots(&shard->rule); i++) {
        shard->slots[i] = store_at(store, kept->slots_at[i]);
    }
    atomic_store_explicit(&shard->trained, true, memory_order_release);
}

void store_view_step(struct store *store, struct shard *shard, struct image_step *step)
{
    shard->sums = store_at(store, step->sums_at);
    shard->touched = store_at(store, step->touched_at);
    shard->step = step;
}

/* *ret_bytes: of its rows. */
static cadre_status check_spec(
    const struct store_spec *spec, uint64_t *ret_bytes, struct cadre_error *error)
{
    if (memchr(spec->name, 0, sizeof spec->name) == NULL || spec->name[0] == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a variable's name has 1 to %zu bytes", sizeof spec->name - 1);
    }
    uint64_t bytes = cadre_dtype_bytes(spec->dtype);
    if (bytes == 0 || spec->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s`: a server holds numbers, and its type is %s", spec->name,
            cadre_dtype_name(spec->dtype));
    }
    if (__builtin_mul_overflow(bytes, spec->rows, &bytes) ||
        __builtin_mul_overflow(bytes, spec->row_elements, &bytes) || bytes > UINT64_MAX >> 4) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s`: %" PRIu64 " rows of %" PRIu64 " elements are more bytes than can be counted",
            spec->name, spec->rows, spec->row_elements);
    }
    *ret_bytes = bytes;
    return CADRE_OK;
}

/* CADRE_PENDING: there is none. */
static cadre_status find_shard(const struct store *store, const struct store_spec *spec,
    uint32_t *ret_shard, struct cadre_error *error)
{
    for (uint32_t i = 0; i < store_count(store); i++) {
        const struct store_spec *other = store_spec(store, i);
        if (other->shard != spec->shard || strcmp(other->name, spec->name) != 0) {
            continue;
        }
        *ret_shard = i;
        bool same = other->dtype == spec->dtype && other->rows == spec->rows &&
                    other->row_elements == spec->row_elements;
        return same ? CADRE_OK
                    : cadre_error_set(error, CADRE_ALREADY_EXISTS,
                          SHARD_TEXT " is there already, as %" PRIu64 " rows of %" PRIu64
                                     " %s elements; this one has %" PRIu64 " rows of %" PRIu64
                                     " %s elements",
                          spec->shard, spec->name, other->rows, other->row_elements,
                          cadre_dtype_name(other->dtype), spec->rows, spec->row_elements,
                          cadre_dtype_name(spec->dtype));
    }
    return CADRE_PENDING;
}

static image_atomic *last_link(const struct store *store)
{
    uint32_t count = store_count(store);
    return count == 0 ? &store->head->shards : &store_shard(store, count - 1)->kept->next;
}

static cadre_status make_shard(
    struct store *store, const struct store_spec *spec, uint64_t bytes, struct cadre_error *error)
{
    uint64_t record = store_aligned(sizeof(struct image_shard));
    uint64_t at = 0;
    if (store_count(store) == SHARDS_PER_CHUNK * SHARD_CHUNKS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "ps holds %u shards, which is as many as it can; add servers (--ps)",
            store_count(store));
    }
    CADRE_TRY(store_alloc(
        store, record + store_aligned(bytes), &at, error, SHARD_TEXT, spec->shard, spec->name));
    struct image_shard *kept = store_at(store, at);
    image_of(spec, &kept->spec);
    kept->spec.rows_at = at + record;
    kept->sum = image_checksum(at, &kept->spec, sizeof kept->spec);
    image_atomic *link = last_link(store);
    CADRE_TRY(store_view(store, kept, error));
    store_order_point();
    atomic_store_explicit(link, at, memory_order_release);
    return CADRE_OK;
}

cadre_status store_create(struct store *store, const struct store_spec *spec, uint32_t *ret_shard,
    struct cadre_error *error)
{
    uint64_t bytes = 0;
    CADRE_TRY(check_spec(spec, &bytes, error));
    pthread_mutex_lock(&store->creation);
    cadre_status status = find_shard(store, spec, ret_shard, error);
    if (status == CADRE_PENDING) {
        uint32_t count = store_count(store);
        status = make_shard(store, spec, bytes, error);
        if (status == CADRE_OK) {
            *ret_shard = count;
        }
    }
    pthread_mutex_unlock(&store->creation);
    return status;
}
