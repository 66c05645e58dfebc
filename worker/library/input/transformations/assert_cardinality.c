/* SPDX-License-Identifier: Apache-2.0
 * The transformation that says how many elements there are. In order they are counted; by index
 * the input's own number is compared, once it is known. */
#include <inttypes.h>

#include "worker/library/input/node/node.h"

struct assert_dataset {
    cadre_dataset base;
    int64_t count; /* or CADRE_CARDINALITY_INFINITE */
};

struct assert_iterator {
    cadre_iterator base;
    uint64_t given;
};

/* What was asserted, as a number of elements that can be given. */
static uint64_t assert_cardinality_asserted(const cadre_dataset *self)
{
    int64_t count = ((const struct assert_dataset *)self)->count;
    return count == CADRE_CARDINALITY_INFINITE ? UINT64_MAX : (uint64_t)count;
}

static cadre_status assert_cardinality_fewer(
    const cadre_dataset *self, uint64_t found, struct cadre_error *error)
{
    int64_t count = ((const struct assert_dataset *)self)->count;
    if (count == CADRE_CARDINALITY_INFINITE) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "assert_cardinality: an endless dataset was asserted, and it has %" PRIu64
            " elements; assert what it has",
            found);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "assert_cardinality: %" PRId64 " elements were asserted, and there are only %" PRIu64
        "; assert what there are",
        count, found);
}

static cadre_status assert_cardinality_more(const cadre_dataset *self, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "assert_cardinality: %" PRId64
        " elements were asserted, and there are more; assert what there are, or take so many first",
        ((const struct assert_dataset *)self)->count);
}

static cadre_status assert_prepare(cadre_dataset *self, struct cadre_error *error)
{
    int64_t found = dataset_cardinality(self->input);
    if (found == CADRE_CARDINALITY_UNKNOWN || found == ((struct assert_dataset *)self)->count) {
        return CADRE_OK;
    }
    bool too_few = found >= 0 && (uint64_t)found < assert_cardinality_asserted(self);
    return too_few ? assert_cardinality_fewer(self, (uint64_t)found, error)
                   : assert_cardinality_more(self, error);
}

static void assert_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    (void)self;
    (void)positions;
    (void)count;
}

/* --- in order --- */

/* There is nothing behind the last one that was asserted. */
static cadre_status assert_cardinality_end(
    struct assert_iterator *iterator, struct cadre_error *error)
{
    uint64_t found = 0;
    CADRE_TRY(iterator_skip(iterator->base.input, 1, &found, error));
    return found > 0 ? assert_cardinality_more(iterator->base.data, error) : iterator_end(error);
}

static cadre_status assert_cardinality_given(
    struct assert_iterator *iterator, cadre_status status, size_t count, struct cadre_error *error)
{
    if (status == CADRE_OUT_OF_RANGE) {
        return assert_cardinality_fewer(iterator->base.data, iterator->given, error);
    }
    iterator->given += status == CADRE_OK ? count : 0;
    return status;
}

static cadre_status assert_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct assert_iterator *iterator = (struct assert_iterator *)self;
    if (iterator->given == assert_cardinality_asserted(self->data)) {
        return assert_cardinality_end(iterator, error);
    }
    return assert_cardinality_given(
        iterator, iterator_next(self->input, ret_element, ids, error), 1, error);
}

static cadre_status assert_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct assert_iterator *iterator = (struct assert_iterator *)self;
    uint64_t left = assert_cardinality_asserted(self->data) - iterator->given;
    if (left == 0) {
        return assert_cardinality_end(iterator, error);
    }
    size_t count = left < wanted ? (size_t)left : wanted;
    cadre_status status =
        iterator_next_rows(self->input, count, ret_element, ret_count, ids, error);
    return assert_cardinality_given(iterator, status, *ret_count, error);
}

static cadre_status assert_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct assert_iterator *iterator = (struct assert_iterator *)self;
    uint64_t left = assert_cardinality_asserted(self->data) - iterator->given;
    uint64_t wanted = left < count ? left : count;
    CADRE_TRY(iterator_skip(self->input, wanted, ret_skipped, error));
    iterator->given += *ret_skipped;
    return *ret_skipped < wanted ? assert_cardinality_fewer(self->data, iterator->given, error)
                                 : CADRE_OK;
}

static cadre_status assert_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    return iterator_state_write_number(writer, ((struct assert_iterator *)self)->given, error);
}

static cadre_status assert_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t found = 0;
    CADRE_TRY(iterator_state_read_number(reader, &found, error));
    if (found > assert_cardinality_asserted(self->data)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "assert_cardinality: the saved position is element %" PRIu64 " of %" PRIu64, found,
            assert_cardinality_asserted(self->data));
    }
    ((struct assert_iterator *)self)->given = found;
    return CADRE_OK;
}

static const struct iterator_ops assert_iterator_ops = {
    .next = assert_next,
    .next_rows = assert_next_rows,
    .skip = assert_skip,
    .save = assert_save,
    .restore = assert_restore,
};

static cadre_status assert_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct assert_iterator), &assert_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

/* --- what it is --- */

static int64_t assert_cardinality(const cadre_dataset *self)
{
    return ((const struct assert_dataset *)self)->count;
}

static cadre_dataset *assert_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_assert_cardinality(
        inputs[0], ((const struct assert_dataset *)self)->count);
}

static void assert_describe(const cadre_dataset *self, struct description *text)
{
    description_add(text, "%" PRId64, ((const struct assert_dataset *)self)->count);
}

static const struct dataset_ops assert_ops = {
    .name = "assert_cardinality",
    .rebuild = assert_rebuild,
    .describe = assert_describe,
    .cardinality = assert_cardinality,
    .prepare = assert_prepare,
    .locate = assert_locate,
    .iterate = assert_iterate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_assert_cardinality(cadre_dataset *data, int64_t count)
{
    if (!dataset_usable(data)) {
        return data;
    }
    if (count < 0 && count != CADRE_CARDINALITY_INFINITE) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "assert_cardinality: %" PRId64
            " elements; give 0 or more, or CADRE_CARDINALITY_INFINITE",
            count);
        return dataset_failed(data, &error);
    }
    struct assert_dataset *node = dataset_new(sizeof *node, &assert_ops, data);
    if (node == NULL) {
        return NULL;
    }
    node->count = count;
    return &node->base;
}
