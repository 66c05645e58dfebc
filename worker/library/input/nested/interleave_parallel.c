/* SPDX-License-Identifier: Apache-2.0
 * The reader of a parallel interleave: it gives what the threads have read, in turn; see
 * interleave_parallel.h. Its functions are called with the lock held. */
#include "worker/library/input/nested/interleave_parallel.h"
#include "worker/library/input/node/sample_id.h"

#include <inttypes.h>
#include <stdlib.h>

static bool input_exhausted(const struct interleave_parallel_iterator *iterator)
{
    return iterator->input_over.code != CADRE_OK && iterator->futures == NULL;
}

static void next_turn(struct interleave_parallel_iterator *iterator)
{
    iterator->given = 0;
    iterator->index++;
    /* A failure of the input waits at the first place that it would have filled. */
    const bool ended = input_exhausted(iterator) && iterator->input_over.code == CADRE_OUT_OF_RANGE;
    if (iterator->index >= interleave_node(iterator)->settings.cycle ||
        (ended && iterator->index >= iterator->used)) {
        iterator->index = 0;
    }
}

/* Room for the place whose turn it is. */
cadre_status interleave_grow_ring(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error)
{
    if (iterator->index == iterator->capacity) {
        uint64_t capacity = iterator->capacity == 0 ? 16 : 2 * iterator->capacity;
        struct inner_reader **ring =
            realloc(iterator->ring, (size_t)capacity * sizeof(struct inner_reader *));
        if (ring == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "interleave: no memory for a cycle of %" PRIu64 " datasets", capacity);
        }
        iterator->ring = ring;
        iterator->capacity = capacity;
    }
    if (iterator->index == iterator->used) {
        iterator->ring[iterator->used++] = NULL;
    }
    return CADRE_OK;
}

/* Gives the first future to the empty place `index`. */
static void settle_future(struct interleave_parallel_iterator *iterator, uint64_t index)
{
    struct inner_reader *ahead = iterator->futures;
    iterator->futures = ahead->next;
    if (iterator->futures == NULL) {
        iterator->last_future = &iterator->futures;
    }
    ahead->next = NULL;
    iterator->future_count--;
    iterator->ring[index] = ahead;
    iterator->open++;
    pthread_cond_signal(&iterator->work);
}

/* Frees the place at its turn, whose dataset has ended and given all. */
static void close_at_turn(struct interleave_parallel_iterator *iterator)
{
    inner_reader_free(iterator->ring[iterator->index]);
    iterator->ring[iterator->index] = NULL;
    iterator->open--;
    next_turn(iterator);
}

/* Whose turn it is in order: the place that has an element. OUT_OF_RANGE: all is over. */
static cadre_status find_in_order(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error)
{
    for (;;) {
        CADRE_TRY(interleave_grow_ring(iterator, error));
        struct inner_reader *ahead = iterator->ring[iterator->index];
        if (ahead == NULL && iterator->futures != NULL) {
            settle_future(iterator, iterator->index);
        } else if (ahead == NULL && iterator->input_over.code != CADRE_OK) {
            if (iterator->open == 0 || iterator->input_over.code != CADRE_OUT_OF_RANGE) {
                *error = iterator->input_over;
                return error->code;
            }
            next_turn(iterator);
        } else if (ahead != NULL && ahead->count > 0) {
            return CADRE_OK;
        } else if (ahead != NULL && ahead->stopped.code == CADRE_OUT_OF_RANGE) {
            close_at_turn(iterator);
        } else if (ahead != NULL && ahead->stopped.code != CADRE_OK) {
            *error = ahead->stopped;
            return error->code;
        } else {
            pthread_cond_wait(&iterator->ready, &iterator->lock);
        }
    }
}

/* Fills empty places, wherever they are. */
static cadre_status settle_futures(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error)
{
    const uint64_t turn = iterator->index;
    const uint64_t cycle = interleave_node(iterator)->settings.cycle;
    cadre_status status = CADRE_OK;
    for (uint64_t i = 0; i < cycle && iterator->futures != NULL && status == CADRE_OK; i++) {
        iterator->index = i;
        status = interleave_grow_ring(iterator, error);
        if (status == CADRE_OK && iterator->ring[i] == NULL) {
            settle_future(iterator, i);
        }
    }
    iterator->index = turn;
    return status;
}

/* The next place from the turn on that has an element, whatever is missing before it. Places whose
 * datasets have ended become empty. `used`: none. */
static cadre_status scan_ring(
    struct interleave_parallel_iterator *iterator, uint64_t *ret_index, struct cadre_error *error)
{
    *ret_index = iterator->used;
    for (uint64_t i = 0; i < iterator->used; i++) {
        const uint64_t index = (iterator->index + i) % iterator->used;
        struct inner_reader *ahead = iterator->ring[index];
        if (ahead != NULL && ahead->count > 0) {
            *ret_index = index;
            return CADRE_OK;
        }
        if (ahead != NULL && ahead->stopped.code == CADRE_OUT_OF_RANGE) {
            inner_reader_free(ahead);
            iterator->ring[index] = NULL;
            iterator->open--;
        } else if (ahead != NULL && ahead->stopped.code != CADRE_OK) {
            *error = ahead->stopped;
            return error->code;
        }
    }
    return CADRE_OK;
}

/* Any place that has an element. OUT_OF_RANGE: all is over. */
static cadre_status find_ready(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error)
{
    for (;;) {
        uint64_t index = 0;
        CADRE_TRY(settle_futures(iterator, error));
        CADRE_TRY(scan_ring(iterator, &index, error));
        if (index < iterator->used) {
            iterator->given = index == iterator->index ? iterator->given : 0;
            iterator->index = index;
            return CADRE_OK;
        }
        if (iterator->open < interleave_node(iterator)->settings.cycle &&
            iterator->futures != NULL) {
            continue; /* the scan made room */
        }
        if (input_exhausted(iterator) &&
            (iterator->open == 0 || iterator->input_over.code != CADRE_OUT_OF_RANGE)) {
            *error = iterator->input_over;
            return error->code;
        }
        pthread_cond_wait(&iterator->ready, &iterator->lock);
    }
}

/* Gives the first element that waits at the turn. */
static cadre_status interleave_parallel_give(struct interleave_parallel_iterator *iterator,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    struct inner_reader *ahead = iterator->ring[iterator->index];
    struct waiting_element *first = &ahead->held[ahead->first];
    CADRE_TRY(nested_cursor_check(
        &ahead->cursor, interleave_node(iterator), &iterator->kind, &first->element, false, error));
    CADRE_TRY(id_list_add(ids, sample_id_of(ahead->cursor.outer_id, first->ordinal), error));
    *ret_element = first->element;
    ahead->consumed = first->ordinal + 1;
    first->element = (cadre_element){0};
    ahead->first = (ahead->first + 1) % INNER_READER_ELEMENTS_MAX;
    ahead->count--;
    if (ahead->count == 0 || ahead->count == INNER_READER_ELEMENTS_MAX - INNER_READER_BLOCK) {
        pthread_cond_signal(&iterator->work);
    }
    iterator->given++;
    if (iterator->given == interleave_node(iterator)->settings.block) {
        next_turn(iterator);
    }
    return CADRE_OK;
}

static cadre_status parallel_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct interleave_parallel_iterator *iterator = (struct interleave_parallel_iterator *)self;
    const bool ordered = self->pass.ordered || !interleave_node(iterator)->settings.unordered;
    if (iterator->thread_count == 0) {
        CADRE_TRY(interleave_start_threads(iterator, error));
    }
    pthread_mutex_lock(&iterator->lock);
    cadre_status status = ordered ? find_in_order(iterator, error) : find_ready(iterator, error);
    if (status == CADRE_OK) {
        status = interleave_parallel_give(iterator, ret_element, ids, error);
    }
    pthread_mutex_unlock(&iterator->lock);
    return status;
}

static void parallel_destroy(cadre_iterator *self)
{
    struct interleave_parallel_iterator *iterator = (struct interleave_parallel_iterator *)self;
    pthread_mutex_lock(&iterator->lock);
    iterator->quit = true;
    pthread_cond_broadcast(&iterator->work);
    pthread_mutex_unlock(&iterator->lock);
    for (uint32_t i = 0; i < iterator->thread_count; i++) {
        pthread_join(iterator->threads[i], NULL);
    }
    for (uint64_t i = 0; i < iterator->used; i++) {
        inner_reader_free(iterator->ring[i]);
    }
    while (iterator->futures != NULL) {
        struct inner_reader *next = iterator->futures->next;
        inner_reader_free(iterator->futures);
        iterator->futures = next;
    }
    free(iterator->ring);
    free(iterator->threads);
    pthread_cond_destroy(&iterator->ready);
    pthread_cond_destroy(&iterator->work);
    pthread_mutex_destroy(&iterator->lock);
}

static const struct iterator_ops parallel_iterator_ops = {
    .next = parallel_next,
    .save = interleave_parallel_save,
    .restore = interleave_parallel_restore,
    .saves_input = true,
    .destroy = parallel_destroy,
};

cadre_status interleave_parallel_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    CADRE_TRY(iterator_new(sizeof(struct interleave_parallel_iterator), &parallel_iterator_ops,
        self, pass, pass, ret_iterator, error));
    struct interleave_parallel_iterator *iterator =
        (struct interleave_parallel_iterator *)*ret_iterator;
    iterator->last_future = &iterator->futures;
    pthread_mutex_init(&iterator->lock, NULL);
    pthread_cond_init(&iterator->work, NULL);
    pthread_cond_init(&iterator->ready, NULL);
    return CADRE_OK;
}
