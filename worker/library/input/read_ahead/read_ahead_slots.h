/* SPDX-License-Identifier: Apache-2.0
 * The inside of read_ahead.h: the elements at hand are a ring of slots in the order in which they
 * were read. A thread claims the slot at the end, reads into it while no other thread reads, works
 * on it, and marks it done; the reader takes the first slot when it is done. One lock guards all
 * but reading and working. */
#ifndef CADRE_WORKER_INPUT_READ_AHEAD_READ_AHEAD_SLOTS_H
#define CADRE_WORKER_INPUT_READ_AHEAD_READ_AHEAD_SLOTS_H

#include <pthread.h>

#include "worker/library/device/tensor.h"
#include "worker/library/input/read_ahead/read_ahead.h"

struct read_ahead_slot {
    bool read; /* else its thread is reading */
    bool done;
    bool has_state;
    struct iterator_state_writer position; /* of the input, before it */
    cadre_element element;
    size_t rows; /* stacked in `element`, of which `rows_given` were given; 0: one element */
    size_t rows_given;
    struct id_list ids;
    struct cadre_error error;
    struct read_ahead_slot *behind; /* in the list of unused ones */
};

struct read_ahead {
    cadre_iterator base; /* `input` belongs to the thread that reads */
    struct read_ahead_options rule;
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the threads */
    pthread_cond_t done; /* for the reader */
    bool quit;
    bool paused;
    bool reading;
    bool input_ended;             /* or failed */
    struct cadre_error no_memory; /* for a single slot */
    bool no_state;                /* the input cannot tell, or not in few bytes */
    size_t rows_wanted;           /* 0: elements one by one */
    struct read_ahead_slot **ring;
    uint64_t capacity;
    uint64_t first;
    uint64_t count;
    uint64_t made; /* slots that were allocated */
    struct read_ahead_slot *unused;
    enum tensor_memory_kind kind;
    uint32_t thread_count;
    pthread_t *threads;
};

/* --- with the lock held --- */

struct read_ahead_slot **read_ahead_slot_at(struct read_ahead *ahead, uint64_t number);

/* A slot at the end of the ring; NULL without memory. */
struct read_ahead_slot *read_ahead_slot_claim(struct read_ahead *ahead);

/* Takes slot `number` out of the ring; those before it move up. */
void read_ahead_slot_remove(struct read_ahead *ahead, uint64_t number);

/* Takes the slot at the end out. */
void read_ahead_slot_remove_last(struct read_ahead *ahead);

/* The ids that go with rows [first, first + count) of a slot of rows: one each, or else all of them
 * with the first row. Of a slot of one element all. */
cadre_status read_ahead_slot_ids(const struct read_ahead_slot *slot, size_t first, size_t count,
    struct id_list *ids, struct cadre_error *error);

/* Rows [rows_given, + count) of a slot; `alone`: without the first dimension. */
cadre_status read_ahead_slot_rows(const struct read_ahead_slot *slot, size_t count, bool alone,
    cadre_element *ret_element, struct cadre_error *error);

/* --- without --- */

/* All slots, when no thread is there any more. */
void read_ahead_slots_clear(struct read_ahead *ahead);

/* Where the iterator stands: the table's `save` and `restore` (read_ahead_state.c). */
cadre_status read_ahead_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error);
cadre_status read_ahead_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error);

#endif
