/* SPDX-License-Identifier: Apache-2.0
 * Saving and restoring where a parallel interleave stands; see interleave_parallel.h. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/input/nested/interleave_parallel.h"

static cadre_status save_ring(const struct interleave_parallel_iterator *iterator,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct nested_cursor none = {.number = 0};
    CADRE_TRY(iterator_state_write_number(writer, iterator->number, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->index, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->given, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->used, error));
    for (uint64_t i = 0; i < iterator->used; i++) {
        const struct inner_reader *ahead = iterator->ring[i];
        CADRE_TRY(nested_cursor_save(ahead != NULL ? &ahead->cursor : &none,
            ahead != NULL ? ahead->consumed : 0, false, writer, error));
    }
    CADRE_TRY(iterator_state_write_number(writer, iterator->future_count, error));
    for (const struct inner_reader *ahead = iterator->futures; ahead != NULL; ahead = ahead->next) {
        CADRE_TRY(nested_cursor_save(&ahead->cursor, ahead->consumed, false, writer, error));
    }
    return CADRE_OK;
}

cadre_status interleave_parallel_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    struct interleave_parallel_iterator *iterator = (struct interleave_parallel_iterator *)self;
    pthread_mutex_lock(&iterator->lock);
    iterator->input_held = true;
    while (iterator->reading_input) {
        pthread_cond_wait(&iterator->ready, &iterator->lock);
    }
    cadre_status status = save_ring(iterator, writer, error);
    if (status == CADRE_OK) {
        status = iterator_save(self->input, writer, error);
    }
    iterator->input_held = false;
    pthread_cond_broadcast(&iterator->work);
    pthread_mutex_unlock(&iterator->lock);
    return status;
}

/* NULL in *ret_ahead: an empty place was saved. */
static cadre_status restore_inner_reader(struct interleave_parallel_iterator *iterator,
    struct iterator_state_reader *reader, struct inner_reader **ret_ahead,
    struct cadre_error *error)
{
    *ret_ahead = NULL;
    struct inner_reader *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "interleave: no memory to read a dataset ahead");
    }
    cadre_status status = nested_cursor_restore(
        &ahead->cursor, interleave_node(iterator), &iterator->base.pass, false, reader, error);
    ahead->consumed = ahead->cursor.ordinal;
    if (status != CADRE_OK || ahead->cursor.element.count == 0) {
        inner_reader_free(ahead);
        return status;
    }
    *ret_ahead = ahead;
    return CADRE_OK;
}

static cadre_status restore_ring(struct interleave_parallel_iterator *iterator,
    struct iterator_state_reader *reader, struct cadre_error *error)
{
    const struct nested_settings *settings = &interleave_node(iterator)->settings;
    uint64_t index = 0;
    uint64_t used = 0;
    uint64_t futures = 0;
    CADRE_TRY(iterator_state_read_number(reader, &iterator->number, error));
    CADRE_TRY(iterator_state_read_number(reader, &index, error));
    CADRE_TRY(iterator_state_read_number(reader, &iterator->given, error));
    CADRE_TRY(iterator_state_read_number(reader, &used, error));
    if (used > settings->cycle || index >= settings->cycle || index > used ||
        iterator->given >= settings->block) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "interleave: the saved position is element %" PRIu64 " of dataset %" PRIu64
            " of a cycle of %" PRIu64 "; this one has cycles of %" PRIu64 " and blocks of %" PRIu64,
            iterator->given, index, used, settings->cycle, settings->block);
    }
    for (iterator->index = 0; iterator->index < used; iterator->index++) {
        CADRE_TRY(interleave_grow_ring(iterator, error));
        struct inner_reader **position = &iterator->ring[iterator->index];
        CADRE_TRY(restore_inner_reader(iterator, reader, position, error));
        iterator->open += *position != NULL ? 1 : 0;
    }
    iterator->index = index;
    CADRE_TRY(iterator_state_read_number(reader, &futures, error));
    for (uint64_t i = 0; i < futures; i++) {
        struct inner_reader *ahead = NULL;
        CADRE_TRY(restore_inner_reader(iterator, reader, &ahead, error));
        if (ahead == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "interleave: the saved position has no input element %" PRIu64 " of %" PRIu64
                " that waited",
                i, futures);
        }
        interleave_add_future(iterator, ahead);
    }
    return CADRE_OK;
}

cadre_status interleave_parallel_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct interleave_parallel_iterator *iterator = (struct interleave_parallel_iterator *)self;
    CADRE_ASSERT(iterator->thread_count == 0);
    CADRE_TRY(restore_ring(iterator, reader, error));
    return iterator_restore(self->input, reader, error);
}
