/* SPDX-License-Identifier: Apache-2.0
 * Datasets: lifetime, the error that is kept, and what can be asked without reading. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/node.h"

static const struct dataset_ops failed_ops = {.name = "failed"};

void cadre_element_release(cadre_element *element)
{
    if (element == NULL) {
        return;
    }
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor_release(element->tensors[i]);
    }
    *element = (cadre_element){0};
}

bool dataset_usable(const cadre_dataset *data)
{
    return data != NULL && data->failure.code == CADRE_OK;
}

/* A node without inputs, and its flags as those of a source. */
static cadre_dataset *node_new(size_t bytes, const struct dataset_ops *ops)
{
    CADRE_ASSERT(bytes >= sizeof(cadre_dataset));
    cadre_dataset *data = calloc(1, bytes);
    if (data != NULL) {
        data->ops = ops;
        atomic_init(&data->references, 1);
        atomic_init(&data->cardinality, CADRE_CARDINALITY_UNKNOWN);
        data->indexable = true;
        data->nodes = 1;
    }
    return data;
}

/* What is above `input`. */
static void take_over(cadre_dataset *data, const cadre_dataset *input)
{
    data->indexable = data->indexable && input->indexable;
    data->by_index_only = data->by_index_only || input->by_index_only;
    data->works_ahead = data->works_ahead || input->works_ahead;
    data->repeats = data->repeats || input->repeats;
    data->has_names = data->has_names || input->has_names;
    data->depth = data->depth > input->depth ? data->depth : input->depth + 1;
    data->nodes = data->nodes + input->nodes;
    if (data->failure.code != CADRE_OK) {
        return;
    }
    if (data->depth > DATASET_DEPTH_MAX) {
        cadre_error_set(&data->failure, CADRE_INVALID_ARGUMENT,
            "%s: more than %d transformations stand on each other; build the dataset in fewer",
            data->ops->name, DATASET_DEPTH_MAX);
    } else if (data->nodes > DATASET_NODES_MAX) {
        cadre_error_set(&data->failure, CADRE_INVALID_ARGUMENT,
            "%s: the dataset is made of more than %d sources and transformations, counting those "
            "that are used twice as two; cadre_dataset_repeat gives the same elements again",
            data->ops->name, DATASET_NODES_MAX);
    }
}

void *dataset_new(size_t bytes, const struct dataset_ops *ops, cadre_dataset *input)
{
    cadre_dataset *data = node_new(bytes, ops);
    if (data == NULL) {
        cadre_dataset_release(input);
        return NULL;
    }
    if (input != NULL) {
        data->input = input;
        data->inputs = &data->input;
        data->input_count = 1;
        take_over(data, input);
    }
    return data;
}

/* Gives back the references of all inputs but number `kept`. */
static void release_others(cadre_dataset *const inputs[], size_t count, size_t kept)
{
    for (size_t i = 0; i < count; i++) {
        if (i != kept) {
            cadre_dataset_release(inputs[i]);
        }
    }
}

void *dataset_new_joined(
    size_t bytes, const struct dataset_ops *ops, cadre_dataset *const inputs[], size_t count)
{
    CADRE_ASSERT(count >= 1);
    for (size_t i = 0; i < count; i++) {
        if (!dataset_usable(inputs[i])) {
            release_others(inputs, count, i);
            return inputs[i];
        }
    }
    cadre_dataset *data = node_new(bytes, ops);
    cadre_dataset **own = calloc(count, sizeof own[0]);
    if (data == NULL || own == NULL) {
        free(data);
        free(own);
        release_others(inputs, count, count);
        return NULL;
    }
    data->input = inputs[0];
    data->inputs = own;
    data->input_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        own[i] = inputs[i];
        take_over(data, inputs[i]);
    }
    return data;
}

cadre_dataset *dataset_failed(cadre_dataset *input, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    cadre_dataset_release(input);
    cadre_dataset *data = dataset_new(sizeof *data, &failed_ops, NULL);
    if (data != NULL) {
        data->failure = *error;
        data->indexable = false;
    }
    return data;
}

cadre_dataset *cadre_dataset_retain(cadre_dataset *data)
{
    if (data != NULL) {
        unsigned before = atomic_fetch_add_explicit(&data->references, 1, memory_order_relaxed);
        CADRE_ASSERT(before > 0);
    }
    return data;
}

/* Releases all inputs but the first, which is returned: chains are long, trees are not deep. */
static cadre_dataset *release_inputs(cadre_dataset *data)
{
    for (uint32_t i = 1; i < data->input_count; i++) {
        cadre_dataset_release(data->inputs[i]);
    }
    if (data->inputs != &data->input) {
        free(data->inputs);
    }
    return data->input;
}

void cadre_dataset_release(cadre_dataset *data)
{
    while (data != NULL) {
        unsigned before = atomic_fetch_sub_explicit(&data->references, 1, memory_order_acq_rel);
        CADRE_ASSERT(before > 0);
        if (before > 1) {
            return;
        }
        if (data->ops->destroy != NULL) {
            data->ops->destroy(data);
        }
        cadre_dataset *input = release_inputs(data);
        free(data);
        data = input;
    }
}

cadre_status dataset_status(const cadre_dataset *data, struct cadre_error *error)
{
    if (data == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the dataset is NULL: there was no memory to build it, or none was given");
    }
    if (data->failure.code != CADRE_OK && error != NULL) {
        *error = data->failure;
    }
    return data->failure.code;
}

cadre_status cadre_dataset_status(const cadre_dataset *data)
{
    struct cadre_error error = {0};
    cadre_status status = dataset_status(data, &error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

int64_t dataset_cardinality(const cadre_dataset *data)
{
    _Atomic int64_t *kept = &((cadre_dataset *)(uintptr_t)data)->cardinality;
    int64_t known = atomic_load_explicit(kept, memory_order_relaxed);
    if (known != CADRE_CARDINALITY_UNKNOWN || data->input == NULL) {
        return known;
    }
    known = data->ops->cardinality != NULL ? data->ops->cardinality(data)
                                           : dataset_cardinality(data->input);
    if (known != CADRE_CARDINALITY_UNKNOWN) {
        atomic_store_explicit(kept, known, memory_order_relaxed); /* it never changes again */
    }
    return known;
}

int64_t cadre_dataset_cardinality(const cadre_dataset *data)
{
    return dataset_usable(data) ? dataset_cardinality(data) : CADRE_CARDINALITY_UNKNOWN;
}

uint64_t dataset_samples(const cadre_dataset *data)
{
    while (data->ops->samples == NULL && data->input != NULL) {
        data = data->input;
    }
    if (data->ops->samples != NULL) {
        return data->ops->samples(data);
    }
    int64_t cardinality = dataset_cardinality(data);
    return cardinality > 0 ? (uint64_t)cardinality : 0;
}

cadre_status dataset_prepare(cadre_dataset *data, struct cadre_error *error)
{
    for (uint32_t i = 0; i < data->input_count; i++) {
        CADRE_TRY(dataset_prepare(data->inputs[i], error));
    }
    return data->ops->prepare != NULL ? data->ops->prepare(data, error) : CADRE_OK;
}

static cadre_status find_spec(
    cadre_dataset *data, cadre_element_spec *ret_spec, struct cadre_error *error)
{
    while (data->ops->spec == NULL) {
        data = data->input;
    }
    if (data->input_count == 0 || data->ops->spec_alone) {
        return data->ops->spec(data, NULL, ret_spec, error);
    }
    CADRE_FREE_AT_EXIT cadre_element_spec *inputs = calloc(data->input_count, sizeof inputs[0]);
    if (inputs == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s: no memory to describe the elements", data->ops->name);
    }
    for (uint32_t i = 0; i < data->input_count; i++) {
        CADRE_TRY(dataset_spec(data->inputs[i], &inputs[i], error));
    }
    return data->ops->spec(data, inputs, ret_spec, error);
}

cadre_status dataset_spec(
    cadre_dataset *data, cadre_element_spec *ret_spec, struct cadre_error *error)
{
    CADRE_TRY(dataset_status(data, error));
    CADRE_TRY(find_spec(data, ret_spec, error));
    atomic_store_explicit(&data->names, ret_spec->names, memory_order_release);
    return CADRE_OK;
}

cadre_status cadre_dataset_spec(cadre_dataset *data, cadre_element_spec *ret_spec)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_spec, __func__, "ret_spec", &error);
    if (status == CADRE_OK) {
        *ret_spec = (cadre_element_spec){0};
        status = dataset_spec(data, ret_spec, &error);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

int64_t element_spec_rows(const cadre_element_spec *spec)
{
    int64_t rows = CADRE_DIMENSION_ANY;
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < spec->count; i += at.count) {
        at = composite_of_spec(spec, i);
        int64_t own = composite_spec_rows(spec, &at);
        if (own == CADRE_DIMENSION_ANY || (i > 0 && own != rows)) {
            return CADRE_DIMENSION_ANY;
        }
        rows = own;
    }
    return rows;
}

void element_spec_of(const cadre_element *element, cadre_element_spec *ret_spec)
{
    *ret_spec = (cadre_element_spec){.count = element->count};
    for (uint32_t i = 0; i < element->count; i++) {
        const cadre_tensor *tensor = element->tensors[i];
        cadre_tensor_spec *spec = &ret_spec->tensors[i];
        spec->dtype = cadre_tensor_dtype(tensor);
        spec->rank = cadre_tensor_rank(tensor);
        spec->composite = tensor_composite(tensor);
        memcpy(spec->dims, cadre_tensor_dims(tensor), spec->rank * sizeof spec->dims[0]);
    }
}

cadre_status element_spec_check_plain(
    const cadre_element_spec *spec, const char *who, struct cadre_error *error)
{
    for (uint32_t i = 0; i < spec->count; i++) {
        const struct composite composite = composite_of_spec(spec, i);
        if (composite.kind != CADRE_COMPOSITE_NONE) {
            char text[COMPOSITE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: %s are a batch of rows already; call cadre_dataset_unbatch first", who,
                composite_text(&composite, text));
        }
    }
    return CADRE_OK;
}

bool element_spec_agrees(const cadre_element_spec *spec, const cadre_element_spec *other)
{
    bool alike = spec->count == other->count;
    for (uint32_t i = 0; alike && i < spec->count; i++) {
        alike = spec->tensors[i].dtype == other->tensors[i].dtype &&
                spec->tensors[i].rank == other->tensors[i].rank &&
                spec->tensors[i].composite == other->tensors[i].composite;
    }
    return alike;
}

void element_spec_widen(cadre_element_spec *spec, const cadre_element_spec *other)
{
    for (uint32_t i = 0; element_spec_agrees(spec, other) && i < spec->count; i++) {
        cadre_tensor_spec *own = &spec->tensors[i];
        for (uint32_t axis = 0; axis < own->rank; axis++) {
            if (own->dims[axis] != other->tensors[i].dims[axis]) {
                own->dims[axis] = CADRE_DIMENSION_ANY;
            }
        }
    }
}

bool element_spec_is_uniform(const cadre_element_spec *spec)
{
    for (uint32_t i = 0; i < spec->count; i++) {
        for (uint32_t axis = 0; axis < spec->tensors[i].rank; axis++) {
            if (spec->tensors[i].dims[axis] == CADRE_DIMENSION_ANY) {
                return false;
            }
        }
        if (spec->tensors[i].rank >= CADRE_RANK_MAX ||
            spec->tensors[i].composite != CADRE_COMPOSITE_NONE) {
            return false;
        }
    }
    return spec->count > 0;
}

int64_t dataset_batch_size(const cadre_dataset *data, const cadre_element_spec *spec)
{
    bool all_static = spec->count > 0;
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < spec->count; i += at.count) {
        at = composite_of_spec(spec, i);
        all_static = all_static && composite_spec_rows(spec, &at) != CADRE_DIMENSION_ANY;
    }
    if (all_static) {
        int64_t rows = element_spec_rows(spec);
        return rows == CADRE_DIMENSION_ANY ? CADRE_CARDINALITY_UNKNOWN : rows;
    }
    while (data->ops->batch_size == NULL) {
        if (!data->ops->keeps_elements) {
            return CADRE_CARDINALITY_UNKNOWN;
        }
        data = data->input;
    }
    return data->ops->batch_size(data);
}
