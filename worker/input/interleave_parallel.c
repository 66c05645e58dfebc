/* SPDX-License-Identifier: Apache-2.0
 * Interleave with threads that read the inner datasets ahead. One lock guards everything; input
 * elements are read, inner datasets made and read outside of it, each by one thread at a time.
 *
 *     input ──> future ── future ──> ring of places ──> elements, in turn
 *                 └── each has a few elements read ahead ──┘
 *
 * Input elements are taken before their turn, in the order of the input, and wait as futures; the
 * next free place of the ring is given the first of them. So the order is that of interleave
 * without threads, whoever is faster. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/input/nested_cursor.h"

#define AHEAD_MAX   16 /* elements of one inner dataset that wait */
#define AHEAD_PIECE 8  /* read at a time, without the lock */

struct waiting {
    cadre_element element;
    uint64_t ordinal;
};

/* An inner dataset that is read ahead. */
struct ahead {
    struct ahead *next; /* future */
    struct nested_cursor cursor;
    uint64_t consumed;              /* ordinal behind the last element that was given */
    struct waiting held[AHEAD_MAX]; /* ring */
    uint32_t first;
    uint32_t count;
    bool opened;
    bool busy;                  /* a thread is at it */
    struct cadre_error stopped; /* the end or a failure, after what is held; code OK: goes on */
};

struct parallel_iterator {
    cadre_iterator base;
    pthread_mutex_t lock;
    pthread_cond_t work;  /* for the threads */
    pthread_cond_t ready; /* for the reader */
    pthread_t *threads;
    uint32_t thread_count;
    bool quit;

    bool reading_input;
    bool input_held;               /* nobody may begin to read the input */
    struct cadre_error input_over; /* its end or its failure; code OK: goes on */
    uint64_t number;               /* of the next input element */
    struct ahead *futures;
    struct ahead **last_future; /* where the next one is linked */
    uint32_t future_count;

    struct ahead **ring; /* places that were used; NULL: empty */
    uint64_t used;
    uint64_t capacity;
    uint64_t open;
    uint64_t index;
    uint64_t given;
    struct nested_kind kind;
};

static struct nested_dataset *nested_of(const struct parallel_iterator *iterator)
{
    return (struct nested_dataset *)iterator->base.data;
}

static void ahead_free(struct ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    for (; ahead->count > 0; ahead->count--) {
        cadre_element_clear(&ahead->held[ahead->first].element);
        ahead->first = (ahead->first + 1) % AHEAD_MAX;
    }
    nested_cursor_clear(&ahead->cursor);
    free(ahead);
}

/* --- the threads; all with the lock held, which they give up while they read --- */

static uint32_t futures_max(const struct parallel_iterator *iterator)
{
    return 2 * nested_of(iterator)->settings.threads;
}

static void add_future(struct parallel_iterator *iterator, struct ahead *ahead)
{
    *iterator->last_future = ahead;
    iterator->last_future = &ahead->next;
    iterator->future_count++;
}

static void read_input(struct parallel_iterator *iterator)
{
    struct cadre_error own = {0};
    iterator->reading_input = true;
    pthread_mutex_unlock(&iterator->lock);
    cadre_status status = CADRE_OK;
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        status = cadre_error_set(
            &own, CADRE_RESOURCE_EXHAUSTED, "interleave: no memory to read a dataset ahead");
    } else {
        status = nested_cursor_take(&ahead->cursor, iterator->base.input, &iterator->number, &own);
    }
    pthread_mutex_lock(&iterator->lock);
    iterator->reading_input = false;
    if (status == CADRE_OK) {
        add_future(iterator, ahead);
    } else {
        iterator->input_over = own;
        free(ahead);
    }
    pthread_cond_broadcast(&iterator->work);
    pthread_cond_signal(&iterator->ready);
}

/* Reads up to `most` elements behind each other; *ret_count may be 0. */
static cadre_status read_piece(struct parallel_iterator *iterator, struct ahead *ahead,
    uint32_t most, struct waiting piece[], uint32_t *ret_count, struct cadre_error *error)
{
    struct nested_dataset *nested = nested_of(iterator);
    *ret_count = 0;
    if (!ahead->opened) {
        CADRE_TRY(nested_cursor_open(&ahead->cursor, nested, &iterator->base.pass, error));
        ahead->opened = true;
    }
    while (*ret_count < most) {
        struct waiting *read = &piece[*ret_count];
        read->element = (cadre_element){0};
        CADRE_TRY(nested_cursor_next(&ahead->cursor, nested, &read->element, NULL, error));
        read->ordinal = ahead->cursor.ordinal - 1;
        ++*ret_count;
    }
    return CADRE_OK;
}

static void read_ahead(struct parallel_iterator *iterator, struct ahead *ahead)
{
    struct waiting piece[AHEAD_PIECE];
    struct cadre_error own = {0};
    uint32_t count = 0;
    /* The first one is given at once: somebody may wait for it. */
    uint32_t most = ahead->count == 0 ? 1 : AHEAD_MAX - ahead->count;
    most = most > AHEAD_PIECE ? AHEAD_PIECE : most;
    ahead->busy = true;
    pthread_mutex_unlock(&iterator->lock);
    read_piece(iterator, ahead, most, piece, &count, &own);
    pthread_mutex_lock(&iterator->lock);
    ahead->busy = false;
    ahead->stopped = own;
    for (uint32_t i = 0; i < count; i++) {
        ahead->held[(ahead->first + ahead->count) % AHEAD_MAX] = piece[i];
        ahead->count++;
    }
    pthread_cond_signal(&iterator->ready);
}

static bool wants_reading(const struct ahead *ahead)
{
    return ahead != NULL && !ahead->busy && ahead->stopped.code == CADRE_OK &&
           ahead->count <= AHEAD_MAX - AHEAD_PIECE;
}

/* What is needed soonest: the ring from the turn on, then the futures. NULL: nothing. */
static struct ahead *find_work(const struct parallel_iterator *iterator)
{
    struct ahead *found = NULL;
    for (uint64_t i = 0; i < iterator->used; i++) {
        uint64_t index = (iterator->index + i) % iterator->used;
        struct ahead *ahead = iterator->ring[index];
        if (wants_reading(ahead) && ahead->count == 0) {
            return ahead;
        }
        found = found == NULL && wants_reading(ahead) ? ahead : found;
    }
    for (struct ahead *ahead = iterator->futures; ahead != NULL; ahead = ahead->next) {
        if (wants_reading(ahead) && ahead->count == 0) {
            return ahead;
        }
        found = found == NULL && wants_reading(ahead) ? ahead : found;
    }
    return found;
}

static void *run(void *argument)
{
    struct parallel_iterator *iterator = argument;
    pthread_mutex_lock(&iterator->lock);
    while (!iterator->quit) {
        bool reads_input = !iterator->reading_input && !iterator->input_held &&
                           iterator->input_over.code == CADRE_OK &&
                           iterator->future_count < futures_max(iterator);
        struct ahead *ahead = reads_input ? NULL : find_work(iterator);
        if (reads_input) {
            read_input(iterator);
        } else if (ahead != NULL) {
            read_ahead(iterator, ahead);
        } else {
            pthread_cond_wait(&iterator->work, &iterator->lock);
        }
    }
    pthread_mutex_unlock(&iterator->lock);
    return NULL;
}

static cadre_status start_threads(struct parallel_iterator *iterator, struct cadre_error *error)
{
    const struct nested_settings *settings = &nested_of(iterator)->settings;
    uint32_t wanted =
        settings->threads < settings->cycle ? settings->threads : (uint32_t)settings->cycle;
    int failure = 0;
    iterator->threads = calloc(wanted, sizeof iterator->threads[0]);
    if (iterator->threads == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "interleave: no memory for %" PRIu32 " threads", wanted);
    }
    while (iterator->thread_count < wanted && failure == 0) {
        failure =
            fault_point("interleave.thread")
                ? EAGAIN
                : pthread_create(&iterator->threads[iterator->thread_count], NULL, run, iterator);
        iterator->thread_count += failure == 0 ? 1 : 0;
    }
    if (iterator->thread_count == 0) {
        free(iterator->threads);
        iterator->threads = NULL;
        return cadre_error_errno(
            error, failure, "interleave: cannot start a thread that reads ahead");
    }
    return CADRE_OK;
}

/* --- the reader; with the lock held --- */

static bool input_exhausted(const struct parallel_iterator *iterator)
{
    return iterator->input_over.code != CADRE_OK && iterator->futures == NULL;
}

static void next_turn(struct parallel_iterator *iterator)
{
    iterator->given = 0;
    iterator->index++;
    if (iterator->index >= nested_of(iterator)->settings.cycle ||
        (input_exhausted(iterator) && iterator->index >= iterator->used)) {
        iterator->index = 0;
    }
}

/* Room for the place whose turn it is. */
static cadre_status grow_ring(struct parallel_iterator *iterator, struct cadre_error *error)
{
    if (iterator->index == iterator->capacity) {
        uint64_t capacity = iterator->capacity == 0 ? 16 : 2 * iterator->capacity;
        struct ahead **ring = realloc(iterator->ring, (size_t)capacity * sizeof(struct ahead *));
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
static void settle_future(struct parallel_iterator *iterator, uint64_t index)
{
    struct ahead *ahead = iterator->futures;
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
static void close_at_turn(struct parallel_iterator *iterator)
{
    ahead_free(iterator->ring[iterator->index]);
    iterator->ring[iterator->index] = NULL;
    iterator->open--;
    next_turn(iterator);
}

/* Whose turn it is in order: the place that has an element. OUT_OF_RANGE: all is over. */
static cadre_status find_in_order(struct parallel_iterator *iterator, struct cadre_error *error)
{
    for (;;) {
        CADRE_TRY(grow_ring(iterator, error));
        struct ahead *ahead = iterator->ring[iterator->index];
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
static cadre_status settle_futures(struct parallel_iterator *iterator, struct cadre_error *error)
{
    const uint64_t turn = iterator->index;
    const uint64_t cycle = nested_of(iterator)->settings.cycle;
    cadre_status status = CADRE_OK;
    for (uint64_t i = 0; i < cycle && iterator->futures != NULL && status == CADRE_OK; i++) {
        iterator->index = i;
        status = grow_ring(iterator, error);
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
    struct parallel_iterator *iterator, uint64_t *ret_index, struct cadre_error *error)
{
    *ret_index = iterator->used;
    for (uint64_t i = 0; i < iterator->used; i++) {
        const uint64_t index = (iterator->index + i) % iterator->used;
        struct ahead *ahead = iterator->ring[index];
        if (ahead != NULL && ahead->count > 0) {
            *ret_index = index;
            return CADRE_OK;
        }
        if (ahead != NULL && ahead->stopped.code == CADRE_OUT_OF_RANGE) {
            ahead_free(ahead);
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
static cadre_status find_ready(struct parallel_iterator *iterator, struct cadre_error *error)
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
        if (iterator->open < nested_of(iterator)->settings.cycle && iterator->futures != NULL) {
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
static cadre_status give(struct parallel_iterator *iterator, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct ahead *ahead = iterator->ring[iterator->index];
    struct waiting *first = &ahead->held[ahead->first];
    CADRE_TRY(nested_cursor_check(
        &ahead->cursor, nested_of(iterator), &iterator->kind, &first->element, false, error));
    CADRE_TRY(id_list_add(ids, nested_id(ahead->cursor.outer_id, first->ordinal), error));
    *ret_element = first->element;
    ahead->consumed = first->ordinal + 1;
    first->element = (cadre_element){0};
    ahead->first = (ahead->first + 1) % AHEAD_MAX;
    ahead->count--;
    if (ahead->count == 0 || ahead->count == AHEAD_MAX - AHEAD_PIECE) {
        pthread_cond_signal(&iterator->work);
    }
    iterator->given++;
    if (iterator->given == nested_of(iterator)->settings.block) {
        next_turn(iterator);
    }
    return CADRE_OK;
}

static cadre_status parallel_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct parallel_iterator *iterator = (struct parallel_iterator *)self;
    const bool ordered = self->pass.ordered || !nested_of(iterator)->settings.unordered;
    if (iterator->thread_count == 0) {
        CADRE_TRY(start_threads(iterator, error));
    }
    pthread_mutex_lock(&iterator->lock);
    cadre_status status = ordered ? find_in_order(iterator, error) : find_ready(iterator, error);
    if (status == CADRE_OK) {
        status = give(iterator, ret_element, ids, error);
    }
    pthread_mutex_unlock(&iterator->lock);
    return status;
}

/* --- where it stands: what was read ahead was not given, and is read again --- */

static cadre_status save_places(const struct parallel_iterator *iterator,
    struct saved_writer *writer, struct cadre_error *error)
{
    const struct nested_cursor none = {.number = 0};
    CADRE_TRY(saved_write_number(writer, iterator->number, error));
    CADRE_TRY(saved_write_number(writer, iterator->index, error));
    CADRE_TRY(saved_write_number(writer, iterator->given, error));
    CADRE_TRY(saved_write_number(writer, iterator->used, error));
    for (uint64_t i = 0; i < iterator->used; i++) {
        const struct ahead *ahead = iterator->ring[i];
        CADRE_TRY(nested_cursor_save(ahead != NULL ? &ahead->cursor : &none,
            ahead != NULL ? ahead->consumed : 0, false, writer, error));
    }
    CADRE_TRY(saved_write_number(writer, iterator->future_count, error));
    for (const struct ahead *ahead = iterator->futures; ahead != NULL; ahead = ahead->next) {
        CADRE_TRY(nested_cursor_save(&ahead->cursor, ahead->consumed, false, writer, error));
    }
    return CADRE_OK;
}

static cadre_status parallel_save(
    cadre_iterator *self, struct saved_writer *writer, struct cadre_error *error)
{
    struct parallel_iterator *iterator = (struct parallel_iterator *)self;
    pthread_mutex_lock(&iterator->lock);
    iterator->input_held = true;
    while (iterator->reading_input) {
        pthread_cond_wait(&iterator->ready, &iterator->lock);
    }
    cadre_status status = save_places(iterator, writer, error);
    if (status == CADRE_OK) {
        status = iterator_save(self->input, writer, error);
    }
    iterator->input_held = false;
    pthread_cond_broadcast(&iterator->work);
    pthread_mutex_unlock(&iterator->lock);
    return status;
}

/* NULL in *ret_ahead: an empty place was saved. */
static cadre_status restore_ahead(struct parallel_iterator *iterator, struct saved_reader *reader,
    struct ahead **ret_ahead, struct cadre_error *error)
{
    *ret_ahead = NULL;
    struct ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "interleave: no memory to read a dataset ahead");
    }
    cadre_status status = nested_cursor_restore(
        &ahead->cursor, nested_of(iterator), &iterator->base.pass, false, reader, error);
    ahead->consumed = ahead->cursor.ordinal;
    if (status != CADRE_OK || ahead->cursor.element.count == 0) {
        ahead_free(ahead);
        return status;
    }
    *ret_ahead = ahead;
    return CADRE_OK;
}

static cadre_status restore_places(
    struct parallel_iterator *iterator, struct saved_reader *reader, struct cadre_error *error)
{
    const struct nested_settings *settings = &nested_of(iterator)->settings;
    uint64_t index = 0;
    uint64_t used = 0;
    uint64_t futures = 0;
    CADRE_TRY(saved_read_number(reader, &iterator->number, error));
    CADRE_TRY(saved_read_number(reader, &index, error));
    CADRE_TRY(saved_read_number(reader, &iterator->given, error));
    CADRE_TRY(saved_read_number(reader, &used, error));
    if (used > settings->cycle || index >= settings->cycle || index > used ||
        iterator->given >= settings->block) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "interleave: the saved position is element %" PRIu64 " of dataset %" PRIu64
            " of a cycle of %" PRIu64 "; this one has cycles of %" PRIu64 " and blocks of %" PRIu64,
            iterator->given, index, used, settings->cycle, settings->block);
    }
    for (iterator->index = 0; iterator->index < used; iterator->index++) {
        CADRE_TRY(grow_ring(iterator, error));
        struct ahead **place = &iterator->ring[iterator->index];
        CADRE_TRY(restore_ahead(iterator, reader, place, error));
        iterator->open += *place != NULL ? 1 : 0;
    }
    iterator->index = index;
    CADRE_TRY(saved_read_number(reader, &futures, error));
    for (uint64_t i = 0; i < futures; i++) {
        struct ahead *ahead = NULL;
        CADRE_TRY(restore_ahead(iterator, reader, &ahead, error));
        if (ahead == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "interleave: the saved position has no input element %" PRIu64 " of %" PRIu64
                " that waited",
                i, futures);
        }
        add_future(iterator, ahead);
    }
    return CADRE_OK;
}

static cadre_status parallel_restore(
    cadre_iterator *self, struct saved_reader *reader, struct cadre_error *error)
{
    struct parallel_iterator *iterator = (struct parallel_iterator *)self;
    CADRE_ASSERT(iterator->thread_count == 0);
    CADRE_TRY(restore_places(iterator, reader, error));
    return iterator_restore(self->input, reader, error);
}

static void parallel_destroy(cadre_iterator *self)
{
    struct parallel_iterator *iterator = (struct parallel_iterator *)self;
    pthread_mutex_lock(&iterator->lock);
    iterator->quit = true;
    pthread_cond_broadcast(&iterator->work);
    pthread_mutex_unlock(&iterator->lock);
    for (uint32_t i = 0; i < iterator->thread_count; i++) {
        pthread_join(iterator->threads[i], NULL);
    }
    for (uint64_t i = 0; i < iterator->used; i++) {
        ahead_free(iterator->ring[i]);
    }
    while (iterator->futures != NULL) {
        struct ahead *next = iterator->futures->next;
        ahead_free(iterator->futures);
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
    .save = parallel_save,
    .restore = parallel_restore,
    .saves_input = true,
    .destroy = parallel_destroy,
};

cadre_status interleave_parallel_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    CADRE_TRY(iterator_new(sizeof(struct parallel_iterator), &parallel_iterator_ops, self, pass,
        pass, ret_iterator, error));
    struct parallel_iterator *iterator = (struct parallel_iterator *)*ret_iterator;
    iterator->last_future = &iterator->futures;
    pthread_mutex_init(&iterator->lock, NULL);
    pthread_cond_init(&iterator->work, NULL);
    pthread_cond_init(&iterator->ready, NULL);
    return CADRE_OK;
}
