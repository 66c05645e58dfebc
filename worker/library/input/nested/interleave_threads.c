/* SPDX-License-Identifier: Apache-2.0
 * The threads of a parallel interleave; see interleave_parallel.h. Their functions are called with
 * the lock held, and give it up while they read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "worker/library/crash/crash.h"
#include "worker/library/input/nested/interleave_parallel.h"

void inner_reader_free(struct inner_reader *ahead)
{
    if (ahead == NULL) {
        return;
    }
    for (; ahead->count > 0; ahead->count--) {
        cadre_element_release(&ahead->held[ahead->first].element);
        ahead->first = (ahead->first + 1) % INNER_READER_ELEMENTS_MAX;
    }
    nested_cursor_clear(&ahead->cursor);
    free(ahead);
}

static uint32_t futures_max(const struct interleave_parallel_iterator *iterator)
{
    return 2 * interleave_node(iterator)->settings.threads;
}

void interleave_add_future(
    struct interleave_parallel_iterator *iterator, struct inner_reader *ahead)
{
    *iterator->last_future = ahead;
    iterator->last_future = &ahead->next;
    iterator->future_count++;
}

static void read_input(struct interleave_parallel_iterator *iterator)
{
    struct cadre_error own = {0};
    iterator->reading_input = true;
    pthread_mutex_unlock(&iterator->lock);
    cadre_status status = CADRE_OK;
    struct inner_reader *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL) {
        status = cadre_error_set(
            &own, CADRE_RESOURCE_EXHAUSTED, "interleave: no memory to read a dataset ahead");
    } else {
        status = nested_cursor_begin(&ahead->cursor, iterator->base.input, &iterator->number, &own);
    }
    pthread_mutex_lock(&iterator->lock);
    iterator->reading_input = false;
    if (status == CADRE_OK) {
        interleave_add_future(iterator, ahead);
    } else {
        iterator->input_over = own;
        free(ahead);
    }
    pthread_cond_broadcast(&iterator->work);
    pthread_cond_signal(&iterator->ready);
}

/* Reads up to `most` elements behind each other; *ret_count may be 0. */
static cadre_status read_piece(struct interleave_parallel_iterator *iterator,
    struct inner_reader *ahead, uint32_t limit, struct waiting_element piece[], uint32_t *ret_count,
    struct cadre_error *error)
{
    struct nested_dataset *nested = interleave_node(iterator);
    *ret_count = 0;
    if (!ahead->opened) {
        CADRE_TRY(nested_cursor_open(&ahead->cursor, nested, &iterator->base.pass, error));
        ahead->opened = true;
    }
    while (*ret_count < limit) {
        struct waiting_element *read = &piece[*ret_count];
        read->element = (cadre_element){0};
        CADRE_TRY(nested_cursor_next(&ahead->cursor, nested, &read->element, NULL, error));
        read->ordinal = ahead->cursor.ordinal - 1;
        ++*ret_count;
    }
    return CADRE_OK;
}

static void read_ahead(struct interleave_parallel_iterator *iterator, struct inner_reader *ahead)
{
    struct waiting_element piece[INNER_READER_BLOCK];
    struct cadre_error own = {0};
    uint32_t count = 0;
    /* The first one is given at once: a caller may wait for it. */
    uint32_t limit = ahead->count == 0 ? 1 : INNER_READER_ELEMENTS_MAX - ahead->count;
    limit = limit > INNER_READER_BLOCK ? INNER_READER_BLOCK : limit;
    ahead->busy = true;
    pthread_mutex_unlock(&iterator->lock);
    read_piece(iterator, ahead, limit, piece, &count, &own);
    pthread_mutex_lock(&iterator->lock);
    ahead->busy = false;
    ahead->stopped = own;
    for (uint32_t i = 0; i < count; i++) {
        ahead->held[(ahead->first + ahead->count) % INNER_READER_ELEMENTS_MAX] = piece[i];
        ahead->count++;
    }
    pthread_cond_signal(&iterator->ready);
}

static bool wants_reading(const struct inner_reader *ahead)
{
    return ahead != NULL && !ahead->busy && ahead->stopped.code == CADRE_OK &&
           ahead->count <= INNER_READER_ELEMENTS_MAX - INNER_READER_BLOCK;
}

/* What is needed soonest: the ring from the turn on, then the futures. NULL: nothing. */
static struct inner_reader *find_work(const struct interleave_parallel_iterator *iterator)
{
    struct inner_reader *found = NULL;
    for (uint64_t i = 0; i < iterator->used; i++) {
        uint64_t index = (iterator->index + i) % iterator->used;
        struct inner_reader *ahead = iterator->ring[index];
        if (wants_reading(ahead) && ahead->count == 0) {
            return ahead;
        }
        found = found == NULL && wants_reading(ahead) ? ahead : found;
    }
    for (struct inner_reader *ahead = iterator->futures; ahead != NULL; ahead = ahead->next) {
        if (wants_reading(ahead) && ahead->count == 0) {
            return ahead;
        }
        found = found == NULL && wants_reading(ahead) ? ahead : found;
    }
    return found;
}

static void *interleave_threads_run(void *argument)
{
    struct interleave_parallel_iterator *iterator = argument;
    crash_thread("interleave", 0);
    pthread_mutex_lock(&iterator->lock);
    while (!iterator->quit) {
        bool reads_input = !iterator->reading_input && !iterator->input_held &&
                           iterator->input_over.code == CADRE_OK &&
                           iterator->future_count < futures_max(iterator);
        struct inner_reader *ahead = reads_input ? NULL : find_work(iterator);
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

cadre_status interleave_start_threads(
    struct interleave_parallel_iterator *iterator, struct cadre_error *error)
{
    const struct nested_settings *settings = &interleave_node(iterator)->settings;
    uint32_t wanted =
        settings->threads < settings->cycle ? settings->threads : (uint32_t)settings->cycle;
    int failure = 0;
    iterator->threads = calloc(wanted, sizeof iterator->threads[0]);
    if (iterator->threads == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "interleave: no memory for %" PRIu32 " threads", wanted);
    }
    while (iterator->thread_count < wanted && failure == 0) {
        failure = fault_point("interleave.thread")
                      ? EAGAIN
                      : pthread_create(&iterator->threads[iterator->thread_count], NULL,
                            interleave_threads_run, iterator);
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
