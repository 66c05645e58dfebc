/* SPDX-License-Identifier: Apache-2.0
 * The transformations that keep some of the elements: take, skip and shard. All three are one rule:
 * of the input's elements, those at first, first + stride, ..., `most` of them at the most. */
#include <inttypes.h>

#include "worker/input/node.h"

struct select_dataset {
    cadre_dataset base;
    int64_t first;
    int64_t stride;
    int64_t most; /* INT64_MAX: all */
};

struct select_iterator {
    cadre_iterator base;
    int64_t given;
};

static void select_locate(const cadre_dataset *self, struct place places[], size_t count)
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    for (size_t i = 0; i < count; i++) {
        places[i].index = (uint64_t)select->first + places[i].index * (uint64_t)select->stride;
    }
}

static cadre_status select_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct select_iterator *iterator = (struct select_iterator *)self;
    const struct select_dataset *select = (const struct select_dataset *)self->data;
    if (iterator->given == select->most) {
        return iterator_end(error);
    }
    int64_t passed_over = iterator->given == 0 ? select->first : select->stride - 1;
    for (int64_t i = 0; i < passed_over; i++) {
        cadre_element unwanted = {0};
        CADRE_TRY(iterator_next(self->input, &unwanted, NULL, error));
        cadre_element_clear(&unwanted);
    }
    CADRE_TRY(iterator_next(self->input, ret_element, ids, error));
    iterator->given++;
    return CADRE_OK;
}

static const struct iterator_ops select_iterator_ops = {.next = select_next};

static cadre_status select_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct select_iterator), &select_iterator_ops, self, pass, pass,
        ret_iterator, error);
}

static int64_t select_cardinality(const cadre_dataset *self);
static cadre_dataset *select_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[]);

static void select_describe(const cadre_dataset *self, struct description *text)
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    description_add(text, "from %" PRId64 " by %" PRId64, select->first, select->stride);
    if (select->most < INT64_MAX) {
        description_add(text, ", %" PRId64 " at the most", select->most);
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

static int64_t selected(int64_t elements, const struct select_dataset *select)
{
    if (elements == CADRE_CARDINALITY_INFINITE && select->most < INT64_MAX) {
        return select->most;
    }
    if (elements < 0) {
        return elements;
    }
    int64_t from = elements > select->first ? elements - select->first : 0;
    int64_t count = from == 0 ? 0 : (from - 1) / select->stride + 1;
    return count < select->most ? count : select->most;
}

static int64_t select_cardinality(const cadre_dataset *self)
{
    return selected(dataset_cardinality(self->input), (const struct select_dataset *)self);
}

static cadre_dataset *select_new(
    cadre_dataset *data, const struct dataset_ops *ops, int64_t first, int64_t stride, int64_t most)
{
    struct select_dataset *select = dataset_new(sizeof *select, ops, data);
    if (select == NULL) {
        return NULL;
    }
    select->first = first;
    select->stride = stride;
    select->most = most;
    return &select->base;
}

static cadre_dataset *select_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct select_dataset *select = (const struct select_dataset *)self;
    return select_new(inputs[0], self->ops, select->first, select->stride, select->most);
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

cadre_dataset *cadre_dataset_shard(cadre_dataset *data, int64_t shards, int64_t index)
{
    if (!dataset_usable(data)) {
        return data;
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
