/* SPDX-License-Identifier: Apache-2.0
 * The transformation that gives the elements several times over. Each pass is an epoch of its own
 * to the nodes before it, so that a shuffle there gives another order. */
#include <inttypes.h>

#include "worker/library/input/node/node.h"

struct repeat_dataset {
    cadre_dataset base;
    int64_t count; /* or CADRE_REPEAT_FOREVER */
};

struct repeat_iterator {
    cadre_iterator base; /* `input` is the iterator of the pass at hand */
    uint64_t pass;
    bool pass_gave; /* an element: endless passes over nothing must end */
};

/* The epoch of the input in pass `pass` of epoch `epoch`: epochs follow on each other without a
 * gap. An endless repeat has 2^32 passes to an epoch. */
static uint64_t pass_epoch(const struct repeat_dataset *repeat, uint64_t epoch, uint64_t pass)
{
    uint64_t passes =
        repeat->count == CADRE_REPEAT_FOREVER ? UINT64_C(1) << 32 : (uint64_t)repeat->count;
    return epoch * passes + pass;
}

static void repeat_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    const struct repeat_dataset *repeat = (const struct repeat_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    for (size_t i = 0; i < count; i++) {
        uint64_t passed = elements < 0 ? 0 : positions[i].index / (uint64_t)elements;
        positions[i].epoch = pass_epoch(repeat, positions[i].epoch, passed);
        positions[i].index -= elements < 0 ? 0 : passed * (uint64_t)elements;
    }
}

static cadre_status begin_pass(struct repeat_iterator *iterator, struct cadre_error *error)
{
    cadre_iterator *self = &iterator->base;
    const struct pass pass = {
        .epoch =
            pass_epoch((const struct repeat_dataset *)self->data, self->pass.epoch, iterator->pass),
        .ordered = self->pass.ordered,
    };
    iterator->pass_gave = false;
    return dataset_iterate(self->data->input, &pass, &self->input, error);
}

/* Sees to an iterator of a pass; OUT_OF_RANGE when there are no more passes. */
static cadre_status need_pass(struct repeat_iterator *iterator, struct cadre_error *error)
{
    int64_t count = ((const struct repeat_dataset *)iterator->base.data)->count;
    if (iterator->base.input != NULL) {
        return CADRE_OK;
    }
    if (count != CADRE_REPEAT_FOREVER && iterator->pass >= (uint64_t)count) {
        return iterator_end(error);
    }
    return begin_pass(iterator, error);
}

/* On to the next pass. Another one may have elements where this one had none (a filter behind a
 * shuffle); only passes without number end with the first such one. */
static cadre_status end_pass(struct repeat_iterator *iterator, struct cadre_error *error)
{
    const struct repeat_dataset *repeat = (const struct repeat_dataset *)iterator->base.data;
    if (!iterator->pass_gave &&
        (repeat->count == CADRE_REPEAT_FOREVER || dataset_cardinality(repeat->base.input) == 0)) {
        return iterator_end(error);
    }
    cadre_iterator_release(iterator->base.input);
    iterator->base.input = NULL;
    iterator->pass++;
    return CADRE_OK;
}

static cadre_status repeat_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct repeat_iterator *iterator = (struct repeat_iterator *)self;
    for (;;) {
        CADRE_TRY(need_pass(iterator, error));
        cadre_status status = iterator_next(self->input, ret_element, ids, error);
        if (status != CADRE_OUT_OF_RANGE) {
            iterator->pass_gave = true;
            return status;
        }
        CADRE_TRY(end_pass(iterator, error));
    }
}

static cadre_status repeat_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct repeat_iterator *iterator = (struct repeat_iterator *)self;
    for (;;) {
        CADRE_TRY(need_pass(iterator, error));
        cadre_status status =
            iterator_next_rows(self->input, wanted, ret_element, ret_count, ids, error);
        if (status != CADRE_OUT_OF_RANGE) {
            iterator->pass_gave = true;
            return status;
        }
        CADRE_TRY(end_pass(iterator, error));
    }
}

static cadre_status repeat_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct repeat_iterator *iterator = (struct repeat_iterator *)self;
    while (*ret_skipped < count) {
        uint64_t wanted = count - *ret_skipped;
        uint64_t skipped = 0;
        cadre_status status = need_pass(iterator, error);
        status = status == CADRE_OK ? iterator_skip(self->input, wanted, &skipped, error) : status;
        *ret_skipped += skipped;
        iterator->pass_gave = iterator->pass_gave || skipped > 0;
        if (status == CADRE_OK && skipped < wanted) {
            status = end_pass(iterator, error);
        }
        if (status != CADRE_OK) {
            return status == CADRE_OUT_OF_RANGE ? CADRE_OK : status;
        }
    }
    return CADRE_OK;
}

static cadre_status repeat_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct repeat_iterator *iterator = (const struct repeat_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->pass, error));
    CADRE_TRY(iterator_state_write_number(writer, self->input != NULL, error));
    if (self->input == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_write_number(writer, iterator->pass_gave, error));
    return iterator_save(self->input, writer, error);
}

static cadre_status repeat_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct repeat_iterator *iterator = (struct repeat_iterator *)self;
    int64_t count = ((const struct repeat_dataset *)self->data)->count;
    uint64_t in_pass = 0;
    uint64_t gave = 0;
    CADRE_TRY(iterator_state_read_number(reader, &iterator->pass, error));
    CADRE_TRY(iterator_state_read_number(reader, &in_pass, error));
    if (count != CADRE_REPEAT_FOREVER && iterator->pass > (uint64_t)count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "repeat: the saved position is in pass %" PRIu64 " of %" PRId64, iterator->pass, count);
    }
    if (in_pass == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(iterator_state_read_number(reader, &gave, error));
    CADRE_TRY(begin_pass(iterator, error));
    iterator->pass_gave = gave != 0;
    return iterator_restore(self->input, reader, error);
}

static const struct iterator_ops repeat_iterator_ops = {
    .next = repeat_next,
    .next_rows = repeat_next_rows,
    .skip = repeat_skip,
    .save = repeat_save,
    .restore = repeat_restore,
    .saves_input = true,
};

static cadre_status repeat_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct repeat_iterator), &repeat_iterator_ops, self, pass, NULL,
        ret_iterator, error);
}

static int64_t repeat_cardinality(const cadre_dataset *self)
{
    int64_t count = ((const struct repeat_dataset *)self)->count;
    int64_t elements = dataset_cardinality(self->input);
    if (count == 0 || elements == 0) {
        return 0;
    }
    if (count == CADRE_REPEAT_FOREVER) {
        return CADRE_CARDINALITY_INFINITE;
    }
    if (elements > 0 && __builtin_mul_overflow(elements, count, &elements)) {
        return CADRE_CARDINALITY_INFINITE; /* no program reads so far */
    }
    return elements;
}

static cadre_dataset *repeat_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_repeat(inputs[0], ((const struct repeat_dataset *)self)->count);
}

static void repeat_describe(const cadre_dataset *self, struct description *text)
{
    int64_t count = ((const struct repeat_dataset *)self)->count;
    if (count == CADRE_REPEAT_FOREVER) {
        description_add(text, "forever");
    } else {
        description_add(text, "%" PRId64 " times", count);
    }
}

static const struct dataset_ops repeat_ops = {
    .name = "repeat",
    .rebuild = repeat_rebuild,
    .describe = repeat_describe,
    .cardinality = repeat_cardinality,
    .locate = repeat_locate,
    .iterate = repeat_iterate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_repeat(cadre_dataset *data, int64_t count)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (count < CADRE_REPEAT_FOREVER) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "repeat: count %" PRId64 "; give 0 or more, or CADRE_REPEAT_FOREVER", count);
        return dataset_failed(data, &error);
    }
    int64_t elements = dataset_cardinality(data);
    if (elements > 0 && count > 0 && __builtin_mul_overflow(elements, count, &elements)) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "repeat: %" PRId64 " times %" PRId64
            " elements are more than can be counted; use CADRE_REPEAT_FOREVER",
            count, dataset_cardinality(data));
        return dataset_failed(data, &error);
    }
    struct repeat_dataset *repeat = dataset_new(sizeof *repeat, &repeat_ops, data);
    if (repeat == NULL) {
        return NULL;
    }
    repeat->count = count;
    repeat->base.repeats = repeat->base.repeats || count < 0 || count > 1;
    return &repeat->base;
}
