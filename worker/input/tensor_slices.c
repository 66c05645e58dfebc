/* SPDX-License-Identifier: Apache-2.0
 * The source whose elements are the rows of tensors in memory. */
#include <inttypes.h>

#include "worker/device/tensor.h"
#include "worker/input/node.h"

struct slices_dataset {
    cadre_dataset base;
    cadre_element tensors;
};

static void slices_destroy(cadre_dataset *self)
{
    cadre_element_clear(&((struct slices_dataset *)self)->tensors);
}

static cadre_status slices_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    const cadre_element *tensors = &((struct slices_dataset *)self)->tensors;
    *ret_spec = (cadre_element_spec){.count = tensors->count};
    for (uint32_t i = 0; i < tensors->count; i++) {
        cadre_tensor_spec *spec = &ret_spec->tensors[i];
        spec->dtype = cadre_tensor_dtype(tensors->tensors[i]);
        spec->rank = cadre_tensor_rank(tensors->tensors[i]) - 1;
        for (uint32_t axis = 0; axis < spec->rank; axis++) {
            spec->dims[axis] = cadre_tensor_dim(tensors->tensors[i], axis + 1);
        }
    }
    return CADRE_OK;
}

static cadre_status slices_ids_at(cadre_dataset *self, const struct place places[], size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    (void)self;
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(id_list_add(ids, places[i].index, error));
    }
    return CADRE_OK;
}

static cadre_status slices_at(cadre_dataset *self, struct place place, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    const cadre_element *tensors = &((struct slices_dataset *)self)->tensors;
    CADRE_TRY(id_list_add(ids, place.index, error));
    for (uint32_t i = 0; i < tensors->count; i++) {
        cadre_status status = tensor_view_row(
            tensors->tensors[i], (int64_t)place.index, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_clear(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

static void slices_describe(const cadre_dataset *self, struct description *text)
{
    const cadre_element *tensors = &((const struct slices_dataset *)self)->tensors;
    for (uint32_t i = 0; i < tensors->count; i++) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        const cadre_tensor *tensor = tensors->tensors[i];
        description_add(text, "%s%s", i == 0 ? "" : ", ",
            tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
                cadre_tensor_dims(tensor), shape));
    }
}

static const struct dataset_ops slices_ops = {
    .name = "tensor_slices",
    .describe = slices_describe,
    .destroy = slices_destroy,
    .spec = slices_spec,
    .at = slices_at,
    .ids_at = slices_ids_at,
};

static cadre_status check_tensors(
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error)
{
    if (count < 1 || count > CADRE_ELEMENT_TENSORS_MAX || tensors == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "tensor_slices: %zu tensors given; an element has 1 to %d components", count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] == NULL) {
            return cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "tensor_slices: tensor %zu is NULL", i);
        }
        if (cadre_tensor_rank(tensors[i]) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor_slices: tensor %zu is a scalar, which has no rows", i);
        }
        if (cadre_tensor_rows(tensors[i]) != cadre_tensor_rows(tensors[0])) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor_slices: tensor %zu has %" PRId64 " rows and tensor 0 has %" PRId64
                "; all need the same",
                i, cadre_tensor_rows(tensors[i]), cadre_tensor_rows(tensors[0]));
        }
    }
    return CADRE_OK;
}

cadre_dataset *cadre_dataset_tensor_slices(cadre_tensor *const tensors[], size_t count)
{
    struct cadre_error error = {0};
    if (check_tensors(tensors, count, &error) != CADRE_OK) {
        return dataset_failed(NULL, &error);
    }
    struct slices_dataset *slices = dataset_new(sizeof *slices, &slices_ops, NULL);
    if (slices == NULL) {
        return NULL;
    }
    slices->base.cardinality = cadre_tensor_rows(tensors[0]);
    slices->tensors.count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        slices->tensors.tensors[i] = cadre_tensor_retain(tensors[i]);
    }
    return &slices->base;
}
