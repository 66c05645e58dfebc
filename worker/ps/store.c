/* SPDX-License-Identifier: Apache-2.0
 * See store.h: opening, shards, and reading. */
#include "worker/ps/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/pure/assert.h"
#include "worker/ps/store_parts.h"

void (*store_between)(void);

/* ---- memory ---- */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + KEPT_ALIGN - 1) / KEPT_ALIGN * KEPT_ALIGN;
}

cadre_status store_allot(struct store *store, uint64_t bytes, uint64_t *ret_at,
    struct cadre_error *error, const char *format, ...)
{
    pthread_mutex_lock(&store->growth);
    uint64_t at = atomic_load_explicit(&store->head->end, memory_order_relaxed);
    uint64_t left = 0;
    bool grown = memory_grow(&store->memory, at + aligned(bytes), &left);
    if (grown) {
        atomic_store_explicit(&store->head->end, at + aligned(bytes), memory_order_release);
        *ret_at = at;
    }
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

bool store_holds(const struct store *store, uint64_t at, uint64_t bytes)
{
    uint64_t end = atomic_load_explicit(&store->head->end, memory_order_relaxed);
    return at >= KEPT_HEAD_BYTES && at % KEPT_ALIGN == 0 && at <= end && bytes <= end - at;
}

/* ---- opening ---- */

uint64_t store_head_sum(const struct kept_head *head)
{
    return kept_sum(KEPT_MAGIC, &head->version, 4 * sizeof(uint64_t));
}

static cadre_status begin_anew(
    struct store *store, struct generation generation, struct cadre_error *error)
{
    uint64_t left = 0;
    if (store->head != NULL) {
        atomic_store(&store->head->magic, 0);
        store->head = NULL;
    }
    CADRE_TRY(memory_empty(&store->memory, error));
    if (!memory_grow(&store->memory, KEPT_HEAD_BYTES, &left)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "ps has no room for a single page, %" PRIu64 " bytes are left; add memory", left);
    }
    struct kept_head *head = store_at(store, 0);
    if (getrandom(&head->nonce, sizeof head->nonce, 0) != sizeof head->nonce) {
        return cadre_error_errno(error, errno, "ps: draw a number for its memory");
    }
    head->version = KEPT_VERSION;
    head->generation = generation.number;
    head->generation_nonce = generation.nonce;
    head->sum = store_head_sum(head);
    atomic_store(&head->end, KEPT_HEAD_BYTES);
    store_point();
    atomic_store_explicit(&head->magic, KEPT_MAGIC, memory_order_release);
    store->head = head;
    return CADRE_OK;
}

static cadre_status open_memory(
    struct store *store, struct generation generation, bool *ret_kept, struct cadre_error *error)
{
    const char *lost = "ps: what its memory holds was not written by a parameter server of this "
                       "version, or is cut; give it an empty one";
    struct kept_head *head = store_at(store, 0);
    *ret_kept = false;
    if (store->memory.mapped == 0 && !store->memory.cut) {
        return begin_anew(store, generation, error);
    }
    if (store->memory.mapped < KEPT_HEAD_BYTES) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "%s", lost);
    }
    uint64_t magic = atomic_load_explicit(&head->magic, memory_order_acquire);
    if (magic == 0) { /* somebody was about to begin */
        return begin_anew(store, generation, error);
    }
    if (magic != KEPT_MAGIC || head->sum != store_head_sum(head) || head->version != KEPT_VERSION) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "%s", lost);
    }
    store->head = head;
    struct generation kept = {.number = head->generation, .nonce = head->generation_nonce};
    if (!generation_equal(kept, generation) || atomic_load(&head->loading) != 0) {
        return begin_anew(store, generation, error);
    }
    *ret_kept = true;
    return store_open_kept(store, error);
}

cadre_status store_open(const struct store_options *options, struct store **ret_store,
    bool *ret_kept, struct cadre_error *error)
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
        status = open_memory(store, options->generation, ret_kept, error);
    }
    if (status != CADRE_OK) {
        *ret_kept = false;
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

/* ---- shards ---- */

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
    shard->sum_bytes = shard->element_bytes == 2 && shard->spec.dtype != CADRE_I16
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
    uint64_t record = aligned(sizeof(struct kept_shard));
    uint64_t at = 0;
    if (store_count(store) == SHARDS_PER_CHUNK * SHARD_CHUNKS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "ps holds %u shards, which is as many as it can; add servers (--ps)",
            store_count(store));
    }
    CADRE_TRY(store_allot(store, record + (1 + slots) * aligned(bytes), &at, error, SHARD_TEXT,
        spec->shard, spec->name));
    struct kept_shard *kept = store_at(store, at);
    kept_of(spec, &kept->spec);
    kept->spec.rows_at = at + record;
    for (uint32_t i = 0; i < slots; i++) {
        kept->spec.slots_at[i] = at + record + (1 + i) * aligned(bytes);
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

uint32_t store_count(const struct store *store)
{
    return atomic_load_explicit(&store->count, memory_order_acquire);
}

const struct store_spec *store_spec(const struct store *store, uint32_t shard)
{
    return &store_shard(store, shard)->spec;
}

uint64_t store_version(const struct store *store, uint32_t shard)
{
    return atomic_load_explicit(&store_shard(store, shard)->kept->version, memory_order_acquire);
}

uint64_t store_steps(const struct store *store, uint32_t shard)
{
    return atomic_load_explicit(&store_shard(store, shard)->kept->steps, memory_order_acquire);
}

/* ---- reading ---- */

const void *store_rows(const struct store *store, uint32_t shard, uint64_t first, uint64_t rows)
{
    const struct shard *one = store_shard(store, shard);
    CADRE_ASSERT(first <= one->spec.rows && rows <= one->spec.rows - first);
    return one->rows + first * one->row_elements * one->element_bytes;
}

void *store_slot(const struct store *store, uint32_t shard, uint32_t slot)
{
    return slot < 2 ? store_shard(store, shard)->slots[slot] : NULL;
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
