/* SPDX-License-Identifier: Apache-2.0
 * Interleave with threads that read the inner datasets ahead. One lock guards everything; input
 * elements are read, inner datasets made and read outside of it, each by one thread at a time.
 *
 *     input ──> future ── future ──> ring of places ──> elements, in turn
 *                 └── each has a few elements read ahead ──┘
 *
 * Input elements are taken before their turn, in the order of the input, and wait as futures; the
 * next free place of the ring is given the first of them. So the order is that of interleave
 * without threads, whichever thread is faster. */
#ifndef CADRE_WORKER_INPUT_NESTED_INTERLEAVE_PARALLEL_H
#define CADRE_WORKER_INPUT_NESTED_INTERLEAVE_PARALLEL_H

#include "worker/library/input/nested/nested_cursor.h"

#define INNER_READER_ELEMENTS_MAX 16 /* elements of one inner dataset that wait */
#define INNER_READER_BLOCK        8  /* read at a time, without the lock */

struct waiting_element {
    cadre_element element;
    uint64_t ordinal;
};

/* An inner dataset that is read ahead. */
struct inner_reader {
    struct inner_reader *next; /* future */
    struct nested_cursor cursor;
    uint64_t consumed; /* ordinal behind the last element that was given */
    struct waiting_element held[INNER_READER_ELEMENTS_MAX]; /* ring */
    uint32_t first;
    uint32_t count;
    bool opened;
    bool busy;                  /* a thread is at it */
    struct cadre_error stopped; /* the end or a failure, after what is held; code OK: goes on */
};

struct interleave_parallel_iterator {
    cadre_iterator base;
    pthread_mutex_t lock;
    pthread_cond_t work;  /* for the threads */
    pthread_cond_t ready; /* for the reader */
    pthread_t *threads;
    uint32_t thread_count;
    bool quit;

    bool reading_input;
    bool input_held;               /* no thread may begin to read the input */
    struct cadre_error input_over; /* its end or its failure; code OK: goes on */
    uint64_t number;               /* of the next input element */
    struct inner_reader *futures;
    struct inner_reader **last_future; /* where the next one is linked */
    uint32_t future_count;

    struct inner_reader **ring; /* places that were used; NULL: empty */
    uint64_t used;
    uint64_t capacity;
    uint64_t open;
    uint64_t index;
    uint64_t given;
    struct nested_kind kind;
};

static inline struct nested_dataset *interleave_node(
    const struct interleave_parallel_iterator *iterator)
{
    return (struct nested_dataset *)iterator->base.data;
}

/* NULL is allowed. */
void inner_reader_free(struct inner_reader *ahead);

/* Puts it behind the other futures. */
void interleave_add_future(
    struct interleave_parallel_iterator *iterator, struct inner_reader *ahead);

/* Room for the place whose turn it is. */
cadre_status interleave_grow_ring(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error);

/* Without the lock: starts as many threads as are wanted and can be had, at least one. */
cadre_status interleave_start_threads(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error);

/* The position as bytes: what was read ahead was not given, and is read again. */
cadre_status interleave_parallel_save(
    cadre_iterator *self, struct iterator_state_writer *writer, struct cadre_error *error);
cadre_status interleave_parallel_restore(
    cadre_iterator *self, struct iterator_state_reader *reader, struct cadre_error *error);

#endif
