/* SPDX-License-Identifier: Apache-2.0
 * Owns the iterator with which a worker reads its elements by number. Called by
 * batch_reader.c and input_rule_pipelines.c. */
#include "worker/library/input/distribution/element_stream.h"

#include <stdlib.h>
#include <string.h>

/* Elements that are passed over between two checks for a cancellation. */
#define SKIPPED_AT_ONCE 1024

static void drop_ahead(struct element_stream *stream)
{
    cadre_element_release(&stream->ahead);
    stream->ahead_ids.count = 0;
    stream->held = false;
}

void element_stream_finish(struct element_stream *stream)
{
    drop_ahead(stream);
    id_list_clear(&stream->ahead_ids);
    cadre_iterator_release(stream->iterator);
    free(stream->bytes);
    *stream = (struct element_stream){0};
}

static struct pass pass_of(struct element_position position)
{
    return (struct pass){.epoch = position.epoch, .ordered = true};
}

/* An iterator at the position `bytes` say. */
static cadre_status open_at(const struct element_stream *stream, struct element_position position,
    const void *bytes, size_t count, cadre_iterator **ret_iterator, struct cadre_error *error)
{
    const struct pass pass = pass_of(position);
    cadre_iterator *iterator = NULL;
    struct iterator_state_reader reader = {.bytes = bytes, .count = count};
    CADRE_TRY(dataset_iterate(stream->data, &pass, &iterator, error));
    cadre_status status = iterator_restore(iterator, &reader, error);
    if (status == CADRE_OK && reader.at != reader.count) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position of the pipeline is %zu bytes, and %zu are there", reader.at,
            reader.count);
    }
    if (status != CADRE_OK) {
        cadre_iterator_release(iterator);
        return status;
    }
    *ret_iterator = iterator;
    return CADRE_OK;
}

static bool passes_by(struct element_position from, struct element_position to)
{
    return from.epoch == to.epoch && from.index <= to.index;
}

/* The iterator stands at `place` or before it, in its epoch. */
static cadre_status element_stream_begin(
    struct element_stream *stream, struct element_position position, struct cadre_error *error)
{
    bool stands = stream->iterator != NULL && passes_by(stream->next, position) &&
                  (stream->ended || stream->iterator->stopped.code == CADRE_OK);
    bool restores = stream->bytes != NULL && passes_by(stream->position, position);
    if (stands && !(restores && stream->next.index < stream->position.index)) {
        return CADRE_OK;
    }
    drop_ahead(stream);
    cadre_iterator_release(stream->iterator);
    stream->iterator = NULL;
    stream->ended = false;
    stream->passes++;
    if (restores) {
        stream->next = stream->position;
        CADRE_TRY(
            open_at(stream, position, stream->bytes, stream->byte_count, &stream->iterator, error));
        stream->ended = stream->iterator->stopped.code == CADRE_OUT_OF_RANGE;
        return CADRE_OK;
    }
    const struct pass pass = pass_of(position);
    stream->next = (struct element_position){.epoch = position.epoch};
    return dataset_iterate(stream->data, &pass, &stream->iterator, error);
}

static cadre_status pass_over(
    struct element_stream *stream, uint64_t count, struct cadre_error *error)
{
    struct replay *replay = stream->replay;
    const uint64_t from = stream->next.index;
    cadre_status status = CADRE_OK;
    if (replay != NULL) {
        atomic_store(&replay->done, 0);
        atomic_store(&replay->wanted, count);
    }
    while (status == CADRE_OK && !stream->ended && stream->next.index - from < count) {
        uint64_t left = count - (stream->next.index - from);
        uint64_t wanted = left < SKIPPED_AT_ONCE ? left : SKIPPED_AT_ONCE;
        uint64_t skipped = 0;
        if (replay != NULL && atomic_load(&replay->cancelled)) {
            status = cadre_error_set(error, CADRE_CANCELLED, "reading was cancelled");
            break;
        }
        status = iterator_skip(stream->iterator, wanted, &skipped, error);
        stream->next.index += skipped;
        stream->ended = status == CADRE_OK && skipped < wanted;
        if (replay != NULL) {
            atomic_store(&replay->done, stream->next.index - from);
        }
    }
    if (replay != NULL) {
        atomic_store(&replay->wanted, 0);
    }
    return status;
}

static cadre_status take_read_ahead(struct element_stream *stream, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    CADRE_TRY(id_list_add_range(ids, &stream->ahead_ids, 0, stream->ahead_ids.count, error));
    *ret_element = stream->ahead;
    stream->ahead = (cadre_element){0};
    drop_ahead(stream);
    stream->next.index++;
    return CADRE_OK;
}

cadre_status element_stream_read(struct element_stream *stream, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    *ret_element = (cadre_element){0};
    CADRE_TRY(element_stream_begin(stream, position, error));
    if (stream->held && stream->next.index == position.index) {
        return take_read_ahead(stream, ret_element, ids, error);
    }
    if (stream->held) {
        drop_ahead(stream);
        stream->next.index++;
    }
    if (!stream->ended && stream->next.index < position.index) {
        CADRE_TRY(pass_over(stream, position.index - stream->next.index, error));
    }
    if (stream->ended) {
        return iterator_end(error);
    }
    cadre_status status = iterator_next(stream->iterator, ret_element, ids, error);
    stream->ended = status == CADRE_OUT_OF_RANGE;
    stream->next.index += status == CADRE_OK ? 1 : 0;
    return status;
}

void element_stream_peek(struct element_stream *stream)
{
    struct cadre_error error;
    if (stream->iterator == NULL || stream->ended || stream->held ||
        stream->iterator->stopped.code != CADRE_OK) {
        return;
    }
    cadre_status status =
        iterator_next(stream->iterator, &stream->ahead, &stream->ahead_ids, &error);
    stream->held = status == CADRE_OK;
    stream->ended = status == CADRE_OUT_OF_RANGE;
    if (status != CADRE_OK) {
        drop_ahead(stream);
    }
}

bool element_stream_wants_states(const struct element_stream *stream)
{
    const cadre_dataset *data = stream->data;
    return !data->indexable ||
           (!data->by_index_only && dataset_cardinality(data) == CADRE_CARDINALITY_UNKNOWN);
}

cadre_status element_stream_save(const struct element_stream *stream,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    if (stream->iterator == NULL) {
        return cadre_error_set(
            error, CADRE_FAILED_PRECONDITION, "nothing was read of the pipeline yet");
    }
    if (stream->held) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the pipeline is one element ahead of what was given");
    }
    return iterator_save(stream->iterator, writer, error);
}

cadre_status element_stream_restore(struct element_stream *stream, struct element_position position,
    const void *bytes, size_t count, struct cadre_error *error)
{
    cadre_iterator *iterator = NULL;
    uint8_t *own = malloc(count > 0 ? count : 1);
    if (own == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a position of %zu bytes", count);
    }
    memcpy(own, bytes, count);
    cadre_status status = open_at(stream, position, own, count, &iterator, error);
    if (status != CADRE_OK) {
        free(own);
        return status;
    }
    drop_ahead(stream);
    free(stream->bytes);
    cadre_iterator_release(stream->iterator);
    stream->bytes = own;
    stream->byte_count = count;
    stream->position = position;
    stream->iterator = iterator;
    stream->next = position;
    stream->ended = iterator->stopped.code == CADRE_OUT_OF_RANGE;
    stream->passes++;
    return CADRE_OK;
}
