/* SPDX-License-Identifier: Apache-2.0
 * Shards: what may be one, and making them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store_parts.h"

uint32_t store_slots_of(enum store_optimizer optimizer)
{
    static const uint32_t slots[] = {[STORE_MOMENTUM] = 1, [STORE_ADAGRAD] = 1, [STORE_ADAM] = 2};
    return (size_t)optimizer < CADRE_COUNT_OF(slots) ? slots[optimizer] : 0;
}

void store_spec_of(const struct kept_spec *kept, struct store_spec *ret_spec)
{
    *ret_spec = (struct store_spec){.shard = kept->shard,
        .dtype = (cadre_dtype)kept->dtype,
        .rows = kept->rows,
        .row_elements = kept->row_elements,
        .training = {.optimizer = (enum store_optimizer)kept->optimizer,
            .rate = kept->rate,
            .momentum = kept->momentum,
            .nesterov = kept->nesterov != 0,
            .initial = kept->initial,
            .beta1 = kept->beta1,
            .beta2 = kept->beta2,
            .epsilon = kept->epsilon}};
    snprintf(ret_spec->name, sizeof ret_spec->name, "%s", kept->name);
}

static void kept_of(const struct store_spec *spec, struct kept_spec *ret_kept)
{
    const struct store_training *training = &spec->training;
    *ret_kept = (struct kept_spec){.shard = spec->shard,
        .dtype = (uint32_t)spec->dtype,
        .rows = spec->rows,
        .row_elements = spec->row_elements,
        .optimizer = (uint32_t)training->optimizer,
        .nesterov = training->nesterov,
        .rate = training->rate,
        .momentum = training->momentum,
        .initial = training->initial,
        .beta1 = training->beta1,
        .beta2 = training->beta2,
        .epsilon = training->epsilon};
    snprintf(ret_kept->name, sizeof ret_kept->name, "%s", spec->name);
}

cadre_status store_view(struct store *store, struct kept_shard *kept, struct cadre_error *error)
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
    for (uint32_t i = 0; i < store_slots_of(shard->spec.training.optimizer); i++) {
        shard->slots[i] = store_at(store, kept->spec.slots_at[i]);
    }
    shard->element_bytes = cadre_dtype_bytes(shard->spec.dtype);
    shard->row_elements = shard->spec.row_elements;
    shard->sum_bytes = shard->spec.dtype == CADRE_F16 || shard->spec.dtype == CADRE_BF16
                           ? sizeof(float)
                           : shard->element_bytes;
    pthread_mutex_init(&shard->lock, NULL);
    atomic_store_explicit(&store->count, count + 1, memory_order_release);
    return CADRE_OK;
}

void store_view_step(struct store *store, struct shard *shard, struct kept_step *step)
{
    shard->sums = store_at(store, step->sums_at);
    shard->touched = store_at(store, step->touched_at);
    shard->step = step;
}

static cadre_status check_number(const struct store_spec *spec, const char *what, double value,
    double least, double most, struct cadre_error *error)
{
    if (value >= least && value <= most) { /* no NaN does */
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "`%s`: %s is %g; it has to be a number from %g to %g", spec->name, what, value, least,
        most);
}

static cadre_status check_training(const struct store_spec *spec, struct cadre_error *error)
{
    const struct store_training *training = &spec->training;
    if ((unsigned)training->optimizer > STORE_ADAM) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "`%s`: there is no optimizer %u",
            spec->name, (unsigned)training->optimizer);
    }
    if (training->optimizer == STORE_NO_OPTIMIZER) {
        return CADRE_OK;
    }
    if (spec->dtype != CADRE_F32 && spec->dtype != CADRE_F64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s`: optimizers need f32 or f64, and it is %s", spec->name,
            cadre_dtype_name(spec->dtype));
    }
    const double most = 3e38; /* also as f32 */
    CADRE_TRY(check_number(spec, "the rate", training->rate, 0, most, error));
    if (training->optimizer == STORE_MOMENTUM) {
        CADRE_TRY(check_number(spec, "momentum", training->momentum, 0, 1, error));
    }
    if (training->optimizer == STORE_ADAGRAD) {
        CADRE_TRY(check_number(spec, "the initial accumulator", training->initial, 0, most, error));
    }
    if (training->optimizer == STORE_ADAM) {
        const double below_one = 0.9999999999;
        CADRE_TRY(check_number(spec, "beta1", training->beta1, 0, below_one, error));
        CADRE_TRY(check_number(spec, "beta2", training->beta2, 0, below_one, error));
    }
    return training->optimizer >= STORE_ADAGRAD
               ? check_number(spec, "epsilon", training->epsilon, 0, most, error)
               : CADRE_OK;
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
    return check_training(spec, error);
}

static void fill(char *slot, cadre_dtype dtype, double value, uint64_t elements)
{
    for (uint64_t i = 0; i < elements; i++) {
        if (dtype == CADRE_F64) {
            ((double *)(void *)slot)[i] = value;
        } else {
            ((float *)(void *)slot)[i] = (float)value;
        }
    }
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
                    other->row_elements == spec->row_elements &&
                    other->training.optimizer == spec->training.optimizer;
        return same ? CADRE_OK
                    : cadre_error_set(error, CADRE_ALREADY_EXISTS,
                          SHARD_TEXT " is there already, as %" PRIu64 " rows of %" PRIu64
                                     " %s elements; this one has %" PRIu64 " rows of %" PRIu64
                                     " %s elements, or another optimizer",
                          spec->shard, spec->name, other->rows, other->row_elements,
                          cadre_dtype_name(other->dtype), spec->rows, spec->row_elements,
                          cadre_dtype_name(spec->dtype));
    }
    return CADRE_PENDING;
}

static kept_word *last_link(const struct store *store)
{
    uint32_t count = store_count(store);
    return count == 0 ? &store->head->shards : &store_shard(store, count - 1)->kept->next;
}

static cadre_status make_shard(
    struct store *store, const struct store_spec *spec, uint64_t bytes, struct cadre_error *error)
{
    uint32_t slots = store_slots_of(spec->training.optimizer);
    uint64_t record = store_aligned(sizeof(struct kept_shard));
    uint64_t at = 0;
    if (store_count(store) == SHARDS_PER_CHUNK * SHARD_CHUNKS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "ps holds %u shards, which is as many as it can; add servers (--ps)",
            store_count(store));
    }
    CADRE_TRY(store_allot(store, record + (1 + slots) * store_aligned(bytes), &at, error,
        SHARD_TEXT, spec->shard, spec->name));
    struct kept_shard *kept = store_at(store, at);
    kept_of(spec, &kept->spec);
    kept->spec.rows_at = at + record;
    for (uint32_t i = 0; i < slots; i++) {
        kept->spec.slots_at[i] = at + record + (1 + i) * store_aligned(bytes);
    }
    if (spec->training.optimizer == STORE_ADAGRAD) {
        fill(store_at(store, kept->spec.slots_at[0]), spec->dtype, spec->training.initial,
            spec->rows * spec->row_elements);
    }
    kept->sum = kept_sum(at, &kept->spec, sizeof kept->spec);
    kept_word *link = last_link(store);
    CADRE_TRY(store_view(store, kept, error));
    store_point();
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
