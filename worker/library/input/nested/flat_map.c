/* SPDX-License-Identifier: Apache-2.0
 * The transformation that gives all elements of the dataset that the program's function makes of
 * the first input element, then all of the second's. */
#include <inttypes.h>

#include "worker/library/input/nested/nested_cursor.h"

struct flat_map_iterator {
    cadre_iterator base;
    struct nested_cursor cursor; /* empty: between two input elements */
    uint64_t number;             /* of the next input element */
    struct nested_kind kind;
};

static const struct nested_dataset *nested_of(const cadre_iterator *self)
{
    return (const struct nested_dataset *)self->data;
}

/* Opens the next input element's dataset, when there is none. */
static cadre_status open_next(struct flat_map_iterator *iterator, struct cadre_error *error)
{
    cadre_iterator *self = &iterator->base;
    if (iterator->cursor.element.count > 0) {
        return CADRE_OK;
    }
    CADRE_TRY(nested_cursor_begin(&iterator->cursor, self->input, &iterator->number, error));
    return nested_cursor_open(&iterator->cursor, nested_of(self), &self->pass, error);
}

static cadre_status flat_map_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct flat_map_iterator *iterator = (struct flat_map_iterator *)self;
    for (;;) {
        struct cadre_error own = {0};
        CADRE_TRY(open_next(iterator, error));
        cadre_status status =
            nested_cursor_next(&iterator->cursor, nested_of(self), ret_element, ids, &own);
        if (status == CADRE_OK) {
            status = nested_cursor_check(
                &iterator->cursor, nested_of(self), &iterator->kind, ret_element, false, &own);
        }
        if (status == CADRE_OK) {
            return CADRE_OK;
        }
        cadre_element_release(ret_element);
        if (status != CADRE_OUT_OF_RANGE) {
            *error = own;
            return status;
        }
        nested_cursor_clear(&iterator->cursor);
    }
}

static cadre_status flat_map_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct flat_map_iterator *iterator = (struct flat_map_iterator *)self;
    for (;;) {
        struct cadre_error own = {0};
        CADRE_TRY(open_next(iterator, error));
        cadre_status status = nested_cursor_next_rows(
            &iterator->cursor, nested_of(self), wanted, ret_element, ret_count, ids, &own);
        if (status == CADRE_OK) {
            status = nested_cursor_check(
                &iterator->cursor, nested_of(self), &iterator->kind, ret_element, true, &own);
        }
        if (status == CADRE_OK) {
            return CADRE_OK;
        }
        cadre_element_release(ret_element);
        if (status != CADRE_OUT_OF_RANGE) {
            *error = own;
            return status;
        }
        nested_cursor_clear(&iterator->cursor);
    }
}

static cadre_status flat_map_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct flat_map_iterator *iterator = (struct flat_map_iterator *)self;
    while (*ret_skipped < count) {
        struct cadre_error own = {0};
        uint64_t passed = 0;
        cadre_status status = open_next(iterator, &own);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        if (status == CADRE_OK) {
            status = nested_cursor_skip(
                &iterator->cursor, nested_of(self), count - *ret_skipped, &passed, &own);
        }
        if (status != CADRE_OK) {
            *error = own;
            return status;
        }
        *ret_skipped += passed;
        if (*ret_skipped < count) {
            nested_cursor_clear(&iterator->cursor);
        }
    }
    return CADRE_OK;
}

static cadre_status flat_map_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct flat_map_iterator *iterator = (const struct flat_map_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->number, error));
    CADRE_TRY(nested_cursor_save(&iterator->cursor, iterator->cursor.ordinal, true, writer, error));
    return iterator_save(self->input, writer, error);
}

static cadre_status flat_map_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct flat_map_iterator *iterator = (struct flat_map_iterator *)self;
    CADRE_TRY(iterator_state_read_number(reader, &iterator->number, error));
    CADRE_TRY(nested_cursor_restore(
        &iterator->cursor, nested_of(self), &self->pass, true, reader, error));
    return iterator_restore(self->input, reader, error);
}

static void flat_map_destroy(cadre_iterator *self)
{
    nested_cursor_clear(&((struct flat_map_iterator *)self)->cursor);
}

static const struct iterator_ops flat_map_iterator_ops = {
    .next = flat_map_next,
    .next_rows = flat_map_next_rows,
    .skip = flat_map_skip,
    .save = flat_map_save,
    .restore = flat_map_restore,
    .saves_input = true,
    .destroy = flat_map_destroy,
};

static cadre_status flat_map_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct flat_map_iterator), &flat_map_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

static const struct dataset_ops flat_map_ops = {
    .name = "flat_map",
    .destroy = nested_destroy,
    .rebuild = nested_rebuild,
    .spec = nested_spec,
    .cardinality = nested_cardinality,
    .samples = nested_samples,
    .iterate = flat_map_iterate,
    .opens_names = nested_opens_names,
};

cadre_dataset *cadre_dataset_flat_map(
    cadre_dataset *data, cadre_dataset_function function, void *user)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (function == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "flat_map: the function is NULL");
        return dataset_failed(data, &error);
    }
    const struct nested_settings settings = {
        .function = function,
        .user = user,
        .cycle = 1,
        .block = 1,
    };
    return nested_new(&flat_map_ops, data, &settings);
}
