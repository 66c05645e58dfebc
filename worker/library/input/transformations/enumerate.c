/* SPDX-License-Identifier: Apache-2.0
 * The transformation that puts the element's number before its components. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/node/node.h"

struct enumerate_dataset {
    cadre_dataset base;
    int64_t start;
};

struct enumerate_iterator {
    cadre_iterator base;
    uint64_t given;
};

/* Beyond 2^63 the numbers go on at -2^63, as TensorFlow's do. */
static int64_t number_of(const cadre_dataset *self, uint64_t index)
{
    return (int64_t)((uint64_t)((const struct enumerate_dataset *)self)->start + index);
}

/* Puts `numbers`, which is taken over, before the components; on error the element is cleared. */
static cadre_status put_first(
    cadre_element *element, cadre_tensor *numbers, struct cadre_error *error)
{
    if (element->count == CADRE_ELEMENT_TENSORS_MAX) {
        cadre_tensor_release(numbers);
        cadre_element_release(element);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "enumerate: the elements have %d components already, which is the limit",
            CADRE_ELEMENT_TENSORS_MAX);
    }
    memmove(element->tensors + 1, element->tensors, element->count * sizeof element->tensors[0]);
    element->tensors[0] = numbers;
    element->count++;
    return CADRE_OK;
}

static cadre_status put_number(
    const cadre_dataset *self, uint64_t index, cadre_element *element, struct cadre_error *error)
{
    cadre_tensor *number = NULL;
    const int64_t value = number_of(self, index);
    cadre_status status = tensor_from_data(CADRE_I64, 0, NULL, &value, &number, error);
    if (status != CADRE_OK) {
        cadre_element_release(element);
        return status;
    }
    return put_first(element, number, error);
}

/* Room for the numbers of `count` stacked elements; on error the element is cleared. */
static cadre_status make_column(
    size_t count, cadre_element *element, cadre_tensor **ret_numbers, struct cadre_error *error)
{
    const int64_t dims[1] = {(int64_t)count};
    cadre_status status = tensor_create(CADRE_I64, 1, dims, ret_numbers, error);
    if (status != CADRE_OK) {
        cadre_element_release(element);
    }
    return status;
}

/* --- by index --- */

static cadre_status enumerate_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_TRY(dataset_at(self->input, position, ret_element, ids, error));
    return put_number(self, position.index, ret_element, error);
}

static cadre_status copy_positions(const struct element_position positions[], size_t count,
    struct element_position **ret_copy, struct cadre_error *error)
{
    *ret_copy = malloc(count * sizeof positions[0] + 1);
    if (*ret_copy == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "enumerate: no memory for %zu places", count);
    }
    memcpy(*ret_copy, positions, count * sizeof positions[0]);
    return CADRE_OK;
}

static cadre_status enumerate_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct element_position *of_input = NULL;
    cadre_tensor *numbers = NULL;
    CADRE_TRY(copy_positions(positions, count, &of_input, error));
    CADRE_TRY(dataset_gather(self->input, of_input, count, ret_element, ids, error));
    CADRE_TRY(make_column(count, ret_element, &numbers, error));
    int64_t *values = cadre_tensor_data(numbers);
    for (size_t i = 0; i < count; i++) {
        values[i] = number_of(self, positions[i].index);
    }
    return put_first(ret_element, numbers, error);
}

static cadre_status enumerate_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct element_position *of_input = NULL;
    CADRE_TRY(copy_positions(positions, count, &of_input, error));
    return dataset_ids_at(self->input, of_input, count, ids, error);
}

/* --- in order --- */

static cadre_status enumerate_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct enumerate_iterator *iterator = (struct enumerate_iterator *)self;
    CADRE_TRY(iterator_next(self->input, ret_element, ids, error));
    return put_number(self->data, iterator->given++, ret_element, error);
}

static cadre_status enumerate_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct enumerate_iterator *iterator = (struct enumerate_iterator *)self;
    cadre_tensor *numbers = NULL;
    CADRE_TRY(iterator_next_rows(self->input, wanted, ret_element, ret_count, ids, error));
    CADRE_TRY(make_column(*ret_count, ret_element, &numbers, error));
    int64_t *values = cadre_tensor_data(numbers);
    for (size_t i = 0; i < *ret_count; i++) {
        values[i] = number_of(self->data, iterator->given++);
    }
    return put_first(ret_element, numbers, error);
}

static cadre_status enumerate_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    cadre_status status = iterator_skip(self->input, count, ret_skipped, error);
    ((struct enumerate_iterator *)self)->given += *ret_skipped;
    return status;
}

static cadre_status enumerate_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    return iterator_state_write_number(writer, ((struct enumerate_iterator *)self)->given, error);
}

static cadre_status enumerate_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    return iterator_state_read_number(reader, &((struct enumerate_iterator *)self)->given, error);
}

static const struct iterator_ops enumerate_iterator_ops = {
    .next = enumerate_next,
    .next_rows = enumerate_next_rows,
    .skip = enumerate_skip,
    .save = enumerate_save,
    .restore = enumerate_restore,
};

static cadre_status enumerate_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct enumerate_iterator), &enumerate_iterator_ops, self, pass,
        pass, ret_iterator, error);
}

/* --- what it is --- */

static cadre_status enumerate_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    if (inputs[0].count == CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "enumerate: the elements have %d components already, which is the limit",
            CADRE_ELEMENT_TENSORS_MAX);
    }
    *ret_spec = (cadre_element_spec){.count = inputs[0].count + 1};
    ret_spec->tensors[0] = (cadre_tensor_spec){.dtype = CADRE_I64};
    memcpy(ret_spec->tensors + 1, inputs[0].tensors, inputs[0].count * sizeof inputs[0].tensors[0]);
    struct names_builder names = {0};
    names_builder_add_tuple_item(&names, 0, NULL, 1);
    names_builder_add_tuple_item(&names, 1, inputs[0].names, inputs[0].count);
    return names_builder_intern(&names, "enumerate", &ret_spec->names, error);
}

static cadre_dataset *enumerate_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_enumerate(inputs[0], ((const struct enumerate_dataset *)self)->start);
}

static void enumerate_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "from %" PRId64, ((const struct enumerate_dataset *)self)->start);
}

static const struct dataset_ops enumerate_ops = {
    .name = "enumerate",
    .rebuild = enumerate_rebuild,
    .describe = enumerate_describe,
    .spec = enumerate_spec,
    .at = enumerate_at,
    .gather = enumerate_gather,
    .ids_at = enumerate_ids_at,
    .iterate = enumerate_iterate,
};

cadre_dataset *cadre_dataset_enumerate(cadre_dataset *data, int64_t start)
{
    if (!dataset_usable(data)) {
        return data;
    }
    struct enumerate_dataset *enumerate = dataset_new(sizeof *enumerate, &enumerate_ops, data);
    if (enumerate == NULL) {
        return NULL;
    }
    enumerate->start = start;
    return &enumerate->base;
}
