/* SPDX-License-Identifier: Apache-2.0
 * Reading a dataset in order: by index where it is indexable, else through the nodes' own
 * iterators. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/input/node/element_stack.h"

#define POSITIONS_AT_ONCE 256

struct index_iterator {
    cadre_iterator base;
    struct element_position next;
};

cadre_status iterator_end(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_OUT_OF_RANGE, "the dataset has no more elements");
}

static uint64_t index_left(const struct index_iterator *iterator, uint64_t wanted)
{
    int64_t cardinality = dataset_cardinality(iterator->base.data);
    if (cardinality < 0) {
        return wanted;
    }
    uint64_t left = (uint64_t)cardinality - iterator->next.index;
    return left < wanted ? left : wanted;
}

static cadre_status index_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct index_iterator *iterator = (struct index_iterator *)self;
    if (index_left(iterator, 1) == 0) {
        return iterator_end(error);
    }
    CADRE_TRY(dataset_at(self->data, iterator->next, ret_element, ids, error));
    iterator->next.index++;
    return CADRE_OK;
}

static cadre_status index_next_rows(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct index_iterator *iterator = (struct index_iterator *)self;
    struct element_position positions[POSITIONS_AT_ONCE];
    size_t count =
        (size_t)index_left(iterator, wanted < POSITIONS_AT_ONCE ? wanted : POSITIONS_AT_ONCE);
    if (count == 0) {
        return iterator_end(error);
    }
    for (size_t i = 0; i < count; i++) {
        positions[i] = (struct element_position){iterator->next.index + i, iterator->next.epoch};
    }
    CADRE_TRY(dataset_gather(self->data, positions, count, ret_element, ids, error));
    iterator->next.index += count;
    *ret_count = count;
    return CADRE_OK;
}

static cadre_status index_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct index_iterator *iterator = (struct index_iterator *)self;
    (void)error;
    *ret_skipped = index_left(iterator, count);
    iterator->next.index += *ret_skipped;
    return CADRE_OK;
}

static cadre_status index_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    return iterator_state_write_number(writer, ((struct index_iterator *)self)->next.index, error);
}

static cadre_status index_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct index_iterator *iterator = (struct index_iterator *)self;
    uint64_t index = 0;
    CADRE_TRY(iterator_state_read_number(reader, &index, error));
    if (index > index_left(iterator, index)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position is element %" PRIu64 " of a dataset that has %" PRId64, index,
            dataset_cardinality(self->data));
    }
    iterator->next.index = index;
    return CADRE_OK;
}

static const struct iterator_ops index_ops = {
    .next = index_next,
    .next_rows = index_next_rows,
    .skip = index_skip,
    .save = index_save,
    .restore = index_restore,
};

cadre_status iterator_new(size_t bytes, const struct iterator_ops *ops, cadre_dataset *self,
    const struct pass *pass, const struct pass *input_pass, cadre_iterator **ret_iterator,
    struct cadre_error *error)
{
    CADRE_ASSERT(bytes >= sizeof(cadre_iterator));
    *ret_iterator = NULL;
    cadre_iterator *iterator = calloc(1, bytes);
    if (iterator == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an iterator");
    }
    iterator->ops = ops;
    iterator->data = cadre_dataset_retain(self);
    iterator->pass = *pass;
    if (input_pass != NULL) {
        cadre_status status = dataset_iterate(self->input, input_pass, &iterator->input, error);
        if (status != CADRE_OK) {
            /* Not started: its own destroy has nothing to see yet. */
            cadre_dataset_release(iterator->data);
            free(iterator);
            return status;
        }
    }
    *ret_iterator = iterator;
    return CADRE_OK;
}

/* Whether reading by index costs nothing before the first element, and loses nothing. */
static bool reads_by_index(const cadre_dataset *data)
{
    if (data->works_ahead && data->ops->iterate != NULL) {
        return false;
    }
    return data->indexable &&
           (data->by_index_only || dataset_cardinality(data) != CADRE_CARDINALITY_UNKNOWN);
}

cadre_status dataset_iterate(cadre_dataset *data, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    *ret_iterator = NULL;
    CADRE_TRY(dataset_status(data, error));
    if (reads_by_index(data)) {
        CADRE_TRY(dataset_prepare(data, error));
        CADRE_TRY(iterator_new(
            sizeof(struct index_iterator), &index_ops, data, pass, NULL, ret_iterator, error));
        ((struct index_iterator *)*ret_iterator)->next =
            (struct element_position){.epoch = pass->epoch};
        return CADRE_OK;
    }
    while (data->ops->iterate == NULL) {
        CADRE_ASSERT(data->ops->keeps_elements && data->input != NULL);
        data = data->input;
        if (reads_by_index(data)) {
            return dataset_iterate(data, pass, ret_iterator, error);
        }
    }
    return data->ops->iterate(data, pass, ret_iterator, error);
}

/* What did not become an element has no ids: a caller of several goes on with those that
 * did. */
static void drop_ids(struct id_list *ids, size_t before)
{
    if (ids != NULL) {
        ids->count = before;
    }
}

cadre_status iterator_next(cadre_iterator *iterator, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    if (iterator->stopped.code == CADRE_OK) {
        struct cadre_error own = {0};
        const size_t ids_before = ids != NULL ? ids->count : 0;
        cadre_status status = iterator->ops->next(iterator, ret_element, ids, &own);
        if (status == CADRE_OK) {
            return CADRE_OK;
        }
        CADRE_ASSERT(own.code == status);
        iterator->stopped = own;
        drop_ids(ids, ids_before);
    }
    if (error != NULL) {
        *error = iterator->stopped;
    }
    return iterator->stopped.code;
}

/* Keeps the end or the failure, to be given again. */
static cadre_status iterator_stop(
    cadre_iterator *iterator, const struct cadre_error *why, struct cadre_error *error)
{
    iterator->stopped = *why;
    if (error != NULL) {
        *error = *why;
    }
    return why->code;
}

/* The generic way: one element after the other, stacked. */
static cadre_status next_each(cadre_iterator *iterator, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    CADRE_CLEANUP(element_stack_clear) struct element_stack rows = {0};
    while (rows.count < wanted) {
        cadre_element element = {0};
        cadre_status status = iterator_next(iterator, &element, ids, error);
        if (status == CADRE_OUT_OF_RANGE && rows.count > 0) {
            break;
        }
        CADRE_TRY(status);
        CADRE_TRY(element_stack_add(&rows, &element, error));
    }
    *ret_count = rows.count;
    return element_stack_finish(&rows, ret_element, error);
}

cadre_status iterator_next_rows(cadre_iterator *iterator, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    CADRE_ASSERT(wanted >= 1);
    *ret_element = (cadre_element){0};
    *ret_count = 0;
    if (iterator->stopped.code != CADRE_OK) {
        if (error != NULL) {
            *error = iterator->stopped;
        }
        return iterator->stopped.code;
    }
    struct cadre_error own = {0};
    const size_t ids_before = ids != NULL ? ids->count : 0;
    cadre_status status =
        iterator->ops->next_rows != NULL
            ? iterator->ops->next_rows(iterator, wanted, ret_element, ret_count, ids, &own)
            : next_each(iterator, wanted, ret_element, ret_count, ids, &own);
    CADRE_ASSERT(status == CADRE_OK || own.code == status); /* a short end is no failure */
    if (status != CADRE_OK) {
        drop_ids(ids, ids_before);
        return iterator_stop(iterator, &own, error);
    }
    return CADRE_OK;
}

cadre_status iterator_skip(
    cadre_iterator *iterator, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    *ret_skipped = 0;
    if (iterator->ops->skip != NULL && iterator->stopped.code == CADRE_OK) {
        struct cadre_error own = {0};
        cadre_status status = iterator->ops->skip(iterator, count, ret_skipped, &own);
        return status == CADRE_OK ? CADRE_OK : iterator_stop(iterator, &own, error);
    }
    while (*ret_skipped < count) {
        cadre_element passed = {0};
        cadre_status status = iterator_next(iterator, &passed, NULL, error);
        if (status == CADRE_OUT_OF_RANGE) {
            return CADRE_OK;
        }
        CADRE_TRY(status);
        cadre_element_release(&passed);
        ++*ret_skipped;
    }
    return CADRE_OK;
}

/* --- where it stands --- */

static cadre_status require_saves(const cadre_iterator *iterator, struct cadre_error *error)
{
    if (iterator->ops->save == NULL || iterator->ops->restore == NULL) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "%s cannot tell where it stands; it is read again from the start",
            iterator->data->ops->name);
    }
    return CADRE_OK;
}

cadre_status iterator_save(
    cadre_iterator *iterator, struct iterator_state_writer *writer, struct cadre_error *error)
{
    bool ended = iterator->stopped.code == CADRE_OUT_OF_RANGE;
    CADRE_TRY(require_saves(iterator, error));
    if (iterator->stopped.code != CADRE_OK && !ended) {
        if (error != NULL) {
            *error = iterator->stopped; /* no position: it cannot go on from anywhere */
        }
        return iterator->stopped.code;
    }
    CADRE_TRY(iterator_state_write_bytes(
        writer, iterator->data->ops->name, strlen(iterator->data->ops->name), error));
    CADRE_TRY(iterator_state_write_number(writer, ended, error));
    CADRE_TRY(iterator->ops->save(iterator, writer, error));
    if (iterator->input != NULL && !iterator->ops->saves_input) {
        return iterator_save(iterator->input, writer, error);
    }
    return CADRE_OK;
}

cadre_status iterator_restore(
    cadre_iterator *iterator, struct iterator_state_reader *reader, struct cadre_error *error)
{
    const char *name = iterator->data->ops->name;
    const void *saved = NULL;
    size_t length = 0;
    uint64_t ended = 0;
    CADRE_TRY(require_saves(iterator, error));
    CADRE_TRY(iterator_state_read_bytes(reader, &saved, &length, error));
    if (length != strlen(name) || memcmp(saved, name, length) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position is of another pipeline: it has %.*s where this one has %s",
            (int)(length < 64 ? length : 64), (const char *)saved, name);
    }
    CADRE_TRY(iterator_state_read_number(reader, &ended, error));
    CADRE_TRY(iterator->ops->restore(iterator, reader, error));
    if (iterator->input != NULL && !iterator->ops->saves_input) {
        CADRE_TRY(iterator_restore(iterator->input, reader, error));
    }
    if (ended != 0) {
        iterator_end(&iterator->stopped);
    }
    return CADRE_OK;
}

cadre_status iterator_save_nothing(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    (void)self;
    (void)writer;
    (void)error;
    return CADRE_OK;
}

cadre_status iterator_restore_nothing(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    (void)self;
    (void)reader;
    (void)error;
    return CADRE_OK;
}

/* --- the public face --- */

cadre_status cadre_dataset_iterate(
    cadre_dataset *data, uint64_t epoch, cadre_iterator **ret_iterator)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_iterator, __func__, "ret_iterator", &error);
    if (status == CADRE_OK) {
        status = dataset_iterate(data, &(struct pass){.epoch = epoch}, ret_iterator, &error);
    }
    if (status == CADRE_OK) {
        (*ret_iterator)->names = dataset_names(data);
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

cadre_status cadre_iterator_next(cadre_iterator *iterator, cadre_element *ret_element)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_element, __func__, "ret_element", &error);
    if (status == CADRE_OK) {
        *ret_element = (cadre_element){0};
        status = argument_require(iterator, __func__, "iterator", &error);
    }
    if (status == CADRE_OK) {
        status = iterator_next(iterator, ret_element, NULL, &error);
        ret_element->names = status == CADRE_OK ? iterator->names : NULL;
    }
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

void cadre_iterator_release(cadre_iterator *iterator)
{
    while (iterator != NULL) {
        cadre_iterator *input = iterator->input;
        if (iterator->ops->destroy != NULL) {
            iterator->ops->destroy(iterator);
        }
        cadre_dataset_release(iterator->data);
        free(iterator);
        iterator = input;
    }
}
