/* SPDX-License-Identifier: Apache-2.0
 * The source whose elements are the rows of tensors in memory. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/source.h"

struct slices_dataset {
    cadre_dataset base;
    cadre_element tensors;
};

static void slices_destroy(cadre_dataset *self)
{
    cadre_element_release(&((struct slices_dataset *)self)->tensors);
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

static cadre_status slices_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const cadre_element *tensors = &((struct slices_dataset *)self)->tensors;
    CADRE_TRY(id_list_add(ids, position.index, error));
    for (uint32_t i = 0; i < tensors->count; i++) {
        cadre_status status = tensor_view_row(
            tensors->tensors[i], (int64_t)position.index, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

static bool follow_each_other(const struct element_position positions[], size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (positions[i].index != positions[0].index + i) {
            return false;
        }
    }
    return true;
}

/* Rows of one component: those that lie one behind the other are shared, others are copied. */
static cadre_status gather_rows(cadre_tensor *from, bool shared,
    const struct element_position positions[], size_t count, cadre_tensor **ret_rows,
    struct cadre_error *error)
{
    if (shared && tensor_kind(from) == tensor_memory_preferred()) {
        return tensor_view_rows(from, (int64_t)positions[0].index, (int64_t)count, ret_rows, error);
    }
    int64_t dims[CADRE_RANK_MAX];
    uint32_t rank = cadre_tensor_rank(from);
    memcpy(dims, cadre_tensor_dims(from), rank * sizeof dims[0]);
    dims[0] = (int64_t)count;
    bool strings = cadre_tensor_dtype(from) == CADRE_STRING;
    CADRE_TRY(strings ? tensor_strings_in(from, rank, dims, ret_rows, error)
                      : tensor_create_unset(cadre_tensor_dtype(from), rank, dims, ret_rows, error));
    const char *values = cadre_tensor_const_data(from);
    char *to = cadre_tensor_data(*ret_rows);
    size_t row_bytes = cadre_tensor_bytes(*ret_rows) / count;
    for (size_t i = 0; i < count; i++) {
        memcpy(to + i * row_bytes, values + positions[i].index * row_bytes, row_bytes);
    }
    return CADRE_OK;
}

static cadre_status slices_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const cadre_element *tensors = &((struct slices_dataset *)self)->tensors;
    bool shared = follow_each_other(positions, count);
    CADRE_TRY(source_ids_at(self, positions, count, ids, error));
    for (uint32_t i = 0; i < tensors->count; i++) {
        cadre_status status = gather_rows(
            tensors->tensors[i], shared, positions, count, &ret_element->tensors[i], error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
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
    .gather = slices_gather,
    .ids_at = source_ids_at,
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
        CADRE_TRY(tensor_require_host(tensors[i], "tensor_slices", error));
        if (tensor_composite(tensors[i]) != CADRE_COMPOSITE_NONE) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "tensor_slices: tensor %zu is a part of a ragged or sparse value, which has no "
                "rows "
                "of its own; give them to cadre_dataset_tensors and cadre_dataset_unbatch",
                i);
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
