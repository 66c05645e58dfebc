/* SPDX-License-Identifier: Apache-2.0
 * The source of one element, tensors in memory as they are. */
#include <inttypes.h>

#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/node/source.h"

struct tensors_dataset {
    cadre_dataset base;
    cadre_element element;
};

static void tensors_destroy(cadre_dataset *self)
{
    cadre_element_release(&((struct tensors_dataset *)self)->element);
}

static cadre_status tensors_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)inputs;
    (void)error;
    const cadre_element *element = &((struct tensors_dataset *)self)->element;
    element_spec_of(element, ret_spec);
    return CADRE_OK;
}

static cadre_status tensors_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const cadre_element *element = &((struct tensors_dataset *)self)->element;
    CADRE_TRY(id_list_add(ids, position.index, error));
    *ret_element = *element;
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor_retain(element->tensors[i]);
    }
    return CADRE_OK;
}

static void tensors_describe(const cadre_dataset *self, struct description *text)
{
    const cadre_element *element = &((const struct tensors_dataset *)self)->element;
    for (uint32_t i = 0; i < element->count; i++) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        const cadre_tensor *tensor = element->tensors[i];
        description_add(text, "%s%s", i == 0 ? "" : ", ",
            tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
                cadre_tensor_dims(tensor), shape));
    }
}

static const struct dataset_ops tensors_ops = {
    .name = "tensors",
    .describe = tensors_describe,
    .destroy = tensors_destroy,
    .spec = tensors_spec,
    .at = tensors_at,
    .ids_at = source_ids_at,
};

cadre_dataset *cadre_dataset_tensors(cadre_tensor *const tensors[], size_t count)
{
    struct cadre_error error = {0};
    if (count < 1 || count > CADRE_ELEMENT_TENSORS_MAX || tensors == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "tensors: %zu tensors given; an element has 1 to %d components", count,
            CADRE_ELEMENT_TENSORS_MAX);
        return dataset_failed(NULL, &error);
    }
    for (size_t i = 0; i < count; i++) {
        if (tensors[i] == NULL) {
            cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "tensors: tensor %zu is NULL", i);
            return dataset_failed(NULL, &error);
        }
        if (tensor_require_host(tensors[i], "tensors", &error) != CADRE_OK) {
            return dataset_failed(NULL, &error);
        }
    }
    struct tensors_dataset *data = dataset_new(sizeof *data, &tensors_ops, NULL);
    if (data == NULL) {
        return NULL;
    }
    data->base.cardinality = 1;
    data->element.count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        data->element.tensors[i] = cadre_tensor_retain(tensors[i]);
    }
    return &data->base;
}
