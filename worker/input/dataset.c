/* SPDX-License-Identifier: Apache-2.0
 * Datasets: lifetime, the error that is kept, and the walks over the chain of nodes. */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/device/argument.h"
#include "worker/input/node.h"

static const struct dataset_ops failed_ops = {.name = "failed"};

void cadre_element_clear(cadre_element *element)
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

void *dataset_new(size_t bytes, const struct dataset_ops *ops, cadre_dataset *input)
{
    CADRE_ASSERT(bytes >= sizeof(cadre_dataset));
    cadre_dataset *data = calloc(1, bytes);
    if (data == NULL) {
        cadre_dataset_release(input);
        return NULL;
    }
    data->ops = ops;
    atomic_init(&data->references, 1);
    data->input = input;
    data->cardinality = input != NULL ? input->cardinality : CADRE_CARDINALITY_UNKNOWN;
    data->indexable = input != NULL ? input->indexable : true;
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

void cadre_dataset_release(cadre_dataset *data)
{
    while (data != NULL) {
        unsigned before = atomic_fetch_sub_explicit(&data->references, 1, memory_order_acq_rel);
        CADRE_ASSERT(before > 0);
        if (before > 1) {
            return;
        }
        cadre_dataset *input = data->input;
        if (data->ops->destroy != NULL) {
            data->ops->destroy(data);
        }
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

int64_t cadre_dataset_cardinality(const cadre_dataset *data)
{
    return dataset_usable(data) ? data->cardinality : CADRE_CARDINALITY_UNKNOWN;
}

cadre_status dataset_spec(
    cadre_dataset *data, cadre_element_spec *ret_spec, struct cadre_error *error)
{
    CADRE_TRY(dataset_status(data, error));
    while (data->ops->spec == NULL) {
        data = data->input;
    }
    cadre_element_spec input = {0};
    if (data->input != NULL) {
        CADRE_TRY(dataset_spec(data->input, &input, error));
    }
    return data->ops->spec(data, data->input != NULL ? &input : NULL, ret_spec, error);
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
    for (uint32_t i = 0; i < spec->count; i++) {
        int64_t own = spec->tensors[i].rank == 0 ? CADRE_DIMENSION_ANY : spec->tensors[i].dims[0];
        if (own == CADRE_DIMENSION_ANY || (i > 0 && own != rows)) {
            return CADRE_DIMENSION_ANY;
        }
        rows = own;
    }
    return rows;
}

int64_t dataset_batch_size(const cadre_dataset *data, const cadre_element_spec *spec)
{
    bool all_static = spec->count > 0;
    for (uint32_t i = 0; i < spec->count; i++) {
        all_static = all_static && spec->tensors[i].rank > 0 &&
                     spec->tensors[i].dims[0] != CADRE_DIMENSION_ANY;
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

/* Goes down the re-indexing nodes to the one that makes the element. */
static cadre_dataset *find_maker(cadre_dataset *data, struct place *place)
{
    CADRE_ASSERT(data->indexable);
    while (data->ops->locate != NULL) {
        CADRE_ASSERT(data->cardinality < 0 || place->index < (uint64_t)data->cardinality);
        *place = data->ops->locate(data, *place);
        data = data->input;
    }
    CADRE_ASSERT(data->cardinality < 0 || place->index < (uint64_t)data->cardinality);
    return data;
}

cadre_status dataset_at(cadre_dataset *data, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    data = find_maker(data, &place);
    return data->ops->at(data, place, ret_element, ids, error);
}

cadre_status dataset_ids_at(
    cadre_dataset *data, struct place place, struct id_list *ids, struct cadre_error *error)
{
    data = find_maker(data, &place);
    return data->ops->ids_at(data, place, ids, error);
}

int64_t dataset_rows(cadre_dataset *data, struct place place)
{
    data = find_maker(data, &place);
    return data->ops->rows == NULL ? CADRE_CARDINALITY_UNKNOWN : data->ops->rows(data, place);
}

cadre_status dataset_at_rows(cadre_dataset *data, struct place place, int64_t first, int64_t count,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    data = find_maker(data, &place);
    CADRE_ASSERT(count >= 1 && first >= 0 && first + count <= data->ops->rows(data, place));
    return data->ops->at_rows(data, place, first, count, ret_element, ids, error);
}
