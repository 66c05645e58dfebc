/* SPDX-License-Identifier: Apache-2.0
 * The transformation that puts elements of several datasets side by side. The samples that are
 * counted are those of the first. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/node/element_stack.h"

struct zip_iterator {
    cadre_iterator base;     /* `input` reads the first input */
    cadre_iterator **others; /* the second and so on; NULL: not made yet */
    uint64_t at;             /* elements given or passed over */
};

static uint32_t inputs_of(const cadre_iterator *self)
{
    return self->data->input_count;
}

static cadre_iterator *iterator_of(const cadre_iterator *self, uint32_t input)
{
    return input == 0 ? self->input : ((const struct zip_iterator *)self)->others[input - 1];
}

static cadre_status check_room(uint32_t count, uint32_t more, struct cadre_error *error)
{
    if (count + more <= CADRE_ELEMENT_TENSORS_MAX) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "zip: the datasets have more than %d components in all; an element holds no more",
        CADRE_ELEMENT_TENSORS_MAX);
}

/* Moves the components of `part` behind those of `element`; takes `part` over, also on error. */
static cadre_status zip_append(
    cadre_element *element, cadre_element *part, struct cadre_error *error)
{
    cadre_status status = check_room(element->count, part->count, error);
    if (status != CADRE_OK) {
        cadre_element_release(part);
        return status;
    }
    memcpy(element->tensors + element->count, part->tensors, part->count * sizeof part->tensors[0]);
    element->count += part->count;
    *part = (cadre_element){0};
    return CADRE_OK;
}

static cadre_status zip_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    struct names_builder names = {0};
    *ret_spec = (cadre_element_spec){0};
    for (uint32_t i = 0; i < self->input_count; i++) {
        CADRE_TRY(check_room(ret_spec->count, inputs[i].count, error));
        names_builder_add_tuple_item(&names, i, inputs[i].names, inputs[i].count);
        memcpy(ret_spec->tensors + ret_spec->count, inputs[i].tensors,
            inputs[i].count * sizeof inputs[i].tensors[0]);
        ret_spec->count += inputs[i].count;
    }
    return names_builder_intern(&names, "zip", &ret_spec->names, error);
}

static int64_t zip_cardinality(const cadre_dataset *self)
{
    int64_t shortest = CADRE_CARDINALITY_INFINITE;
    bool unknown = false;
    for (uint32_t i = 0; i < self->input_count; i++) {
        int64_t own = dataset_cardinality(self->inputs[i]);
        unknown = unknown || own == CADRE_CARDINALITY_UNKNOWN;
        if (own >= 0 && (shortest < 0 || own < shortest)) {
            shortest = own;
        }
    }
    return unknown && shortest != 0 ? CADRE_CARDINALITY_UNKNOWN : shortest;
}

static int64_t zip_batch_size(const cadre_dataset *self)
{
    int64_t size = CADRE_CARDINALITY_UNKNOWN;
    for (uint32_t i = 0; i < self->input_count; i++) {
        cadre_element_spec spec = {0};
        if (dataset_spec(self->inputs[i], &spec, NULL) != CADRE_OK) {
            return CADRE_CARDINALITY_UNKNOWN;
        }
        int64_t own = dataset_batch_size(self->inputs[i], &spec);
        if (own == CADRE_CARDINALITY_UNKNOWN || (i > 0 && own != size)) {
            return CADRE_CARDINALITY_UNKNOWN;
        }
        size = own;
    }
    return size;
}

/* --- by index --- */

static cadre_status zip_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < self->input_count && status == CADRE_OK; i++) {
        cadre_element part = {0};
        status = dataset_at(self->inputs[i], position, &part, i == 0 ? ids : NULL, error);
        if (status == CADRE_OK) {
            status = zip_append(ret_element, &part, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status;
}

static cadre_status zip_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    CADRE_FREE_AT_EXIT struct element_position *own = calloc(count, sizeof own[0]);
    if (own == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "zip: no memory to read %zu elements", count);
    }
    for (uint32_t i = 0; i < self->input_count && status == CADRE_OK; i++) {
        cadre_element part = {0};
        memcpy(own, positions, count * sizeof own[0]);
        status = dataset_gather(self->inputs[i], own, count, &part, i == 0 ? ids : NULL, error);
        if (status == CADRE_OK) {
            status = zip_append(ret_element, &part, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status;
}

static cadre_status zip_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    struct element_position own[64];
    const size_t limit = sizeof own / sizeof own[0];
    for (size_t first = 0; first < count; first += limit) {
        size_t piece = count - first < limit ? count - first : limit;
        memcpy(own, positions + first, piece * sizeof own[0]);
        CADRE_TRY(dataset_ids_at(self->input, own, piece, ids, error));
    }
    return CADRE_OK;
}

/* Batches side by side: rows are read of each, where all agree in how many there are. */
static int64_t zip_rows(const cadre_dataset *self, struct element_position position)
{
    int64_t rows = dataset_rows(self->input, position);
    for (uint32_t i = 1; i < self->input_count && rows != CADRE_CARDINALITY_UNKNOWN; i++) {
        if (dataset_rows(self->inputs[i], position) != rows) {
            rows = CADRE_CARDINALITY_UNKNOWN;
        }
    }
    return rows;
}

static cadre_status zip_at_rows(cadre_dataset *self, struct element_position position,
    int64_t first, int64_t count, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < self->input_count && status == CADRE_OK; i++) {
        cadre_element part = {0};
        status = dataset_at_rows(
            self->inputs[i], position, first, count, &part, i == 0 ? ids : NULL, error);
        if (status == CADRE_OK) {
            status = zip_append(ret_element, &part, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
    }
    return status;
}

/* --- in order --- */

static cadre_status zip_next(cadre_iterator *self, cadre_element *ret_element, struct id_list *ids,
    struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < inputs_of(self) && status == CADRE_OK; i++) {
        cadre_element part = {0};
        status = iterator_next(iterator_of(self, i), &part, i == 0 ? ids : NULL, error);
        if (status == CADRE_OK) {
            status = zip_append(ret_element, &part, error);
        }
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        return status;
    }
    ((struct zip_iterator *)self)->at++;
    return CADRE_OK;
}

/* Stacked pieces of one input until they are `wanted` rows or it ends: at least one, or its end. */
static cadre_status read_rows(cadre_iterator *input, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    CADRE_TRY(iterator_next_rows(input, wanted, ret_element, ret_count, ids, error));
    while (*ret_count < wanted) {
        cadre_element more = {0};
        size_t count = 0;
        struct cadre_error own = {0};
        cadre_status status =
            iterator_next_rows(input, wanted - *ret_count, &more, &count, ids, &own);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        cadre_element joined = {0};
        if (status == CADRE_OK && more.count != ret_element->count) {
            status = cadre_error_set(&own, CADRE_INVALID_ARGUMENT,
                "zip: an element of %" PRIu32 " components follows one of %" PRIu32, more.count,
                ret_element->count);
        }
        for (uint32_t i = 0; i < more.count && status == CADRE_OK; i++) {
            cadre_tensor *const elements[] = {ret_element->tensors[i], more.tensors[i]};
            status = tensor_concat_rows(elements, 2, &joined.tensors[i], &own);
            joined.count = i + (status == CADRE_OK ? 1 : 0);
        }
        cadre_element_release(&more);
        cadre_element_release(ret_element);
        *ret_element = joined;
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            if (error != NULL) {
                *error = own;
            }
            return status;
        }
        *ret_count += count;
    }
    return CADRE_OK;
}

/* Leaves the first `count` rows. */
static cadre_status cut_rows(cadre_element *element, size_t count, struct cadre_error *error)
{
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor *view = NULL;
        CADRE_TRY(tensor_view_rows(element->tensors[i], 0, (int64_t)count, &view, error));
        cadre_tensor_release(element->tensors[i]);
        element->tensors[i] = view;
    }
    return CADRE_OK;
}

/* One element after the other, where it is not known how many there are: reading many of an input
 * at once could fail behind the end of the shortest. */
static cadre_status next_each(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    CADRE_CLEANUP(element_stack_clear) struct element_stack rows = {0};
    while (rows.count < wanted) {
        cadre_element element = {0};
        struct cadre_error own = {0};
        const size_t ids_before = ids != NULL ? ids->count : 0;
        cadre_status status = zip_next(self, &element, ids, &own);
        if (status == CADRE_OUT_OF_RANGE && rows.count > 0) {
            if (ids != NULL) {
                ids->count = ids_before; /* of an element that has no others beside it */
            }
            break;
        }
        if (status != CADRE_OK) {
            *error = own;
            return status;
        }
        CADRE_TRY(element_stack_add(&rows, &element, error));
    }
    *ret_count = rows.count;
    return element_stack_finish(&rows, ret_element, error);
}

/* The last input is read first: the ids of the first one are then those of the rows that all have.
 */
static cadre_status zip_next_rows(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct zip_iterator *iterator = (struct zip_iterator *)self;
    const int64_t cardinality = dataset_cardinality(self->data);
    if (cardinality == CADRE_CARDINALITY_UNKNOWN) {
        return next_each(self, wanted, ret_element, ret_count, ids, error);
    }
    if (cardinality >= 0) {
        uint64_t left = (uint64_t)cardinality - iterator->at;
        wanted = left < wanted ? (size_t)left : wanted;
    }
    if (wanted == 0) {
        return iterator_end(error);
    }
    cadre_element elements[CADRE_ELEMENT_TENSORS_MAX] = {{0}};
    size_t rows[CADRE_ELEMENT_TENSORS_MAX] = {0};
    cadre_status status = CADRE_OK;
    size_t count = wanted;
    for (uint32_t i = inputs_of(self); i-- > 0 && status == CADRE_OK;) {
        status = read_rows(
            iterator_of(self, i), count, &elements[i], &rows[i], i == 0 ? ids : NULL, error);
        count = status == CADRE_OK ? rows[i] : count;
    }
    for (uint32_t i = 0; i < inputs_of(self); i++) {
        if (status == CADRE_OK && rows[i] > count) {
            status = cut_rows(&elements[i], count, error);
        }
        if (status == CADRE_OK) {
            status = zip_append(ret_element, &elements[i], error);
        }
        cadre_element_release(&elements[i]);
    }
    if (status != CADRE_OK) {
        cadre_element_release(ret_element);
        return status;
    }
    iterator->at += count;
    *ret_count = count;
    return CADRE_OK;
}

static cadre_status zip_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    for (uint32_t i = 0; i < inputs_of(self); i++) {
        CADRE_TRY(iterator_skip(iterator_of(self, i), count, ret_skipped, error));
        count = *ret_skipped;
    }
    ((struct zip_iterator *)self)->at += count;
    return CADRE_OK;
}

static cadre_status zip_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    CADRE_TRY(iterator_state_write_number(writer, ((struct zip_iterator *)self)->at, error));
    for (uint32_t i = 0; i < inputs_of(self); i++) {
        CADRE_TRY(iterator_save(iterator_of(self, i), writer, error));
    }
    return CADRE_OK;
}

static cadre_status zip_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    const int64_t cardinality = dataset_cardinality(self->data);
    uint64_t at = 0;
    CADRE_TRY(iterator_state_read_number(reader, &at, error));
    if (cardinality >= 0 && at > (uint64_t)cardinality) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "zip: the saved position is element %" PRIu64 " of %" PRId64, at, cardinality);
    }
    ((struct zip_iterator *)self)->at = at;
    for (uint32_t i = 0; i < inputs_of(self); i++) {
        CADRE_TRY(iterator_restore(iterator_of(self, i), reader, error));
    }
    return CADRE_OK;
}

static void zip_iterator_destroy(cadre_iterator *self)
{
    struct zip_iterator *iterator = (struct zip_iterator *)self;
    for (uint32_t i = 1; i < inputs_of(self) && iterator->others != NULL; i++) {
        cadre_iterator_release(iterator->others[i - 1]);
    }
    free(iterator->others);
}

static const struct iterator_ops zip_iterator_ops = {
    .next = zip_next,
    .next_rows = zip_next_rows,
    .skip = zip_skip,
    .save = zip_save,
    .restore = zip_restore,
    .saves_input = true,
    .destroy = zip_iterator_destroy,
};

static cadre_status zip_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    cadre_status status = iterator_new(
        sizeof(struct zip_iterator), &zip_iterator_ops, self, pass, pass, ret_iterator, error);
    if (status != CADRE_OK) {
        return status;
    }
    struct zip_iterator *iterator = (struct zip_iterator *)*ret_iterator;
    iterator->others = calloc(self->input_count, sizeof iterator->others[0]);
    if (iterator->others == NULL) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "zip: no memory for an iterator");
    }
    for (uint32_t i = 1; i < self->input_count && status == CADRE_OK; i++) {
        status = dataset_iterate(self->inputs[i], pass, &iterator->others[i - 1], error);
    }
    if (status != CADRE_OK) {
        cadre_iterator_release(*ret_iterator);
        *ret_iterator = NULL;
    }
    return status;
}

static cadre_dataset *zip_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_zip(inputs, self->input_count);
}

static void zip_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "%" PRIu32 " datasets", self->input_count);
}

static const struct dataset_ops zip_ops = {
    .name = "zip",
    .rebuild = zip_rebuild,
    .describe = zip_describe,
    .spec = zip_spec,
    .cardinality = zip_cardinality,
    .at = zip_at,
    .gather = zip_gather,
    .ids_at = zip_ids_at,
    .rows = zip_rows,
    .at_rows = zip_at_rows,
    .iterate = zip_iterate,
    .batch_size = zip_batch_size,
};

cadre_dataset *cadre_dataset_zip(cadre_dataset *const datasets[], size_t count)
{
    struct cadre_error error = {0};
    if (datasets == NULL || count == 0) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "zip: no dataset was given; one at least");
        return dataset_failed(NULL, &error);
    }
    if (count > CADRE_ELEMENT_TENSORS_MAX) {
        for (size_t i = 0; i < count; i++) {
            cadre_dataset_release(datasets[i]);
        }
        check_room(0, CADRE_ELEMENT_TENSORS_MAX + 1, &error);
        return dataset_failed(NULL, &error);
    }
    return dataset_new_joined(sizeof(cadre_dataset), &zip_ops, datasets, count);
}
