/* SPDX-License-Identifier: Apache-2.0
 * The transformations that keep some of the elements: take, skip and shard. All three are one rule:
 * of the input's elements, those at first, first + stride, ..., `most` of them at the most. */
#include <inttypes.h>

#include "worker/library/input/transformations/select.h"

struct select_dataset {
    cadre_dataset base;
    int64_t first;
    int64_t stride;
    int64_t limit; /* INT64_MAX: all */
};

struct select_iterator {
    cadre_iterator base;
    int64_t given;
};

static void select_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    for (size_t i = 0; i < count; i++) {
        positions[i].index =
            (uint64_t)select->first + positions[i].index * (uint64_t)select->stride;
    }
}

static cadre_status select_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct select_iterator *iterator = (struct select_iterator *)self;
    const struct select_dataset *select = (const struct select_dataset *)self->data;
    if (iterator->given == select->limit) {
        return iterator_end(error);
    }
    uint64_t passed_over = (uint64_t)(iterator->given == 0 ? select->first : select->stride - 1);
    uint64_t skipped = 0;
    if (passed_over > 0) {
        CADRE_TRY(iterator_skip(self->input, passed_over, &skipped, error));
    }
    CADRE_TRY(iterator_next(self->input, ret_element, ids, error));
    iterator->given++;
    return CADRE_OK;
}

static cadre_status select_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    return iterator_state_write_number(
        writer, (uint64_t)((struct select_iterator *)self)->given, error);
}

static cadre_status select_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    const struct select_dataset *select = (const struct select_dataset *)self->data;
    uint64_t given = 0;
    CADRE_TRY(iterator_state_read_number(reader, &given, error));
    if (given > (uint64_t)select->limit) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the saved position is element %" PRIu64 " of %" PRId64, self->data->ops->name,
            given, select->limit);
    }
    ((struct select_iterator *)self)->given = (int64_t)given;
    return CADRE_OK;
}

static const struct iterator_ops select_iterator_ops = {
    .next = select_next,
    .save = select_save,
    .restore = select_restore,
};

/* --- take and skip: consecutive elements of the input --- */

/* What is not wanted at the front is passed over; *ret_count is how many of `wanted` there may be.
 */
static cadre_status run_begin(struct select_iterator *iterator, uint64_t wanted,
    uint64_t *ret_count, struct cadre_error *error)
{
    const struct select_dataset *select = (const struct select_dataset *)iterator->base.data;
    uint64_t left = (uint64_t)(select->limit - iterator->given);
    uint64_t skipped = 0;
    *ret_count = wanted < left ? wanted : left;
    if (*ret_count == 0 || iterator->given > 0 || select->first == 0) {
        return CADRE_OK;
    }
    return iterator_skip(iterator->base.input, (uint64_t)select->first, &skipped, error);
}

static cadre_status run_next_rows(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct select_iterator *iterator = (struct select_iterator *)self;
    uint64_t count = 0;
    CADRE_TRY(run_begin(iterator, wanted, &count, error));
    if (count == 0) {
        return iterator_end(error);
    }
    CADRE_TRY(iterator_next_rows(self->input, (size_t)count, ret_element, ret_count, ids, error));
    iterator->given += (int64_t)*ret_count;
    return CADRE_OK;
}

static cadre_status run_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct select_iterator *iterator = (struct select_iterator *)self;
    uint64_t wanted = 0;
    CADRE_TRY(run_begin(iterator, count, &wanted, error));
    if (wanted > 0) {
        CADRE_TRY(iterator_skip(self->input, wanted, ret_skipped, error));
        iterator->given += (int64_t)*ret_skipped;
    }
    return CADRE_OK;
}

static const struct iterator_ops run_iterator_ops = {
    .next = select_next,
    .next_rows = run_next_rows,
    .skip = run_skip,
    .save = select_save,
    .restore = select_restore,
};

static cadre_status select_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    return iterator_new(sizeof(struct select_iterator),
        select->stride == 1 ? &run_iterator_ops : &select_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

static int64_t select_cardinality(const cadre_dataset *self);
static cadre_dataset *select_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[]);

static void select_describe(const cadre_dataset *self, struct description *text)
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    description_add(text, "from %" PRId64 " by %" PRId64, select->first, select->stride);
    if (select->limit < INT64_MAX) {
        description_add(text, ", %" PRId64 " at the most", select->limit);
    }
}

#define SELECT_OPS(called)                                                                         \
    {                                                                                              \
        .name = called, .rebuild = select_rebuild, .describe = select_describe,                    \
        .cardinality = select_cardinality, .locate = select_locate, .iterate = select_iterate,     \
        .keeps_elements = true                                                                     \
    }

static const struct dataset_ops take_ops = SELECT_OPS("take");
static const struct dataset_ops skip_ops = SELECT_OPS("skip");
static const struct dataset_ops shard_ops = SELECT_OPS("shard");

static int64_t select_selected(int64_t elements, const struct select_dataset *select)
{
    if (elements == CADRE_CARDINALITY_INFINITE && select->limit < INT64_MAX) {
        return select->limit;
    }
    if (elements < 0) {
        return elements;
    }
    int64_t from = elements > select->first ? elements - select->first : 0;
    int64_t count = from == 0 ? 0 : (from - 1) / select->stride + 1;
    return count < select->limit ? count : select->limit;
}

static int64_t select_cardinality(const cadre_dataset *self)
{
    return select_selected(dataset_cardinality(self->input), (const struct select_dataset *)self);
}

static cadre_dataset *select_new(cadre_dataset *data, const struct dataset_ops *ops, int64_t first,
    int64_t stride, int64_t limit)
{
    struct select_dataset *select = dataset_new(sizeof *select, ops, data);
    if (select == NULL) {
        return NULL;
    }
    select->first = first;
    select->stride = stride;
    select->limit = limit;
    return &select->base;
}

static cadre_dataset *select_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    return select_new(inputs[0], self->ops, select->first, select->stride, select->limit);
}

/* A dataset that failed because `count` is negative. */
static cadre_dataset *refuse_count(cadre_dataset *data, const char *name, int64_t count)
{
    struct cadre_error error = {0};
    cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
        "%s: count %" PRId64 "; give 0 or more elements", name, count);
    return dataset_failed(data, &error);
}

cadre_dataset *cadre_dataset_take(cadre_dataset *data, int64_t count)
{
    if (!dataset_usable(data)) {
        return data;
    }
    return count < 0 ? refuse_count(data, "take", count) : select_new(data, &take_ops, 0, 1, count);
}

cadre_dataset *cadre_dataset_skip(cadre_dataset *data, int64_t count)
{
    if (!dataset_usable(data)) {
        return data;
    }
    return count < 0 ? refuse_count(data, "skip", count)
                     : select_new(data, &skip_ops, count, 1, INT64_MAX);
}

/* --- the mark --- */

static cadre_status refuse_mark(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "shard: CADRE_SHARD_BY_HINT is a mark for CADRE_SHARD_HINT and cannot be read as it is; "
        "distribute the dataset with auto_shard CADRE_SHARD_HINT, or give a number of shards");
}

static cadre_status hint_prepare(cadre_dataset *self, struct cadre_error *error)
{
    (void)self;
    return refuse_mark(error);
}

static cadre_status hint_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    (void)self;
    (void)pass;
    *ret_iterator = NULL;
    return refuse_mark(error);
}

static int64_t hint_cardinality(const cadre_dataset *self)
{
    (void)self;
    return CADRE_CARDINALITY_UNKNOWN;
}

static void hint_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    (void)self; /* never asked: it cannot be prepared */
    (void)positions;
    (void)count;
}

static cadre_dataset *hint_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    (void)self;
    return cadre_dataset_shard(inputs[0], CADRE_SHARD_BY_HINT, 0);
}

const struct dataset_ops shard_hint_ops = {
    .name = "shard by hint",
    .rebuild = hint_rebuild,
    .cardinality = hint_cardinality,
    .prepare = hint_prepare,
    .locate = hint_locate,
    .iterate = hint_iterate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_shard(cadre_dataset *data, int64_t shards, int64_t index)
{
    if (!dataset_usable(data)) {
        return data;
    }
    if (shards == CADRE_SHARD_BY_HINT) {
        return dataset_new(sizeof(cadre_dataset), &shard_hint_ops, data);
    }
    if (shards < 1 || index < 0 || index >= shards) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "shard: index %" PRId64 " of %" PRId64
            " shards; give at least 1 shard and an index from 0 to one less",
            index, shards);
        return dataset_failed(data, &error);
    }
    return select_new(data, &shard_ops, index, shards, INT64_MAX);
}
