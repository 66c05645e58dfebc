/* SPDX-License-Identifier: Apache-2.0
 * The transformation that reads several of the datasets that the program's function makes, by
 * turns: a ring of open ones, a block of elements of each. One that has ended leaves its place in
 * the ring empty, and the turn goes on to the next; when it comes to the empty place again, the
 * next input element takes it. (The order of
 * tensorflow/core/kernels/data/interleave_dataset_op.cc.) */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/input/nested/nested_cursor.h"
#include "worker/library/input/node/thread_pool.h"

#define CYCLE_DEFAULT 16

struct interleave_iterator {
    cadre_iterator base;
    struct nested_cursor *ring; /* places that were used; all behind are empty */
    uint64_t used;
    uint64_t capacity;
    uint64_t open;   /* places that are not empty */
    uint64_t index;  /* whose turn it is */
    uint64_t given;  /* elements in this turn */
    uint64_t number; /* of the next input element */
    bool input_ended;
    struct nested_kind kind;
};

static const struct nested_dataset *nested_of(const cadre_iterator *self)
{
    return (const struct nested_dataset *)self->data;
}

static void next_turn(struct interleave_iterator *iterator)
{
    iterator->given = 0;
    iterator->index++;
    if (iterator->index >= nested_of(&iterator->base)->settings.cycle ||
        (iterator->input_ended && iterator->index >= iterator->used)) {
        iterator->index = 0;
    }
}

/* The place whose turn it is; it grows into the ring. NULL: no memory. */
static struct nested_cursor *position_at_turn(struct interleave_iterator *iterator)
{
    if (iterator->index == iterator->capacity) {
        uint64_t capacity = iterator->capacity == 0 ? 4 : 2 * iterator->capacity;
        struct nested_cursor *ring =
            realloc(iterator->ring, (size_t)capacity * sizeof iterator->ring[0]);
        if (ring == NULL) {
            return NULL;
        }
        memset(
            ring + iterator->capacity, 0, (size_t)(capacity - iterator->capacity) * sizeof ring[0]);
        iterator->ring = ring;
        iterator->capacity = capacity;
    }
    if (iterator->index == iterator->used) {
        iterator->used++;
    }
    return &iterator->ring[iterator->index];
}

/* Finds the place that gives the next element: opens what must be opened. OUT_OF_RANGE when no
 * place has anything and the input has ended. */
static cadre_status find_open(struct interleave_iterator *iterator,
    struct nested_cursor **ret_cursor, struct cadre_error *error)
{
    cadre_iterator *self = &iterator->base;
    for (;;) {
        struct nested_cursor *cursor = position_at_turn(iterator);
        if (cursor == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "interleave: no memory for a cycle of more than %" PRIu64 " datasets",
                iterator->capacity);
        }
        *ret_cursor = cursor;
        if (cursor->element.count > 0) {
            return CADRE_OK;
        }
        if (iterator->input_ended) {
            if (iterator->open == 0) {
                return iterator_end(error);
            }
            next_turn(iterator);
            continue;
        }
        struct cadre_error own = {0};
        cadre_status status = nested_cursor_begin(cursor, self->input, &iterator->number, &own);
        if (status == CADRE_OK) {
            iterator->open++;
            return nested_cursor_open(cursor, nested_of(self), &self->pass, error);
        }
        if (status != CADRE_OUT_OF_RANGE) {
            *error = own;
            return status;
        }
        iterator->input_ended = true;
    }
}

/* The dataset at its turn has ended. */
static void close_at_turn(struct interleave_iterator *iterator)
{
    nested_cursor_clear(&iterator->ring[iterator->index]);
    iterator->open--;
    next_turn(iterator);
}

static void count_given(struct interleave_iterator *iterator, uint64_t count)
{
    iterator->given += count;
    if (iterator->given == nested_of(&iterator->base)->settings.block) {
        next_turn(iterator);
    }
}

static cadre_status interleave_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct interleave_iterator *iterator = (struct interleave_iterator *)self;
    for (;;) {
        struct nested_cursor *cursor = NULL;
        struct cadre_error own = {0};
        CADRE_TRY(find_open(iterator, &cursor, error));
        cadre_status status = nested_cursor_next(cursor, nested_of(self), ret_element, ids, &own);
        if (status == CADRE_OK) {
            status = nested_cursor_check(
                cursor, nested_of(self), &iterator->kind, ret_element, false, &own);
        }
        if (status == CADRE_OK) {
            count_given(iterator, 1);
            return CADRE_OK;
        }
        cadre_element_release(ret_element);
        if (status != CADRE_OUT_OF_RANGE) {
            *error = own;
            return status;
        }
        close_at_turn(iterator);
    }
}

static cadre_status interleave_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct interleave_iterator *iterator = (struct interleave_iterator *)self;
    const uint64_t block = nested_of(self)->settings.block;
    while (*ret_skipped < count) {
        struct nested_cursor *cursor = NULL;
        struct cadre_error own = {0};
        uint64_t passed = 0;
        cadre_status status = find_open(iterator, &cursor, &own);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        uint64_t piece = block - iterator->given;
        piece = count - *ret_skipped < piece ? count - *ret_skipped : piece;
        if (status == CADRE_OK) {
            status = nested_cursor_skip(cursor, nested_of(self), piece, &passed, &own);
        }
        if (status != CADRE_OK) {
            *error = own;
            return status;
        }
        *ret_skipped += passed;
        if (passed < piece) {
            close_at_turn(iterator);
        } else {
            count_given(iterator, passed);
        }
    }
    return CADRE_OK;
}

static cadre_status interleave_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct interleave_iterator *iterator = (const struct interleave_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->number, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->input_ended, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->index, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->given, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->used, error));
    for (uint64_t i = 0; i < iterator->used; i++) {
        const struct nested_cursor *cursor = &iterator->ring[i];
        CADRE_TRY(nested_cursor_save(cursor, cursor->ordinal, true, writer, error));
    }
    return iterator_save(self->input, writer, error);
}

static cadre_status interleave_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct interleave_iterator *iterator = (struct interleave_iterator *)self;
    const struct nested_settings *settings = &nested_of(self)->settings;
    uint64_t ended = 0;
    uint64_t index = 0;
    uint64_t used = 0;
    CADRE_TRY(iterator_state_read_number(reader, &iterator->number, error));
    CADRE_TRY(iterator_state_read_number(reader, &ended, error));
    CADRE_TRY(iterator_state_read_number(reader, &index, error));
    CADRE_TRY(iterator_state_read_number(reader, &iterator->given, error));
    CADRE_TRY(iterator_state_read_number(reader, &used, error));
    if (used > settings->cycle || index >= settings->cycle || index > used ||
        iterator->given >= settings->block || ended > 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "interleave: the saved position is element %" PRIu64 " of dataset %" PRIu64
            " of a cycle of %" PRIu64 "; this one has cycles of %" PRIu64 " and blocks of %" PRIu64,
            iterator->given, index, used, settings->cycle, settings->block);
    }
    iterator->input_ended = ended != 0;
    for (iterator->index = 0; iterator->index < used; iterator->index++) {
        struct nested_cursor *cursor = position_at_turn(iterator);
        if (cursor == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "interleave: no memory for a cycle of %" PRIu64 " datasets", used);
        }
        CADRE_TRY(nested_cursor_restore(cursor, nested_of(self), &self->pass, true, reader, error));
        iterator->open += cursor->element.count > 0 ? 1 : 0;
    }
    iterator->index = index;
    return iterator_restore(self->input, reader, error);
}

static void interleave_destroy(cadre_iterator *self)
{
    struct interleave_iterator *iterator = (struct interleave_iterator *)self;
    for (uint64_t i = 0; i < iterator->used; i++) {
        nested_cursor_clear(&iterator->ring[i]);
    }
    free(iterator->ring);
}

static const struct iterator_ops interleave_iterator_ops = {
    .next = interleave_next,
    .skip = interleave_skip,
    .save = interleave_save,
    .restore = interleave_restore,
    .saves_input = true,
    .destroy = interleave_destroy,
};

static cadre_status interleave_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    if (((const struct nested_dataset *)self)->settings.threads > 0) {
        return interleave_parallel_iterate(self, pass, ret_iterator, error);
    }
    return iterator_new(sizeof(struct interleave_iterator), &interleave_iterator_ops, self, pass,
        pass, ret_iterator, error);
}

static void interleave_describe(const cadre_dataset *self, struct description *text)
{
    const struct nested_settings *settings = &((const struct nested_dataset *)self)->settings;
    description_add(text, "cycle of %" PRIu64 ", blocks of %" PRIu64 "%s", settings->cycle,
        settings->block, settings->unordered ? ", unordered" : "");
}

static const struct dataset_ops interleave_ops = {
    .name = "interleave",
    .destroy = nested_destroy,
    .rebuild = nested_rebuild,
    .describe = interleave_describe,
    .spec = nested_spec,
    .cardinality = nested_cardinality,
    .samples = nested_samples,
    .iterate = interleave_iterate,
    .opens_names = nested_opens_names,
};

static cadre_status check_options(
    const cadre_interleave_options *options, uint32_t *ret_threads, struct cadre_error *error)
{
    if (options->cycle_length < 0 || options->block_length < 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "interleave: a cycle of %" PRId64 " datasets and blocks of %" PRId64
            " elements; both are at least 1, or 0 for %d and 1",
            options->cycle_length, options->block_length, CYCLE_DEFAULT);
    }
    *ret_threads = 0;
    if (options->parallel == 0) {
        return CADRE_OK;
    }
    return thread_pool_parallel(options->parallel, "interleave", ret_threads, error);
}

cadre_dataset *cadre_dataset_interleave(cadre_dataset *data, cadre_dataset_function function,
    void *user, const cadre_interleave_options *options)
{
    const cadre_interleave_options defaults = {0};
    struct cadre_error error = {0};
    uint32_t threads = 0;
    if (!dataset_usable(data)) {
        return data;
    }
    if (function == NULL) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "interleave: the function is NULL");
        return dataset_failed(data, &error);
    }
    options = options != NULL ? options : &defaults;
    if (check_options(options, &threads, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    const struct nested_settings settings = {
        .function = function,
        .user = user,
        .cycle = options->cycle_length > 0 ? (uint64_t)options->cycle_length : CYCLE_DEFAULT,
        .block = options->block_length > 0 ? (uint64_t)options->block_length : 1,
        .threads = threads,
        .unordered = options->unordered,
    };
    return nested_new(&interleave_ops, data, &settings);
}
