/* SPDX-License-Identifier: Apache-2.0
 * See read_ahead.h: the threads, and the one who reads what they made. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/input/node/error_samples.h"
#include "worker/library/input/node/available_memory.h"
#include "worker/library/input/read_ahead/read_ahead_slots.h"

/* A position of the input that takes more is not kept with each element. */
#define POSITION_BYTES_MAX 4096

/* --- the threads --- */

static bool may_read(const struct read_ahead *ahead)
{
    uint64_t rows = ahead->rows_wanted > 0 ? ahead->rows_wanted : 1;
    uint64_t limit = ahead->rule.limit / rows > 0 ? ahead->rule.limit / rows : 1;
    if (ahead->reading || ahead->input_ended || ahead->paused || ahead->count >= limit) {
        return false;
    }
    /* A depth beyond the memory is not used up: it waits for the reader. */
    bool grows = ahead->unused == NULL && ahead->count >= 2 * ahead->rule.threads;
    return !(grows && ahead->made % 64 == 0 && available_memory_is_low());
}

/* Without the lock. Only the thread that reads is here. */
static cadre_status read_slot(struct read_ahead *ahead, struct read_ahead_slot *slot)
{
    cadre_iterator *input = ahead->base.input;
    slot->position.limit = POSITION_BYTES_MAX;
    if (!ahead->no_state && iterator_save(input, &slot->position, NULL) != CADRE_OK) {
        ahead->no_state = true;
    }
    slot->has_state = !ahead->no_state;
    if (ahead->rows_wanted > 0) {
        return iterator_next_rows(
            input, ahead->rows_wanted, &slot->element, &slot->rows, &slot->ids, &slot->error);
    }
    return iterator_next(input, &slot->element, &slot->ids, &slot->error);
}

/* With the lock held, which is given away meanwhile. */
static void fill_slot(struct read_ahead *ahead, struct read_ahead_slot *slot)
{
    ahead->reading = true;
    pthread_mutex_unlock(&ahead->lock);
    cadre_status status = read_slot(ahead, slot);
    pthread_mutex_lock(&ahead->lock);
    ahead->reading = false;
    slot->read = true;
    ahead->input_ended = status != CADRE_OK;
    if (status == CADRE_OUT_OF_RANGE) {
        read_ahead_slot_remove_last(ahead); /* only this thread was reading */
        pthread_cond_signal(&ahead->done);
        return;
    }
    if (status == CADRE_OK && ahead->rule.work != NULL) {
        pthread_cond_signal(&ahead->work); /* another one may read */
        pthread_mutex_unlock(&ahead->lock);
        cadre_element in = slot->element;
        slot->element = (cadre_element){0};
        status = ahead->rule.work(ahead->base.data, ahead->base.pass.epoch, &slot->ids, &in,
            &slot->element, &slot->error);
        error_samples(status, &slot->ids, 0, &slot->error);
        pthread_mutex_lock(&ahead->lock);
        ahead->input_ended = ahead->input_ended || status != CADRE_OK;
    }
    CADRE_ASSERT(slot->error.code == status);
    slot->done = true;
    pthread_cond_signal(&ahead->done);
}

static void *read_ahead_serve(void *argument)
{
    struct read_ahead *ahead = argument;
    crash_thread("read ahead", 0);
    tensor_memory_prefer(ahead->kind);
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->quit) {
        struct read_ahead_slot *slot = may_read(ahead) ? read_ahead_slot_claim(ahead) : NULL;
        if (slot != NULL) {
            fill_slot(ahead, slot);
        } else if (ahead->count == 0 && !ahead->input_ended && !ahead->paused) {
            ahead->input_ended = true;
            cadre_error_set(&ahead->no_memory, CADRE_RESOURCE_EXHAUSTED,
                "%s: no memory for an element", ahead->base.data->ops->name);
            pthread_cond_signal(&ahead->done);
        } else {
            pthread_cond_wait(&ahead->work, &ahead->lock);
        }
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

static cadre_status read_ahead_start(
    struct read_ahead *ahead, size_t rows_wanted, struct cadre_error *error)
{
    if (ahead->threads != NULL) {
        return CADRE_OK;
    }
    uint64_t limit = ahead->rule.limit;
    ahead->rows_wanted = (size_t)(rows_wanted < limit ? rows_wanted : limit);
    ahead->kind = tensor_memory_preferred();
    ahead->threads = calloc(ahead->rule.threads, sizeof ahead->threads[0]);
    if (ahead->threads == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for threads",
            ahead->base.data->ops->name);
    }
    int failure = 0;
    while (failure == 0 && ahead->thread_count < ahead->rule.threads) {
        failure = fault_point("thread.create")
                      ? EAGAIN
                      : pthread_create(
                            &ahead->threads[ahead->thread_count], NULL, read_ahead_serve, ahead);
        ahead->thread_count += failure == 0;
    }
    if (ahead->thread_count == 0) {
        return cadre_error_errno(
            error, failure, "%s: cannot start a thread", ahead->base.data->ops->name);
    }
    return CADRE_OK;
}

/* --- the reader --- */

/* The number of the slot to give next, or -1: none is ready. */
static int64_t read_ahead_pick(struct read_ahead *ahead)
{
    for (uint64_t i = 0; i < ahead->count; i++) {
        const struct read_ahead_slot *slot = *read_ahead_slot_at(ahead, i);
        if (slot->done && (i == 0 || slot->error.code == CADRE_OK)) {
            return (int64_t)i;
        }
        if (!ahead->rule.unordered) {
            break;
        }
    }
    return -1;
}

/* With the lock held: waits for a slot to give. */
static cadre_status wait_for_slot(
    struct read_ahead *ahead, int64_t *ret_number, struct cadre_error *error)
{
    while ((*ret_number = read_ahead_pick(ahead)) < 0) {
        if (ahead->count == 0 && ahead->input_ended) {
            if (ahead->no_memory.code == CADRE_OK) {
                return iterator_end(error);
            }
            *error = ahead->no_memory;
            return error->code;
        }
        pthread_cond_wait(&ahead->done, &ahead->lock);
    }
    struct read_ahead_slot *slot = *read_ahead_slot_at(ahead, (uint64_t)*ret_number);
    if (slot->error.code != CADRE_OK) {
        *error = slot->error;
        read_ahead_slot_remove(ahead, (uint64_t)*ret_number);
        return error->code;
    }
    return CADRE_OK;
}

/* Gives up to `wanted` rows of slot `number`, or its one element when `wanted` is 0. */
static cadre_status read_ahead_give(struct read_ahead *ahead, int64_t number, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct read_ahead_slot *slot = *read_ahead_slot_at(ahead, (uint64_t)number);
    size_t left = slot->rows - slot->rows_given;
    size_t count = wanted == 0 ? 1 : wanted < left ? wanted : left;
    bool whole = slot->rows == 0 || (slot->rows_given == 0 && count == slot->rows && wanted > 0);
    cadre_status status = read_ahead_slot_ids(slot, slot->rows_given, count, ids, error);
    if (status == CADRE_OK && !whole) {
        status = read_ahead_slot_rows(slot, count, wanted == 0, ret_element, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (whole) {
        *ret_element = slot->element;
        slot->element = (cadre_element){0};
    }
    *ret_count = count;
    slot->rows_given += count;
    if (whole || slot->rows_given == slot->rows) {
        read_ahead_slot_remove(ahead, (uint64_t)number);
        pthread_cond_signal(&ahead->work);
    }
    return CADRE_OK;
}

static cadre_status ahead_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    int64_t number = 0;
    size_t count = 0;
    CADRE_TRY(read_ahead_start(ahead, 0, error));
    pthread_mutex_lock(&ahead->lock);
    cadre_status status = wait_for_slot(ahead, &number, error);
    if (status == CADRE_OK) {
        status = read_ahead_give(ahead, number, 0, ret_element, &count, ids, error);
    }
    pthread_mutex_unlock(&ahead->lock);
    return status;
}

/* An element that was read alone, as one row. */
static cadre_status as_row(cadre_element *element, struct cadre_error *error)
{
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor *row = NULL;
        cadre_status status = tensor_stack(&element->tensors[i], 1, &row, error);
        if (status != CADRE_OK) {
            cadre_element_release(element);
            return status;
        }
        cadre_tensor_release(element->tensors[i]);
        element->tensors[i] = row;
    }
    return CADRE_OK;
}

static cadre_status ahead_next_rows(cadre_iterator *self, size_t wanted, cadre_element *ret_element,
    size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    int64_t number = 0;
    CADRE_TRY(read_ahead_start(ahead, wanted, error));
    pthread_mutex_lock(&ahead->lock);
    cadre_status status = wait_for_slot(ahead, &number, error);
    bool alone = status == CADRE_OK && (*read_ahead_slot_at(ahead, (uint64_t)number))->rows == 0;
    if (status == CADRE_OK) {
        status = read_ahead_give(ahead, number, wanted, ret_element, ret_count, ids, error);
    }
    pthread_mutex_unlock(&ahead->lock);
    if (status == CADRE_OK && alone) {
        *ret_count = 1;
        status = as_row(ret_element, error);
    }
    return status;
}

static void ahead_destroy(cadre_iterator *self)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    pthread_mutex_lock(&ahead->lock);
    ahead->quit = true;
    pthread_cond_broadcast(&ahead->work);
    pthread_mutex_unlock(&ahead->lock);
    for (uint32_t i = 0; i < ahead->thread_count; i++) {
        pthread_join(ahead->threads[i], NULL);
    }
    read_ahead_slots_clear(ahead);
    free(ahead->threads);
    pthread_cond_destroy(&ahead->done);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->lock);
}

#define AHEAD_OPS                                                                                  \
    .next = ahead_next, .save = read_ahead_save, .restore = read_ahead_restore,                    \
    .saves_input = true, .destroy = ahead_destroy

static const struct iterator_ops element_ops = {AHEAD_OPS};
static const struct iterator_ops rows_ops = {AHEAD_OPS, .next_rows = ahead_next_rows};

cadre_status read_ahead_iterate(cadre_dataset *self, const struct pass *pass,
    const struct read_ahead_options *rule, cadre_iterator **ret_iterator, struct cadre_error *error)
{
    CADRE_ASSERT(rule->threads >= 1 && rule->limit >= rule->threads);
    CADRE_ASSERT(rule->work == NULL || !rule->takes_rows);
    CADRE_TRY(iterator_new(sizeof(struct read_ahead), rule->takes_rows ? &rows_ops : &element_ops,
        self, pass, pass, ret_iterator, error));
    struct read_ahead *ahead = (struct read_ahead *)*ret_iterator;
    ahead->rule = *rule;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->work, NULL);
    pthread_cond_init(&ahead->done, NULL);
    return CADRE_OK;
}
