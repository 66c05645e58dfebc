/* SPDX-License-Identifier: Apache-2.0
 * The transformation that makes an element of each row of each element. It shares their memory. By
 * place it needs to know how many rows there are without looking: one number for all elements. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/composite/composite.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/batching/element_slice.h"
#include "worker/library/input/node/element_stack.h"
#include "worker/library/input/node/user_call.h"

struct unbatch_dataset {
    cadre_dataset base;
    int64_t rows; /* of each element of the input; CADRE_DIMENSION_ANY: not known */
};

struct unbatch_iterator {
    cadre_iterator base;
    cadre_element element; /* empty: the next one is to be read */
    struct id_list ids;
    int64_t rows;
    int64_t given;
};

static cadre_status refuse_sparse(const struct composite *composite, struct cadre_error *error)
{
    char text[COMPOSITE_TEXT_BYTES];
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "unbatch: %s cannot be put apart; map cadre_sparse_to_dense first",
        composite_text(composite, text));
}

/* The rows of an element, which all components agree in. */
static cadre_status count_rows(
    const cadre_element *element, int64_t *ret_rows, struct cadre_error *error)
{
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < element->count; i += at.count) {
        at = composite_of_element(element, i);
        char text[COMPOSITE_TEXT_BYTES];
        if (at.kind == CADRE_COMPOSITE_NONE && cadre_tensor_rank(element->tensors[i]) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "unbatch: component %" PRIu32 " is a scalar and has no rows; batch first", i);
        }
        if (at.kind == CADRE_COMPOSITE_SPARSE) {
            return refuse_sparse(&at, error);
        }
        cadre_status status = composite_check(at.kind, element->tensors + i, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "unbatch: %s", composite_text(&at, text));
        }
        const int64_t rows = composite_rows(at.kind, element->tensors + i);
        if (i > 0 && rows != *ret_rows) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "unbatch: %s has %" PRId64 " rows and the first has %" PRId64
                "; all components of an element agree in them",
                composite_text(&at, text), rows, *ret_rows);
        }
        *ret_rows = rows;
    }
    return CADRE_OK;
}

/* Row `row` of an element, without the first dimension: of a ragged component a plain one. */
static cadre_status view_row(const cadre_element *element, int64_t row, cadre_element *ret_element,
    struct cadre_error *error)
{
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < element->count; i += at.count) {
        at = composite_of_element(element, i);
        cadre_tensor **to = &ret_element->tensors[ret_element->count];
        cadre_status status = at.kind == CADRE_COMPOSITE_NONE
                                  ? tensor_view_row(element->tensors[i], row, to, error)
                                  : ragged_row(element->tensors + i, row, to, error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return status;
        }
        ret_element->count++;
    }
    return CADRE_OK;
}

/* Rows [first, first + count) of an element; `alone`: one, without the first dimension. */
static cadre_status unbatch_view(const cadre_element *element, int64_t first, int64_t count,
    bool alone, cadre_element *ret_element, struct cadre_error *error)
{
    const struct row_range range = {.first = first, .count = count};
    return alone ? view_row(element, first, ret_element, error)
                 : element_slice(element, range, ret_element, error);
}

/* An id for each row where there are as many, else all of them with the first row. */
static cadre_status add_ids(const struct id_list *of_element, int64_t rows, int64_t first,
    int64_t count, struct id_list *ids, struct cadre_error *error)
{
    if (of_element->count == (uint64_t)rows) {
        return id_list_add_range(ids, of_element, (size_t)first, (size_t)count, error);
    }
    return id_list_add_range(ids, of_element, 0, first == 0 ? of_element->count : 0, error);
}

/* --- by index --- */

/* Rows [first, first + count) of element `place` of the input, without the others if it can. */
static cadre_status read_rows(cadre_dataset *self, struct element_position position, int64_t first,
    int64_t count, cadre_element *ret_element, struct cadre_error *error)
{
    int64_t rows = ((const struct unbatch_dataset *)self)->rows;
    int64_t found = dataset_rows(self->input, position);
    if (found == rows) {
        return dataset_at_rows(self->input, position, first, count, ret_element, NULL, error);
    }
    cadre_element whole = {0};
    CADRE_TRY(dataset_at(self->input, position, &whole, NULL, error));
    cadre_status status = count_rows(&whole, &found, error);
    if (status == CADRE_OK && found != rows) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "unbatch: element %" PRIu64 " has %" PRId64 " rows, and all were said to have %" PRId64
            "; declare what the map before it makes with rows of any number",
            position.index, found, rows);
    }
    status =
        status == CADRE_OK ? unbatch_view(&whole, first, count, false, ret_element, error) : status;
    cadre_element_release(&whole);
    return status;
}

static cadre_status unbatch_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    uint64_t rows = (uint64_t)((const struct unbatch_dataset *)self)->rows;
    struct id_list of_element = {0};
    struct element_position kept = {.index = UINT64_MAX};
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        struct element_position position = {positions[i].index / rows, positions[i].epoch};
        if (position.index != kept.index || position.epoch != kept.epoch) {
            kept = position;
            of_element.count = 0;
            status = dataset_ids_at(self->input, &position, 1, &of_element, error);
        }
        if (status == CADRE_OK) {
            status = add_ids(
                &of_element, (int64_t)rows, (int64_t)(positions[i].index % rows), 1, ids, error);
        }
    }
    id_list_clear(&of_element);
    return status;
}

static cadre_status unbatch_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    uint64_t rows = (uint64_t)((const struct unbatch_dataset *)self)->rows;
    cadre_element row = {0};
    const struct element_position from = {position.index / rows, position.epoch};
    CADRE_TRY(read_rows(self, from, (int64_t)(position.index % rows), 1, &row, error));
    cadre_status status = ids == NULL ? CADRE_OK : unbatch_ids_at(self, &position, 1, ids, error);
    status = status == CADRE_OK ? unbatch_view(&row, 0, 1, true, ret_element, error) : status;
    cadre_element_release(&row);
    return status;
}

/* How many of the places are rows of one element that follow on each other. */
static size_t run_length(const struct element_position positions[], size_t count, uint64_t rows)
{
    size_t run = 1;
    while (run < count && positions[run].epoch == positions[0].epoch &&
           positions[run].index == positions[0].index + run &&
           positions[run].index / rows == positions[0].index / rows) {
        run++;
    }
    return run;
}

static cadre_status unbatch_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    uint64_t rows = (uint64_t)((const struct unbatch_dataset *)self)->rows;
    CADRE_CLEANUP(element_stack_clear)
    struct element_stack pieces = {.elements = calloc(count, sizeof pieces.elements[0])};
    if (pieces.elements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "unbatch: no memory for %zu pieces", count);
    }
    size_t run = 0;
    for (size_t i = 0; i < count; i += run) {
        const struct element_position from = {positions[i].index / rows, positions[i].epoch};
        run = run_length(positions + i, count - i, rows);
        CADRE_TRY(read_rows(self, from, (int64_t)(positions[i].index % rows), (int64_t)run,
            &pieces.elements[pieces.count], error));
        pieces.count++;
    }
    if (ids != NULL) {
        CADRE_TRY(unbatch_ids_at(self, positions, count, ids, error));
    }
    if (pieces.count == 1) {
        *ret_element = pieces.elements[0];
        pieces.elements[0] = (cadre_element){0};
        return CADRE_OK;
    }
    return element_stack_concat(&pieces, "unbatch", "", ret_element, error);
}

/* --- in order --- */

/* Sees to an element with rows left. */
static cadre_status need_rows(struct unbatch_iterator *iterator, struct cadre_error *error)
{
    while (iterator->given == iterator->rows) {
        cadre_element_release(&iterator->element);
        iterator->ids.count = 0;
        iterator->given = 0;
        iterator->rows = 0;
        CADRE_TRY(iterator_next(iterator->base.input, &iterator->element, &iterator->ids, error));
        CADRE_TRY(count_rows(&iterator->element, &iterator->rows, error));
    }
    return CADRE_OK;
}

static cadre_status unbatch_give(struct unbatch_iterator *iterator, int64_t count, bool alone,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    CADRE_TRY(add_ids(&iterator->ids, iterator->rows, iterator->given, count, ids, error));
    CADRE_TRY(unbatch_view(&iterator->element, iterator->given, count, alone, ret_element, error));
    iterator->given += count;
    return CADRE_OK;
}

static cadre_status unbatch_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct unbatch_iterator *iterator = (struct unbatch_iterator *)self;
    CADRE_TRY(need_rows(iterator, error));
    return unbatch_give(iterator, 1, true, ret_element, ids, error);
}

static cadre_status unbatch_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct unbatch_iterator *iterator = (struct unbatch_iterator *)self;
    CADRE_TRY(need_rows(iterator, error));
    int64_t left = iterator->rows - iterator->given;
    int64_t count = wanted < (uint64_t)left ? (int64_t)wanted : left;
    CADRE_TRY(unbatch_give(iterator, count, false, ret_element, ids, error));
    *ret_count = (size_t)count;
    return CADRE_OK;
}

static cadre_status unbatch_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct unbatch_iterator *iterator = (struct unbatch_iterator *)self;
    while (*ret_skipped < count) {
        cadre_status status = need_rows(iterator, error);
        if (status != CADRE_OK) {
            return status == CADRE_OUT_OF_RANGE ? CADRE_OK : status;
        }
        uint64_t left = (uint64_t)(iterator->rows - iterator->given);
        uint64_t taken = left < count - *ret_skipped ? left : count - *ret_skipped;
        iterator->given += (int64_t)taken;
        *ret_skipped += taken;
    }
    return CADRE_OK;
}

/* The rest of the element at hand is part of the position. */
static cadre_status unbatch_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    struct unbatch_iterator *iterator = (struct unbatch_iterator *)self;
    int64_t left = iterator->rows - iterator->given;
    CADRE_TRY(iterator_state_write_number(writer, (uint64_t)left, error));
    if (left == 0) {
        return CADRE_OK;
    }
    cadre_element rest = {0};
    struct id_list ids = {0};
    cadre_status status =
        unbatch_view(&iterator->element, iterator->given, left, false, &rest, error);
    status = status == CADRE_OK
                 ? add_ids(&iterator->ids, iterator->rows, iterator->given, left, &ids, error)
                 : status;
    status = status == CADRE_OK ? iterator_state_write_element(writer, &rest, error) : status;
    status = status == CADRE_OK ? iterator_state_write_ids(writer, &ids, error) : status;
    cadre_element_release(&rest);
    id_list_clear(&ids);
    return status;
}

/* It is an element of the input, with any number of rows. */
static cadre_status check_saved(
    cadre_dataset *self, const cadre_element *element, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    CADRE_TRY(dataset_spec(self->input, &spec, error));
    element_spec_set_rows(&spec, CADRE_DIMENSION_ANY);
    return user_call_check(element, &spec, "unbatch: the saved position", error);
}

static cadre_status unbatch_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct unbatch_iterator *iterator = (struct unbatch_iterator *)self;
    uint64_t left = 0;
    int64_t rows = 0;
    CADRE_TRY(iterator_state_read_number(reader, &left, error));
    if (left == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_read_element(reader, &iterator->element, error));
    CADRE_TRY(iterator_state_read_ids(reader, &iterator->ids, error));
    CADRE_TRY(check_saved(self->data, &iterator->element, error));
    CADRE_TRY(count_rows(&iterator->element, &rows, error));
    if ((uint64_t)rows != left) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "unbatch: the saved position holds %" PRId64 " rows but lists %" PRIu64
            "; it is damaged",
            rows, left);
    }
    iterator->rows = rows;
    return CADRE_OK;
}

static void unbatch_destroy(cadre_iterator *self)
{
    struct unbatch_iterator *iterator = (struct unbatch_iterator *)self;
    cadre_element_release(&iterator->element);
    id_list_clear(&iterator->ids);
}

static const struct iterator_ops unbatch_iterator_ops = {
    .next = unbatch_next,
    .next_rows = unbatch_next_rows,
    .skip = unbatch_skip,
    .save = unbatch_save,
    .restore = unbatch_restore,
    .destroy = unbatch_destroy,
};

static cadre_status unbatch_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct unbatch_iterator), &unbatch_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

/* --- what it is --- */

static cadre_status unbatch_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    const cadre_element_spec *from = &inputs[0];
    struct composite at = {.count = 0};
    struct names_builder made = {0};
    *ret_spec = (cadre_element_spec){.count = 0};
    for (uint32_t i = 0; i < from->count; i += at.count) {
        cadre_tensor_spec *tensor = &ret_spec->tensors[ret_spec->count++];
        at = composite_of_spec(from, i);
        *tensor = from->tensors[i];
        const char *name = from->names == NULL ? NULL : from->names[i];
        if (at.kind == CADRE_COMPOSITE_RAGGED) { /* a row is some of the values */
            names_builder_add_ragged_row(&made, name);
            continue;
        }
        names_builder_add(&made, name, NULL);
        if (at.kind == CADRE_COMPOSITE_SPARSE) {
            return refuse_sparse(&at, error);
        }
        if (tensor->rank == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "unbatch: component %" PRIu32 " is a scalar and has no rows; batch first", i);
        }
        tensor->rank--;
        for (uint32_t axis = 0; axis < tensor->rank; axis++) {
            tensor->dims[axis] = tensor->dims[axis + 1];
        }
        tensor->dims[tensor->rank] = 0;
    }
    return from->names == NULL ? CADRE_OK
                               : names_builder_intern(&made, "unbatch", &ret_spec->names, error);
}

static int64_t unbatch_cardinality(const cadre_dataset *self)
{
    int64_t rows = ((const struct unbatch_dataset *)self)->rows;
    int64_t elements = dataset_cardinality(self->input);
    if (elements <= 0) {
        return elements;
    }
    if (rows == CADRE_DIMENSION_ANY || __builtin_mul_overflow(elements, rows, &elements)) {
        return CADRE_CARDINALITY_UNKNOWN;
    }
    return elements;
}

static cadre_dataset *unbatch_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    (void)self;
    return cadre_dataset_unbatch(inputs[0]);
}

/* By whether its rows can be stacked. */
static const struct dataset_ops unbatch_ops[] = {
    {
        .name = "unbatch",
        .rebuild = unbatch_rebuild,
        .spec = unbatch_spec,
        .cardinality = unbatch_cardinality,
        .at = unbatch_at,
        .ids_at = unbatch_ids_at,
        .iterate = unbatch_iterate,
    },
    {
        .name = "unbatch",
        .rebuild = unbatch_rebuild,
        .spec = unbatch_spec,
        .cardinality = unbatch_cardinality,
        .at = unbatch_at,
        .gather = unbatch_gather,
        .ids_at = unbatch_ids_at,
        .iterate = unbatch_iterate,
    },
};

cadre_dataset *cadre_dataset_unbatch(cadre_dataset *data)
{
    if (!dataset_usable(data)) {
        return data;
    }
    cadre_element_spec spec = {0};
    int64_t rows = CADRE_DIMENSION_ANY;
    /* What it fails with comes out where the elements are read. */
    if (data->indexable && dataset_spec(data, &spec, NULL) == CADRE_OK) {
        rows = element_spec_rows(&spec);
    }
    const bool stacks = element_spec_check_plain(&spec, "unbatch", NULL) == CADRE_OK;
    struct unbatch_dataset *unbatch = dataset_new(sizeof *unbatch, &unbatch_ops[stacks], data);
    if (unbatch == NULL) {
        return NULL;
    }
    unbatch->rows = rows;
    unbatch->base.indexable = unbatch->base.indexable && rows > 0;
    return &unbatch->base;
}
