/* SPDX-License-Identifier: Apache-2.0
 * The sizes rule as a transformation: the rows of all batches are one stream, cut by a list of
 * sizes, over and over. An entry of 0 gives an empty batch without looking at the stream. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/library/composite/composite.h"
#include "worker/library/input/batching/element_slice.h"
#include "worker/library/input/batching/rebatch_dataset.h"

struct sizes_dataset {
    cadre_dataset base;
    struct size_list list;
    bool drop_remainder;
};

struct sizes_iterator {
    cadre_iterator base;
    uint64_t entry; /* of the list, that comes next */
    /* The batch that is being cut, and its ids. */
    cadre_element held;
    struct id_list ids;
    int64_t rows;
    int64_t used; /* of its rows; all of them: there is none */
};

/* Parts of consecutive batches that make up one piece. */
struct element_list {
    cadre_element *elements;
    size_t count;
    size_t capacity;
};

static void element_list_clear(struct element_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        cadre_element_release(&list->elements[i]);
    }
    free(list->elements);
}

/* Room for one more, zeroed, at elements[count]. */
static cadre_status element_list_grow(struct element_list *list, struct cadre_error *error)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 4 : list->capacity * 2;
        cadre_element *grown = realloc(list->elements, capacity * sizeof grown[0]);
        if (grown == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "rebatch: no memory for parts of %zu batches", capacity);
        }
        list->elements = grown;
        list->capacity = capacity;
    }
    list->elements[list->count] = (cadre_element){0};
    return CADRE_OK;
}

static const struct size_list *list_of(const cadre_dataset *self)
{
    return &((const struct sizes_dataset *)self)->list;
}

static cadre_status make_empty(
    cadre_dataset *self, cadre_element *ret_element, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    CADRE_TRY(dataset_spec(self->input, &spec, error));
    return element_make_empty(&spec, ret_element, error);
}

/* --- by index: where all batches but the last have one number of rows --- */

/* The node that batches, if nothing between it and `data` touches elements or their order. */
static cadre_dataset *find_batching(cadre_dataset *data)
{
    while (data->ops->iterate == NULL && data->ops->keeps_elements && data->input_count == 1) {
        data = data->input;
    }
    const struct dataset_ops *ops = data->ops;
    bool batches = data->input_count == 1 && ops->rows != NULL && ops->batch_size != NULL;
    return data->indexable && batches ? data : NULL;
}

/* Rows of the whole stream: a number, UNKNOWN, or INT64_MAX: endless. */
static int64_t total_rows(const cadre_dataset *self)
{
    cadre_dataset *batching = find_batching(self->input);
    int64_t batches = dataset_cardinality(self->input);
    int64_t rows = 0;
    if (batching == NULL || batches == CADRE_CARDINALITY_UNKNOWN || batches == 0) {
        return batches == 0 ? 0 : CADRE_CARDINALITY_UNKNOWN;
    }
    if (batches == CADRE_CARDINALITY_INFINITE) {
        return INT64_MAX;
    }
    int64_t each = batching->ops->batch_size(batching);
    int64_t last =
        batching->ops->rows(batching, (struct element_position){.index = (uint64_t)batches - 1});
    if (each < 1 || last < 0) {
        return CADRE_CARDINALITY_UNKNOWN;
    }
    return __builtin_mul_overflow(batches - 1, each, &rows) ||
                   __builtin_add_overflow(rows, last, &rows)
               ? INT64_MAX
               : rows;
}

/* Calls `part` for each batch that has some of the rows. */
static cadre_status for_each_part(cadre_dataset *self, struct row_range range, uint64_t epoch,
    cadre_status (*part)(cadre_dataset *input, struct element_position position,
        struct row_range rows, void *context, struct id_list *ids, struct cadre_error *error),
    void *context, struct id_list *ids, struct cadre_error *error)
{
    cadre_dataset *batching = find_batching(self->input);
    int64_t each = batching->ops->batch_size(batching);
    while (range.count > 0) {
        struct element_position position = {
            .index = (uint64_t)(range.first / each), .epoch = epoch};
        struct row_range rows = {.first = range.first % each};
        rows.count = each - rows.first < range.count ? each - rows.first : range.count;
        CADRE_TRY(part(self->input, position, rows, context, ids, error));
        range.first += rows.count;
        range.count -= rows.count;
    }
    return CADRE_OK;
}

static cadre_status read_part(cadre_dataset *input, struct element_position position,
    struct row_range rows, void *context, struct id_list *ids, struct cadre_error *error)
{
    struct element_list *list = context;
    CADRE_TRY(element_list_grow(list, error));
    CADRE_TRY(dataset_at_rows(
        input, position, rows.first, rows.count, &list->elements[list->count], ids, error));
    list->count++;
    return CADRE_OK;
}

static cadre_status ids_of_part(cadre_dataset *input, struct element_position position,
    struct row_range rows, void *context, struct id_list *ids, struct cadre_error *error)
{
    (void)context;
    struct id_list all = {0};
    int64_t batch_rows = dataset_rows(input, position);
    cadre_status status = dataset_ids_at(input, &position, 1, &all, error);
    if (status == CADRE_OK) {
        status = id_list_slice(&all, batch_rows, rows, ids, error);
    }
    id_list_clear(&all);
    return status;
}

static struct row_range rows_at(const cadre_dataset *self, uint64_t piece)
{
    return size_list_piece(list_of(self), piece, total_rows(self));
}

static cadre_status sizes_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct row_range range = rows_at(self, position.index);
    CADRE_CLEANUP(element_list_clear) struct element_list list = {0};
    if (range.count == 0) {
        return make_empty(self, ret_element, error);
    }
    CADRE_TRY(for_each_part(self, range, position.epoch, read_part, &list, ids, error));
    return element_concat(list.elements, list.count, ret_element, error);
}

static cadre_status sizes_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct row_range range = rows_at(self, positions[i].index);
        CADRE_TRY(for_each_part(self, range, positions[i].epoch, ids_of_part, NULL, ids, error));
    }
    return CADRE_OK;
}

/* --- in order --- */

static void drop_held(struct sizes_iterator *iterator)
{
    cadre_element_release(&iterator->held);
    iterator->ids.count = 0;
    iterator->rows = 0;
    iterator->used = 0;
}

/* Goes on to a batch that has rows. */
static cadre_status hold_next(struct sizes_iterator *iterator, struct cadre_error *error)
{
    while (iterator->used == iterator->rows) {
        drop_held(iterator);
        CADRE_TRY(iterator_next(iterator->base.input, &iterator->held, &iterator->ids, error));
        CADRE_TRY(element_row_count(&iterator->held, &iterator->rows, error));
    }
    return CADRE_OK;
}

static cadre_status take_part(struct sizes_iterator *iterator, int64_t wanted,
    struct element_list *list, struct id_list *ids, int64_t *ret_rows, struct cadre_error *error)
{
    int64_t left = iterator->rows - iterator->used;
    struct row_range range = {.first = iterator->used, .count = left < wanted ? left : wanted};
    CADRE_TRY(element_list_grow(list, error));
    CADRE_TRY(id_list_slice(&iterator->ids, iterator->rows, range, ids, error));
    CADRE_TRY(element_slice(&iterator->held, range, &list->elements[list->count], error));
    list->count++;
    iterator->used += range.count;
    *ret_rows += range.count;
    return CADRE_OK;
}

static cadre_status sizes_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct sizes_iterator *iterator = (struct sizes_iterator *)self;
    const struct sizes_dataset *sizes = (const struct sizes_dataset *)self->data;
    CADRE_CLEANUP(element_list_clear) struct element_list list = {0};
    int64_t wanted = size_list_size(&sizes->list, iterator->entry);
    int64_t rows = 0;
    while (rows < wanted) {
        cadre_status status = hold_next(iterator, error);
        if (status == CADRE_OUT_OF_RANGE && rows > 0 && !sizes->drop_remainder) {
            break;
        }
        CADRE_TRY(status);
        CADRE_TRY(take_part(iterator, wanted - rows, &list, ids, &rows, error));
    }
    CADRE_TRY(wanted == 0 ? make_empty(self->data, ret_element, error)
                          : element_concat(list.elements, list.count, ret_element, error));
    iterator->entry = (iterator->entry + 1) % sizes->list.length;
    return CADRE_OK;
}

static cadre_status sizes_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    struct sizes_iterator *iterator = (struct sizes_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->entry, error));
    CADRE_TRY(iterator_state_write_number(writer, (uint64_t)iterator->rows, error));
    CADRE_TRY(iterator_state_write_number(writer, (uint64_t)iterator->used, error));
    if (iterator->used == iterator->rows) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_write_element(writer, &iterator->held, error));
    return iterator_state_write_ids(writer, &iterator->ids, error);
}

static cadre_status sizes_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct sizes_iterator *iterator = (struct sizes_iterator *)self;
    uint64_t entry = 0;
    uint64_t rows = 0;
    uint64_t used = 0;
    int64_t held_rows = 0;
    CADRE_TRY(iterator_state_read_number(reader, &entry, error));
    CADRE_TRY(iterator_state_read_number(reader, &rows, error));
    CADRE_TRY(iterator_state_read_number(reader, &used, error));
    if (entry >= list_of(self->data)->length || used > rows || rows > INT64_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position is row %" PRIu64 " of %" PRIu64 " of a batch, and entry %" PRIu64
            " of a list of %" PRIu64 " sizes",
            used, rows, entry, list_of(self->data)->length);
    }
    if (used < rows) {
        CADRE_TRY(iterator_state_read_element(reader, &iterator->held, error));
        CADRE_TRY(iterator_state_read_ids(reader, &iterator->ids, error));
        CADRE_TRY(element_row_count(&iterator->held, &held_rows, error));
        if (held_rows != (int64_t)rows) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the saved position is in a batch of %" PRIu64 " rows, and has one of %" PRId64,
                rows, held_rows);
        }
    }
    iterator->entry = entry;
    iterator->rows = (int64_t)rows;
    iterator->used = (int64_t)used;
    return CADRE_OK;
}

static void sizes_iterator_destroy(cadre_iterator *self)
{
    struct sizes_iterator *iterator = (struct sizes_iterator *)self;
    cadre_element_release(&iterator->held);
    id_list_clear(&iterator->ids);
}

static const struct iterator_ops sizes_iterator_ops = {
    .next = sizes_next,
    .save = sizes_save,
    .restore = sizes_restore,
    .destroy = sizes_iterator_destroy,
};

static cadre_status sizes_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(
        sizeof(struct sizes_iterator), &sizes_iterator_ops, self, pass, pass, ret_iterator, error);
}

/* --- the node --- */

static cadre_status sizes_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    const struct sizes_dataset *sizes = (const struct sizes_dataset *)self;
    bool even = size_list_is_even(&sizes->list); /* and then not 0 */
    int64_t size = size_list_size(&sizes->list, 0);
    CADRE_TRY(element_spec_check_divisible(&inputs[0], sizes->list.length, error));
    *ret_spec = inputs[0];
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < ret_spec->count; i += at.count) {
        at = composite_of_spec(ret_spec, i);
        int64_t rows = composite_spec_rows(ret_spec, &at);
        bool fits = even && rows != CADRE_DIMENSION_ANY && rows % size == 0;
        composite_spec_set_rows(
            ret_spec, &at, even && (sizes->drop_remainder || fits) ? size : CADRE_DIMENSION_ANY);
    }
    return CADRE_OK;
}

static int64_t sizes_cardinality(const cadre_dataset *self)
{
    const struct sizes_dataset *sizes = (const struct sizes_dataset *)self;
    int64_t batches = dataset_cardinality(self->input);
    if (batches == CADRE_CARDINALITY_INFINITE) {
        return CADRE_CARDINALITY_INFINITE;
    }
    int64_t total = total_rows(self);
    if (total == CADRE_CARDINALITY_UNKNOWN) {
        return CADRE_CARDINALITY_UNKNOWN;
    }
    uint64_t pieces = sizes->drop_remainder ? size_list_whole_pieces(&sizes->list, total)
                                            : size_list_pieces(&sizes->list, total);
    return pieces > INT64_MAX ? CADRE_CARDINALITY_INFINITE : (int64_t)pieces;
}

static void sizes_destroy(cadre_dataset *self)
{
    size_list_clear(&((struct sizes_dataset *)self)->list);
}

static cadre_dataset *sizes_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct sizes_dataset *sizes = (const struct sizes_dataset *)self;
    return dataset_rebatch_list(inputs[0], &sizes->list, sizes->drop_remainder);
}

static void sizes_describe(const cadre_dataset *self, struct description *text)
{
    const struct sizes_dataset *sizes = (const struct sizes_dataset *)self;
    description_add(text, "%" PRIu64 " sizes of %" PRId64 " rows together%s", sizes->list.length,
        size_list_rows(&sizes->list), sizes->drop_remainder ? ", no shorter one at the end" : "");
}

static const struct dataset_ops sizes_ops = {
    .name = "rebatch",
    .destroy = sizes_destroy,
    .rebuild = sizes_rebuild,
    .describe = sizes_describe,
    .spec = sizes_spec,
    .cardinality = sizes_cardinality,
    .at = sizes_at,
    .ids_at = sizes_ids_at,
    .iterate = sizes_iterate,
};

bool dataset_is_rebatch_sizes(const cadre_dataset *data)
{
    return data->ops == &sizes_ops;
}

cadre_dataset *dataset_rebatch_list(
    cadre_dataset *data, const struct size_list *list, bool drop_remainder)
{
    struct cadre_error error = {0};
    cadre_element_spec spec = {0};
    struct size_list own = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (dataset_spec(data, &spec, &error) != CADRE_OK ||
        element_spec_check_divisible(&spec, list->length, &error) != CADRE_OK ||
        size_list_copy(list, &own, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct sizes_dataset *sizes = dataset_new(sizeof *sizes, &sizes_ops, data);
    if (sizes == NULL) {
        size_list_clear(&own);
        return NULL;
    }
    sizes->list = own;
    sizes->drop_remainder = drop_remainder;
    sizes->base.indexable = data->indexable && find_batching(data) != NULL;
    return &sizes->base;
}

cadre_dataset *dataset_rebatch_sizes(
    cadre_dataset *data, const int64_t sizes[], size_t count, bool drop_remainder)
{
    struct cadre_error error = {0};
    struct size_list list = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (size_list_from(sizes, count, &list, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    data = dataset_rebatch_list(data, &list, drop_remainder);
    size_list_clear(&list);
    return data;
}
