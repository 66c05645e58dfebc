/* SPDX-License-Identifier: Apache-2.0
 * The iterator of the shuffle with a buffer, shared by the file that draws and the one that saves.
 *
 *      input ──> incoming rows ──> held (buffer_size slots) ──> drawn ──> stacked element
 *                                    ^ for each that is drawn, one that has come
 *
 * Slots are kept in one of two ways. Small elements that are alike, and strings, are copied into
 * the slots' own memory (row_slot.h). Other elements are held as they came: a slot's memory is then
 * a cadre_element. */
#ifndef CADRE_WORKER_INPUT_SHUFFLE_SHUFFLE_BUFFER_H
#define CADRE_WORKER_INPUT_SHUFFLE_SHUFFLE_BUFFER_H

#include "common/pure/prng.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/shuffle/row_slot.h"

struct shuffle_buffer_dataset {
    cadre_dataset base;
    int64_t buffer_size;
    uint64_t seed;
    bool once; /* one order for all epochs */
};

struct shuffle_buffer_iterator {
    cadre_iterator base;
    struct prng prng;
    bool by_rows;
    struct row_layout layout; /* by_rows */

    struct row_slot *held;
    uint64_t held_count;
    uint64_t capacity;
    uint64_t bytes_since_check; /* taken since memory was looked at */

    struct row_slot *drawn; /* to be given */
    size_t drawn_count;
    size_t drawn_capacity;

    struct slab_allocator memory; /* of the slots */

    /* Read, and not held yet: rows [incoming_at, incoming_count) of stacked elements, or one
     * element. As many ids as rows, or all of them are the first row's. */
    cadre_element incoming;
    struct row_block block;
    struct id_list incoming_ids;
    size_t incoming_at;
    size_t incoming_count;
    size_t block_rows; /* to ask for; 0: nothing was read yet */
    bool input_ended;
};

/* Takes an element over into an empty slot. On error it is still the caller's. */
cadre_status shuffle_buffer_put_element(struct shuffle_buffer_iterator *iterator,
    struct row_slot *slot, cadre_element *element, struct cadre_error *error);

/* Takes a slot in behind those that are held. */
cadre_status shuffle_buffer_add(
    struct shuffle_buffer_iterator *iterator, struct row_slot *slot, struct cadre_error *error);

/* Frees what a slot has. */
void shuffle_buffer_slot_clear(struct shuffle_buffer_iterator *iterator, struct row_slot *slot);

cadre_status shuffle_buffer_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error);
cadre_status shuffle_buffer_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error);

#endif
