/* SPDX-License-Identifier: Apache-2.0
 * Where a shuffle with a buffer stands: its generator, what it holds, and what was read ahead.
 *
 *     by_rows, generator, input_ended, block_rows, held_count,
 *     of the held elements in pieces: how many, they (stacked if by_rows), their ids, how many each
 *     how many wait, they, their ids */
#include "common/base/cleanup.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/shuffle/shuffle_buffer.h"

#define PIECE_ROWS 256

/* --- saving --- */

static cadre_status write_ids(struct iterator_state_writer *writer, const struct row_slot slots[],
    size_t count, struct cadre_error *error)
{
    struct id_list ids = {0};
    struct id_list counts = {0};
    cadre_status status = row_slots_add_ids(slots, count, &ids, error);
    for (size_t i = 0; i < count && status == CADRE_OK; i++) {
        status = id_list_add(&counts, slots[i].ids != NULL ? slots[i].ids->count : 1, error);
    }
    if (status == CADRE_OK) {
        status = iterator_state_write_ids(writer, &ids, error);
    }
    if (status == CADRE_OK) {
        status = iterator_state_write_ids(writer, &counts, error);
    }
    id_list_clear(&ids);
    id_list_clear(&counts);
    return status;
}

static cadre_status write_held(const struct shuffle_buffer_iterator *iterator, size_t first,
    size_t count, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct row_slot *slots = iterator->held + first;
    CADRE_TRY(iterator_state_write_number(writer, count, error));
    if (iterator->by_rows) {
        cadre_element stacked = {0};
        CADRE_TRY(row_slots_stack(slots, count, &iterator->layout, &stacked, error));
        cadre_status status = iterator_state_write_element(writer, &stacked, error);
        cadre_element_release(&stacked);
        CADRE_TRY(status);
    } else {
        CADRE_TRY(iterator_state_write_element(
            writer, (const cadre_element *)(const void *)slots->memory, error));
    }
    return write_ids(writer, slots, count, error);
}

/* Rows [incoming_at, incoming_count) of what was read ahead. */
static cadre_status view_incoming(const struct shuffle_buffer_iterator *iterator,
    cadre_element *ret_rows, struct cadre_error *error)
{
    size_t first = iterator->incoming_at;
    size_t rows = iterator->incoming_count - first;
    for (uint32_t i = 0; i < iterator->incoming.count; i++) {
        cadre_tensor *tensor = iterator->incoming.tensors[i];
        if (iterator->by_rows) {
            cadre_status status = tensor_view_rows(
                tensor, (int64_t)first, (int64_t)rows, &ret_rows->tensors[i], error);
            if (status != CADRE_OK) {
                cadre_element_release(ret_rows);
                return status;
            }
        } else {
            ret_rows->tensors[i] = cadre_tensor_retain(tensor);
        }
        ret_rows->count = i + 1;
    }
    return CADRE_OK;
}

static cadre_status write_incoming(const struct shuffle_buffer_iterator *iterator,
    struct iterator_state_writer *writer, struct cadre_error *error)
{
    size_t first = iterator->incoming_at;
    size_t rows = iterator->incoming_count - first;
    CADRE_TRY(iterator_state_write_number(writer, rows, error));
    if (rows == 0) {
        return CADRE_OK;
    }
    struct id_list ids = iterator->incoming_ids; /* a part of it, not owned */
    bool each = ids.count == iterator->incoming_count;
    ids.ids = each ? ids.ids + first : ids.ids;
    ids.count = each ? rows : first == 0 ? ids.count : 0;
    cadre_element view = {0};
    CADRE_TRY(view_incoming(iterator, &view, error));
    cadre_status status = iterator_state_write_element(writer, &view, error);
    cadre_element_release(&view);
    CADRE_TRY(status);
    return iterator_state_write_ids(writer, &ids, error);
}

cadre_status shuffle_buffer_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error)
{
    const struct shuffle_buffer_iterator *iterator = (const struct shuffle_buffer_iterator *)self;
    CADRE_TRY(iterator_state_write_number(writer, iterator->by_rows, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->prng.state, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->input_ended, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->block_rows, error));
    CADRE_TRY(iterator_state_write_number(writer, iterator->held_count, error));
    for (uint64_t first = 0; first < iterator->held_count;) {
        uint64_t left = iterator->held_count - first;
        uint64_t limit = iterator->by_rows ? PIECE_ROWS : 1;
        uint64_t count = left < limit ? left : limit;
        CADRE_TRY(write_held(iterator, (size_t)first, (size_t)count, writer, error));
        first += count;
    }
    return write_incoming(iterator, writer, error);
}

/* --- going there --- */

static cadre_status shuffle_buffer_state_damaged(struct cadre_error *error, const char *what)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the saved position of a shuffle does not fit: %s; it is of another pipeline, or damaged",
        what);
}

/* What one piece of the held elements was saved as. */
struct piece {
    uint64_t count;
    cadre_element element;
    struct row_block block;
    struct id_list ids;
    struct id_list counts;
};

static void piece_clear(struct piece *piece)
{
    cadre_element_release(&piece->element);
    id_list_clear(&piece->ids);
    id_list_clear(&piece->counts);
}

static cadre_status read_piece(const struct shuffle_buffer_iterator *iterator, uint64_t limit,
    struct iterator_state_reader *reader, struct piece *piece, struct cadre_error *error)
{
    CADRE_TRY(iterator_state_read_number(reader, &piece->count, error));
    if (piece->count < 1 || piece->count > limit || (!iterator->by_rows && piece->count != 1)) {
        return shuffle_buffer_state_damaged(error, "the buffer holds another number of elements");
    }
    CADRE_TRY(iterator_state_read_element(reader, &piece->element, error));
    CADRE_TRY(iterator_state_read_ids(reader, &piece->ids, error));
    CADRE_TRY(iterator_state_read_ids(reader, &piece->counts, error));
    uint64_t total = 0;
    bool fits = piece->counts.count == piece->count;
    for (size_t i = 0; i < piece->counts.count && fits; i++) {
        fits = !__builtin_add_overflow(total, piece->counts.ids[i], &total);
    }
    if (!fits || total != piece->ids.count) {
        return shuffle_buffer_state_damaged(error, "its elements have other numbers of samples");
    }
    if (iterator->by_rows) {
        return row_block_init(
            &piece->block, &iterator->layout, &piece->element, (size_t)piece->count, error);
    }
    return CADRE_OK;
}

static cadre_status hold_piece(
    struct shuffle_buffer_iterator *iterator, struct piece *piece, struct cadre_error *error)
{
    size_t id = 0;
    for (size_t i = 0; i < piece->count; i++) {
        struct row_slot slot = {0};
        size_t ids = (size_t)piece->counts.ids[i];
        cadre_status status =
            iterator->by_rows
                ? row_slot_put(&slot, &iterator->layout, &piece->block, i, &iterator->memory, error)
                : shuffle_buffer_put_element(iterator, &slot, &piece->element, error);
        if (status == CADRE_OK && ids == 1) {
            slot.id = piece->ids.ids[id];
        } else if (status == CADRE_OK) {
            status = row_slot_set_ids(&slot, ids > 0 ? piece->ids.ids + id : NULL, ids, error);
        }
        if (status == CADRE_OK) {
            status = shuffle_buffer_add(iterator, &slot, error);
        }
        if (status != CADRE_OK) {
            shuffle_buffer_slot_clear(iterator, &slot);
            return status;
        }
        id += ids;
    }
    return CADRE_OK;
}

static cadre_status read_incoming(struct shuffle_buffer_iterator *iterator,
    struct iterator_state_reader *reader, struct cadre_error *error)
{
    uint64_t rows = 0;
    CADRE_TRY(iterator_state_read_number(reader, &rows, error));
    if (rows == 0) {
        return CADRE_OK;
    }
    if (!iterator->by_rows && rows != 1) {
        return shuffle_buffer_state_damaged(error, "several elements wait where one does");
    }
    CADRE_TRY(iterator_state_read_element(reader, &iterator->incoming, error));
    CADRE_TRY(iterator_state_read_ids(reader, &iterator->incoming_ids, error));
    if (iterator->by_rows) {
        CADRE_TRY(row_block_init(
            &iterator->block, &iterator->layout, &iterator->incoming, (size_t)rows, error));
    }
    iterator->incoming_count = (size_t)rows;
    return CADRE_OK;
}

cadre_status shuffle_buffer_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error)
{
    struct shuffle_buffer_iterator *iterator = (struct shuffle_buffer_iterator *)self;
    uint64_t size = (uint64_t)((const struct shuffle_buffer_dataset *)self->data)->buffer_size;
    uint64_t by_rows = 0;
    uint64_t ended = 0;
    uint64_t block_rows = 0;
    uint64_t held = 0;
    CADRE_TRY(iterator_state_read_number(reader, &by_rows, error));
    CADRE_TRY(iterator_state_read_number(reader, &iterator->prng.state, error));
    CADRE_TRY(iterator_state_read_number(reader, &ended, error));
    CADRE_TRY(iterator_state_read_number(reader, &block_rows, error));
    CADRE_TRY(iterator_state_read_number(reader, &held, error));
    if (by_rows != (iterator->by_rows ? 1 : 0) || held > size || block_rows > PIECE_ROWS) {
        return shuffle_buffer_state_damaged(error, "it holds other elements, or more of them");
    }
    iterator->input_ended = ended != 0;
    iterator->block_rows = (size_t)block_rows;
    while (iterator->held_count < held) {
        CADRE_CLEANUP(piece_clear) struct piece piece = {0};
        CADRE_TRY(read_piece(iterator, held - iterator->held_count, reader, &piece, error));
        CADRE_TRY(hold_piece(iterator, &piece, error));
    }
    return read_incoming(iterator, reader, error);
}
