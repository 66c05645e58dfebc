/* SPDX-License-Identifier: Apache-2.0
 * Where an iterator that reads ahead stands: where its input stood before the first element that
 * was not given; or, where the input cannot tell that in few bytes, the elements at hand. */
#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/input/read_ahead/read_ahead_slots.h"
#include "worker/library/input/node/user_call.h"

enum saved_as {
    SAVED_POSITION, /* where the input stood before the first slot, and rows of it that were given
                     */
    SAVED_SLOTS     /* the slots, then whether the input has ended, else where it stands */
};

/* With the lock held. */
static cadre_status save_position(
    struct read_ahead *ahead, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct read_ahead_slot *slot = *read_ahead_slot_at(ahead, 0);
    CADRE_TRY(iterator_state_write_number(writer, SAVED_POSITION, error));
    CADRE_TRY(iterator_state_write_number(writer, slot->rows_given, error));
    return iterator_state_write_bytes(writer, slot->position.bytes, slot->position.count, error);
}

static cadre_status save_slot(const struct read_ahead_slot *slot,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    CADRE_TRY(iterator_state_write_number(writer, (uint64_t)slot->error.code, error));
    if (slot->error.code != CADRE_OK) {
        return iterator_state_write_bytes(
            writer, slot->error.text, strlen(slot->error.text), error);
    }
    cadre_element rest = {0};
    struct id_list ids = {0};
    size_t left = slot->rows - slot->rows_given;
    if (slot->rows_given > 0) {
        CADRE_TRY(read_ahead_slot_rows(slot, left, false, &rest, error));
    }
    cadre_status status = read_ahead_slot_ids(slot, slot->rows_given, left, &ids, error);
    status = status == CADRE_OK ? iterator_state_write_number(writer, left, error) : status;
    status = status == CADRE_OK ? iterator_state_write_element(
                                      writer, rest.count > 0 ? &rest : &slot->element, error)
                                : status;
    status = status == CADRE_OK ? iterator_state_write_ids(writer, &ids, error) : status;
    cadre_element_release(&rest);
    id_list_clear(&ids);
    return status;
}

/* With the lock held, and nothing at work. */
static cadre_status save_slots(
    struct read_ahead *ahead, struct iterator_state_writer *writer, struct cadre_error *error)
{
    if (ahead->no_memory.code != CADRE_OK) {
        if (error != NULL) {
            *error = ahead->no_memory; /* what was not read is no end */
        }
        return ahead->no_memory.code;
    }
    CADRE_TRY(iterator_state_write_number(writer, SAVED_SLOTS, error));
    CADRE_TRY(iterator_state_write_number(writer, ahead->count, error));
    for (uint64_t i = 0; i < ahead->count; i++) {
        CADRE_TRY(save_slot(*read_ahead_slot_at(ahead, i), writer, error));
    }
    CADRE_TRY(iterator_state_write_number(writer, ahead->input_ended, error));
    return ahead->input_ended ? CADRE_OK : iterator_save(ahead->base.input, writer, error);
}

static bool all_done(struct read_ahead *ahead)
{
    for (uint64_t i = 0; i < ahead->count; i++) {
        if (!(*read_ahead_slot_at(ahead, i))->done) {
            return false;
        }
    }
    return !ahead->reading;
}

cadre_status read_ahead_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    pthread_mutex_lock(&ahead->lock);
    while (ahead->count > 0 && !(*read_ahead_slot_at(ahead, 0))->read) {
        pthread_cond_wait(&ahead->done, &ahead->lock);
    }
    cadre_status status = CADRE_OK;
    if (ahead->count > 0 && (*read_ahead_slot_at(ahead, 0))->has_state && !ahead->rule.unordered) {
        status = save_position(ahead, writer, error);
    } else {
        ahead->paused = true;
        while (!all_done(ahead)) {
            pthread_cond_wait(&ahead->done, &ahead->lock);
        }
        status = save_slots(ahead, writer, error);
        ahead->paused = false;
        pthread_cond_broadcast(&ahead->work);
    }
    pthread_mutex_unlock(&ahead->lock);
    return status;
}

static cadre_status restore_position(
    struct read_ahead *ahead, struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t given = 0;
    uint64_t skipped = 0;
    const void *bytes = NULL;
    struct iterator_state_reader position = {0};
    CADRE_TRY(iterator_state_read_number(reader, &given, error));
    CADRE_TRY(iterator_state_read_bytes(reader, &bytes, &position.count, error));
    position.bytes = bytes;
    CADRE_TRY(iterator_restore(ahead->base.input, &position, error));
    return given == 0 ? CADRE_OK : iterator_skip(ahead->base.input, given, &skipped, error);
}

static cadre_status restore_failure(struct read_ahead_slot *slot, uint64_t code,
    struct iterator_state_reader *reader, struct cadre_error *error)
{
    const void *text = NULL;
    size_t bytes = 0;
    CADRE_TRY(iterator_state_read_bytes(reader, &text, &bytes, error));
    if (code > CADRE_UNAUTHENTICATED || code == CADRE_OUT_OF_RANGE || bytes > INT16_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the saved position of a pipeline holds a failure of code %" PRIu64
            ", which none has; it is damaged",
            code);
    }
    cadre_error_set(&slot->error, (cadre_status)code, "%.*s", (int)bytes, (const char *)text);
    return CADRE_OK;
}

/* It is an element of this dataset, or `rows` of them stacked. */
static cadre_status check_element(
    struct read_ahead *ahead, const struct read_ahead_slot *slot, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    CADRE_TRY(dataset_spec(ahead->base.data, &spec, error));
    for (uint32_t i = 0; slot->rows > 0 && i < spec.count; i++) {
        cadre_tensor_spec *tensor = &spec.tensors[i];
        if (tensor->rank == CADRE_RANK_MAX || slot->rows > INT64_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the saved position of a pipeline holds rows of what cannot be stacked");
        }
        memmove(tensor->dims + 1, tensor->dims, tensor->rank * sizeof tensor->dims[0]);
        tensor->dims[0] = (int64_t)slot->rows;
        tensor->rank++;
    }
    return user_call_check(&slot->element, &spec, "the saved position of a pipeline", error);
}

static cadre_status restore_slot(
    struct read_ahead *ahead, struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t code = 0;
    uint64_t rows = 0;
    CADRE_TRY(iterator_state_read_number(reader, &code, error));
    struct read_ahead_slot *slot = read_ahead_slot_claim(ahead);
    if (slot == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a saved element");
    }
    slot->read = true;
    slot->done = true;
    if (code != CADRE_OK) {
        ahead->input_ended = true;
        return restore_failure(slot, code, reader, error);
    }
    CADRE_TRY(iterator_state_read_number(reader, &rows, error));
    CADRE_TRY(iterator_state_read_element(reader, &slot->element, error));
    CADRE_TRY(iterator_state_read_ids(reader, &slot->ids, error));
    slot->rows = (size_t)rows;
    return check_element(ahead, slot, error);
}

cadre_status read_ahead_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    uint64_t as = 0;
    uint64_t count = 0;
    uint64_t ended = 0;
    CADRE_ASSERT(ahead->threads == NULL);
    CADRE_TRY(iterator_state_read_number(reader, &as, error));
    if (as == SAVED_POSITION) {
        return restore_position(ahead, reader, error);
    }
    CADRE_TRY(iterator_state_read_number(reader, &count, error));
    for (uint64_t i = 0; i < count; i++) {
        CADRE_TRY(restore_slot(ahead, reader, error));
    }
    CADRE_TRY(iterator_state_read_number(reader, &ended, error));
    ahead->input_ended = ahead->input_ended || ended != 0;
    return ended != 0 ? CADRE_OK : iterator_restore(ahead->base.input, reader, error);
}
