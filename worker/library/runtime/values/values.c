/* SPDX-License-Identifier: Apache-2.0
 * Per-replica values: their memory and references, tensors, text; values made by functions. */
#include "worker/library/runtime/values/values.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/node/user_call.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/replica/collective_key.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Both counts are in one integer, so that they change together. */
#define ONE  ((uint64_t)1)
#define KEPT ((uint64_t)1 << 32)

static uint32_t all_of(uint64_t references)
{
    return (uint32_t)references;
}

static uint32_t image_of(uint64_t references)
{
    return (uint32_t)(references >> 32);
}

void consumed_samples_clear(struct consumed_samples *files)
{
    free(files->runs);
    free(files->done);
    *files = (struct consumed_samples){0};
}

/* --- ended values --- */

#define RESTING_LEAST 64

static struct {
    pthread_mutex_t lock;
    cadre_per_replica *first; /* the one that ended first */
    cadre_per_replica *last;
    size_t count;
} resting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static cadre_per_replica *wake_oldest(void)
{
    cadre_per_replica *value = NULL;
    pthread_mutex_lock(&resting.lock);
    if (resting.count > RESTING_LEAST) {
        value = resting.first;
        CADRE_ASSERT(atomic_load(&value->references) == 0);
        resting.first = value->next;
        resting.count--;
    }
    pthread_mutex_unlock(&resting.lock);
    return value;
}

static void value_rest(cadre_per_replica *value)
{
    CADRE_ASSERT(atomic_load(&value->references) == 0);
    value->replicas = 0;
    value->components = 0;
    value->source = (struct batch_source){.dataset = NULL};
    value->names = NULL;
    value->part_count = 0;
    value->sources = NULL;
    value->shown = false;
    value->tensors = NULL;
    value->next = NULL;
    pthread_mutex_lock(&resting.lock);
    if (resting.count == 0) {
        resting.first = value;
    } else {
        resting.last->next = value;
    }
    resting.last = value;
    resting.count++;
    pthread_mutex_unlock(&resting.lock);
}

static cadre_status refuse_gone(
    const char *function, const char *argument, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "%s was given a value as '%s' that has ended: a batch stays until the next cadre_next of "
        "its dataset, an output until the next cadre_run; keep it with cadre_per_replica_retain "
        "to use it later",
        function, argument);
}

cadre_status per_replica_require(const cadre_per_replica *value, const char *function,
    const char *argument, struct cadre_error *error)
{
    CADRE_TRY(argument_require(value, function, argument, error));
    return atomic_load_explicit(&value->references, memory_order_relaxed) > 0
               ? CADRE_OK
               : refuse_gone(function, argument, error);
}

cadre_per_replica *per_replica_new(uint32_t replicas, uint32_t components)
{
    CADRE_ASSERT(replicas > 0);
    size_t count = (size_t)replicas * components;
    cadre_per_replica *value = wake_oldest();
    value = value != NULL ? value : calloc(1, sizeof *value);
    cadre_tensor **tensors = calloc(count + 1, sizeof *tensors);
    if (value == NULL || tensors == NULL) {
        free(tensors);
        free(value);
        return NULL;
    }
    value->replicas = replicas;
    value->components = components;
    value->tensors = tensors;
    value->next = NULL;
    atomic_store_explicit(&value->references, ONE, memory_order_release);
    return value;
}

/* --- tensors --- */

/* The source that has the component, and the component's index there. */
static cadre_per_replica *owner_of(cadre_per_replica *value, uint32_t *component)
{
    for (uint32_t i = 0; i < value->part_count; i++) {
        const struct value_part *part = &value->sources[i];
        if (*component < part->count) {
            *component += part->first;
            return owner_of(part->value, component);
        }
        *component -= part->count;
    }
    CADRE_ASSERT(value->part_count == 0);
    CADRE_ASSERT(*component < value->components);
    return value;
}

const char *per_replica_text(const cadre_per_replica *value, char *text, size_t size)
{
    cadre_per_replica *of = (cadre_per_replica *)(uintptr_t)value;
    size_t used = 0;
    uint64_t key = 0;
    if (value->components != 1) {
        used = (size_t)snprintf(text, size, "%u components, ", value->components);
    }
    const size_t begin = used;
    for (uint32_t i = 0; i < value->components; i++) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        const cadre_tensor *tensor = *per_replica_at(of, i, 0);
        key = collective_key_tensor(key, tensor, UINT32_MAX);
        tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
            cadre_tensor_dims(tensor), shape);
        const char *between = i == 0 ? "" : i + 1 == value->components ? " and " : ", ";
        if (used < size) {
            used += (size_t)snprintf(text + used, size - used, "%s%s", between, shape);
        }
    }
    if (used >= size) {
        snprintf(text + begin, size - begin, "shapes of digest %08x", (unsigned)(key >> 32));
    }
    return text;
}

cadre_tensor **per_replica_at(cadre_per_replica *value, uint32_t component, uint32_t replica)
{
    const uint32_t replicas = value->replicas;
    CADRE_ASSERT(replica < replicas);
    value = owner_of(value, &component);
    return &value->tensors[(size_t)component * replicas + replica];
}

cadre_per_replica *per_replica_batch(cadre_per_replica *value)
{
    if (value == NULL || value->source.dataset != NULL) {
        return value;
    }
    cadre_per_replica *batch = NULL;
    for (uint32_t i = 0; i < value->part_count && batch == NULL; i++) {
        batch = per_replica_batch(value->sources[i].value);
    }
    return batch;
}

int64_t per_replica_global_rows(const cadre_per_replica *value)
{
    int64_t rows = value == NULL ? 0 : value->source.global_rows;
    for (uint32_t i = 0; value != NULL && i < value->part_count && rows == 0; i++) {
        rows = per_replica_global_rows(value->sources[i].value);
    }
    return rows;
}

static void value_end(cadre_per_replica *value)
{
    size_t own = value->part_count > 0 ? 0 : (size_t)value->replicas * value->components;
    for (size_t i = 0; i < own; i++) {
        if (value->shown) {
            tensor_drop(value->tensors[i]);
        } else {
            cadre_tensor_release(value->tensors[i]);
        }
    }
    for (uint32_t i = 0; i < value->part_count; i++) {
        per_replica_drop(value->sources[i].value);
    }
    free(value->sources);
    free(value->tensors);
    consumed_samples_clear(&value->source.files);
    consumed_samples_clear(&value->source.all);
    value_rest(value);
}

cadre_per_replica *per_replica_keep(cadre_per_replica *value)
{
    if (value != NULL) {
        uint64_t before =
            atomic_fetch_add_explicit(&value->references, ONE + KEPT, memory_order_relaxed);
        CADRE_ASSERT(all_of(before) > 0);
    }
    return value;
}

void per_replica_show(cadre_per_replica *value)
{
    CADRE_ASSERT(all_of(atomic_load(&value->references)) > 0);
    size_t own = value->part_count > 0 ? 0 : (size_t)value->replicas * value->components;
    for (size_t i = 0; !value->shown && i < own; i++) {
        (void)tensor_take(value->tensors[i]);
    }
    value->shown = true;
}

void per_replica_lend(cadre_per_replica *value)
{
    per_replica_show(value);
    uint64_t before = atomic_fetch_add_explicit(&value->references, KEPT, memory_order_relaxed);
    CADRE_ASSERT(all_of(before) > image_of(before));
}

void per_replica_drop(cadre_per_replica *value)
{
    if (value != NULL) {
        uint64_t before =
            atomic_fetch_sub_explicit(&value->references, ONE + KEPT, memory_order_acq_rel);
        CADRE_ASSERT(image_of(before) > 0);
        if (all_of(before) == 1) {
            value_end(value);
        }
    }
}

/* Adds a reference of the program. False: it has ended, or ends meanwhile. */
static bool value_take(cadre_per_replica *value)
{
    uint64_t before = atomic_load_explicit(&value->references, memory_order_relaxed);
    do {
        if (all_of(before) == 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &value->references, &before, before + ONE, memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* False: all references are the library's. */
static bool give_back(cadre_per_replica *value)
{
    uint64_t before = atomic_load_explicit(&value->references, memory_order_relaxed);
    do {
        if (all_of(before) <= image_of(before)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &value->references, &before, before - ONE, memory_order_acq_rel, memory_order_relaxed));
    if (all_of(before) == 1) {
        value_end(value);
    }
    return true;
}

cadre_per_replica *cadre_per_replica_retain(cadre_per_replica *value)
{
    struct cadre_error error = {0};
    if (value != NULL && !value_take(value)) {
        api_return(refuse_gone(__func__, "value", &error), &error);
        return NULL;
    }
    return value;
}

void cadre_per_replica_release(cadre_per_replica *value)
{
    struct cadre_error error = {0};
    if (value == NULL || give_back(value)) {
        return;
    }
    cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
        "%s was called with a value of which the program holds no reference: a batch, an output of "
        "cadre_run, or one that was released already; release only what was retained or made",
        __func__);
    show_misuse(SHOW_VALUE_RELEASED, &error);
    api_return(error.code, &error);
}

uint32_t cadre_per_replica_count(const cadre_per_replica *value)
{
    return value == NULL ? 0 : value->replicas;
}

uint32_t cadre_per_replica_components(const cadre_per_replica *value)
{
    return value == NULL ? 0 : value->components;
}

cadre_tensor *const *cadre_local_results(const cadre_per_replica *value, uint32_t component)
{
    if (value == NULL || component >= value->components) {
        return NULL;
    }
    value = owner_of((cadre_per_replica *)(uintptr_t)value, &component);
    return &value->tensors[(size_t)component * value->replicas];
}

/* --- values made by a function --- */

/* One replica's value. */
static cadre_status call_function(const cadre_strategy *strategy, uint32_t local,
    cadre_value_function function, void *user, cadre_element *ret_value, struct cadre_error *error)
{
    const cadre_value_context context = {
        .replica_id_in_sync_group = strategy->replica_first + local,
        .num_replicas_in_sync = cadre_strategy_num_replicas_in_sync(strategy),
    };
    *ret_value = (cadre_element){0};
    user_call_begin();
    cadre_status status =
        user_call_end(function(&context, ret_value, user), "cadre_values_from_function", error);
    if (status == CADRE_OK) {
        status = user_call_check(ret_value, NULL, "cadre_values_from_function", error);
    }
    if (status != CADRE_OK) {
        user_call_drop(ret_value);
    }
    return status;
}

/* The names of the first replica's element, or none; all replicas have the same. */
static cadre_status take_names(const cadre_element *element, uint32_t local,
    cadre_per_replica *value, struct cadre_error *error)
{
    const char *const *names = NULL;
    if (element->names != NULL) {
        CADRE_TRY(component_names_intern(
            element->names, element->count, "cadre_values_from_function", &names, error));
    }
    if (local == 0) {
        value->names = names;
    }
    return value->names == names
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "the values of local replicas 0 and %u have components of other names; name "
                     "them alike for all",
                     local);
}

/* Moves the tensors of `element` into the value, which the first replica's call makes. */
static cadre_status put_value(const cadre_strategy *strategy, uint32_t local,
    cadre_element *element, cadre_per_replica **value, struct cadre_error *error)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    if (*value == NULL) {
        *value = per_replica_new(strategy->local_replicas, element->count);
    }
    if (*value == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the values of the replicas");
    }
    if (element->count != (*value)->components) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the value of replica %u has %u tensors, that of replica %u has %u; make equally many "
            "for all",
            strategy->replica_first, (*value)->components, strategy->replica_first + local,
            element->count);
    }
    CADRE_TRY(take_names(element, local, *value, error));
    for (uint32_t i = 0; i < element->count; i++) {
        *per_replica_at(*value, i, local) = element->tensors[i];
        element->tensors[i] = NULL;
    }
    element->count = 0;
    return CADRE_OK;
}

cadre_status cadre_values_from_function(cadre_strategy *strategy, cadre_value_function function,
    void *user, cadre_per_replica **ret_values)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_per_replica *value = NULL;
    cadre_status status = argument_require(ret_values, __func__, "ret_values", &error);
    if (status == CADRE_OK) {
        *ret_values = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK && function == NULL) {
        status = argument_require(NULL, __func__, "function", &error);
    }
    for (uint32_t i = 0; status == CADRE_OK && i < strategy->local_replicas; i++) {
        cadre_element element;
        status = call_function(strategy, i, function, user, &element, &error);
        if (status == CADRE_OK) {
            status = put_value(strategy, i, &element, &value, &error);
            cadre_element_release(&element);
        }
    }
    if (status != CADRE_OK) {
        cadre_per_replica_release(value);
        return api_return(status, &error);
    }
    per_replica_show(value);
    *ret_values = value;
    return api_return(status, &error);
}
