/* SPDX-License-Identifier: Apache-2.0
 * See read_ahead.h. The elements at hand are a ring of slots in the order in which they were read.
 * A thread claims the slot at the end, reads into it while no other thread reads, works on it, and
 * marks it done; the reader takes the first slot when it is done. One lock guards all but reading
 * and working. */
#include "worker/input/read_ahead.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/device/tensor.h"
#include "worker/input/memory_left.h"
#include "worker/input/user_call.h"

/* A position of the input that takes more is not kept with each element. */
#define POSITION_BYTES_MAX 4096

struct slot {
    bool read; /* else its thread is reading */
    bool done;
    bool has_position;
    struct saved_writer position; /* of the input, before it */
    cadre_element element;
    size_t rows; /* stacked in `element`, of which `rows_given` were given; 0: one element */
    size_t rows_given;
    struct id_list ids;
    struct cadre_error error;
    struct slot *behind; /* in the list of unused ones */
};

struct read_ahead {
    cadre_iterator base; /* `input` belongs to the thread that reads */
    struct read_ahead_rule rule;
    pthread_mutex_t lock;
    pthread_cond_t work; /* for the threads */
    pthread_cond_t done; /* for the reader */
    bool quit;
    bool paused;
    bool reading;
    bool input_ended;             /* or failed */
    struct cadre_error no_memory; /* for a single slot */
    bool no_position;             /* the input cannot tell, or not in few bytes */
    size_t rows_wanted;           /* 0: elements one by one */
    struct slot **ring;
    uint64_t capacity;
    uint64_t first;
    uint64_t count;
    uint64_t made; /* slots that were allocated */
    struct slot *unused;
    enum tensor_memory_kind kind;
    uint32_t thread_count;
    pthread_t *threads;
};

/* --- slots; all with the lock held --- */

static struct slot **slot_at(struct read_ahead *ahead, uint64_t number)
{
    return &ahead->ring[(ahead->first + number) % ahead->capacity];
}

static void slot_free(struct slot *slot)
{
    saved_writer_clear(&slot->position);
    cadre_element_clear(&slot->element);
    id_list_clear(&slot->ids);
    free(slot);
}

/* For use again: keeps the memory of its lists. */
static void slot_reuse(struct read_ahead *ahead, struct slot *slot)
{
    cadre_element_clear(&slot->element);
    slot->ids.count = 0;
    slot->position.count = 0;
    slot->behind = ahead->unused;
    ahead->unused = slot;
}

static bool grow_ring(struct read_ahead *ahead)
{
    uint64_t capacity = ahead->capacity == 0 ? 16 : 2 * ahead->capacity;
    struct slot **ring = calloc(capacity, sizeof ring[0]);
    if (ring == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < ahead->count; i++) {
        ring[i] = *slot_at(ahead, i);
    }
    free(ahead->ring);
    ahead->ring = ring;
    ahead->capacity = capacity;
    ahead->first = 0;
    return true;
}

/* A slot at the end of the ring; NULL without memory. */
static struct slot *claim(struct read_ahead *ahead)
{
    if (ahead->count == ahead->capacity && !grow_ring(ahead)) {
        return NULL;
    }
    struct slot *slot = ahead->unused;
    if (slot == NULL) {
        slot = calloc(1, sizeof *slot);
        if (slot == NULL) {
            return NULL;
        }
        ahead->made++;
    } else {
        ahead->unused = slot->behind;
    }
    slot->read = false;
    slot->done = false;
    slot->has_position = false;
    slot->rows = 0;
    slot->rows_given = 0;
    slot->error.code = CADRE_OK;
    slot->behind = NULL;
    *slot_at(ahead, ahead->count) = slot;
    ahead->count++;
    return slot;
}

/* Takes slot `number` out of the ring; those before it move up. */
static void take_out(struct read_ahead *ahead, uint64_t number)
{
    struct slot *slot = *slot_at(ahead, number);
    for (; number > 0; number--) {
        *slot_at(ahead, number) = *slot_at(ahead, number - 1);
    }
    ahead->first = (ahead->first + 1) % ahead->capacity;
    ahead->count--;
    slot_reuse(ahead, slot);
}

/* --- the threads --- */

static bool may_read(const struct read_ahead *ahead)
{
    uint64_t rows = ahead->rows_wanted > 0 ? ahead->rows_wanted : 1;
    uint64_t most = ahead->rule.most / rows > 0 ? ahead->rule.most / rows : 1;
    if (ahead->reading || ahead->input_ended || ahead->paused || ahead->count >= most) {
        return false;
    }
    /* A depth beyond the memory is not used up: it waits for the reader. */
    bool grows = ahead->unused == NULL && ahead->count >= 2 * ahead->rule.threads;
    return !(grows && ahead->made % 64 == 0 && memory_is_short());
}

/* Without the lock. Only the thread that reads is here. */
static cadre_status read_slot(struct read_ahead *ahead, struct slot *slot)
{
    cadre_iterator *input = ahead->base.input;
    slot->position.most = POSITION_BYTES_MAX;
    if (!ahead->no_position && iterator_save(input, &slot->position, NULL) != CADRE_OK) {
        ahead->no_position = true;
    }
    slot->has_position = !ahead->no_position;
    if (ahead->rows_wanted > 0) {
        return iterator_next_rows(
            input, ahead->rows_wanted, &slot->element, &slot->rows, &slot->ids, &slot->error);
    }
    return iterator_next(input, &slot->element, &slot->ids, &slot->error);
}

/* With the lock held, which is given away meanwhile. */
static void fill_slot(struct read_ahead *ahead, struct slot *slot)
{
    ahead->reading = true;
    pthread_mutex_unlock(&ahead->lock);
    cadre_status status = read_slot(ahead, slot);
    pthread_mutex_lock(&ahead->lock);
    ahead->reading = false;
    slot->read = true;
    ahead->input_ended = status != CADRE_OK;
    if (status == CADRE_OUT_OF_RANGE) {
        ahead->count--; /* it is the last: only this thread was reading */
        slot_reuse(ahead, slot);
        pthread_cond_signal(&ahead->done);
        return;
    }
    if (status == CADRE_OK && ahead->rule.work != NULL) {
        pthread_cond_signal(&ahead->work); /* another one may read */
        pthread_mutex_unlock(&ahead->lock);
        cadre_element in = slot->element;
        slot->element = (cadre_element){0};
        status = ahead->rule.work(ahead->base.data, &in, &slot->element, &slot->error);
        pthread_mutex_lock(&ahead->lock);
        ahead->input_ended = ahead->input_ended || status != CADRE_OK;
    }
    CADRE_ASSERT(slot->error.code == status);
    slot->done = true;
    pthread_cond_signal(&ahead->done);
}

static void *serve(void *argument)
{
    struct read_ahead *ahead = argument;
    tensor_memory_prefer(ahead->kind);
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->quit) {
        struct slot *slot = may_read(ahead) ? claim(ahead) : NULL;
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

static cadre_status start(struct read_ahead *ahead, size_t rows_wanted, struct cadre_error *error)
{
    if (ahead->threads != NULL) {
        return CADRE_OK;
    }
    uint64_t most = ahead->rule.most;
    ahead->rows_wanted = (size_t)(rows_wanted < most ? rows_wanted : most);
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
                      : pthread_create(&ahead->threads[ahead->thread_count], NULL, serve, ahead);
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
static int64_t pick(struct read_ahead *ahead)
{
    for (uint64_t i = 0; i < ahead->count; i++) {
        const struct slot *slot = *slot_at(ahead, i);
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
    while ((*ret_number = pick(ahead)) < 0) {
        if (ahead->count == 0 && ahead->input_ended) {
            if (ahead->no_memory.code == CADRE_OK) {
                return iterator_end(error);
            }
            *error = ahead->no_memory;
            return error->code;
        }
        pthread_cond_wait(&ahead->done, &ahead->lock);
    }
    struct slot *slot = *slot_at(ahead, (uint64_t)*ret_number);
    if (slot->error.code != CADRE_OK) {
        *error = slot->error;
        take_out(ahead, (uint64_t)*ret_number);
        return error->code;
    }
    return CADRE_OK;
}

/* The ids that go with rows [first, first + count) of a slot of rows: one each, or else all of them
 * with the first row. */
static cadre_status give_ids(const struct slot *slot, size_t first, size_t count,
    struct id_list *ids, struct cadre_error *error)
{
    bool one_each = slot->ids.count == slot->rows && slot->rows > 0;
    if (one_each) {
        return id_list_add_range(ids, &slot->ids, first, count, error);
    }
    return id_list_add_range(ids, &slot->ids, 0, first == 0 ? slot->ids.count : 0, error);
}

/* Rows [rows_given, + count) of a slot; `alone`: without the first dimension. */
static cadre_status view_rows(const struct slot *slot, size_t count, bool alone,
    cadre_element *ret_element, struct cadre_error *error)
{
    int64_t first = (int64_t)slot->rows_given;
    for (uint32_t i = 0; i < slot->element.count; i++) {
        cadre_tensor *rows = slot->element.tensors[i];
        cadre_tensor **view = &ret_element->tensors[i];
        cadre_status status = alone ? tensor_view_row(rows, first, view, error)
                                    : tensor_view_rows(rows, first, (int64_t)count, view, error);
        if (status != CADRE_OK) {
            cadre_element_clear(ret_element);
            return status;
        }
        ret_element->count = i + 1;
    }
    return CADRE_OK;
}

/* Gives up to `wanted` rows of slot `number`, or its one element when `wanted` is 0. */
static cadre_status give(struct read_ahead *ahead, int64_t number, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct slot *slot = *slot_at(ahead, (uint64_t)number);
    size_t left = slot->rows - slot->rows_given;
    size_t count = wanted == 0 ? 1 : wanted < left ? wanted : left;
    bool whole = slot->rows == 0 || (slot->rows_given == 0 && count == slot->rows && wanted > 0);
    cadre_status status = give_ids(slot, slot->rows_given, count, ids, error);
    if (status == CADRE_OK && !whole) {
        status = view_rows(slot, count, wanted == 0, ret_element, error);
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
        take_out(ahead, (uint64_t)number);
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
    CADRE_TRY(start(ahead, 0, error));
    pthread_mutex_lock(&ahead->lock);
    cadre_status status = wait_for_slot(ahead, &number, error);
    if (status == CADRE_OK) {
        status = give(ahead, number, 0, ret_element, &count, ids, error);
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
            cadre_element_clear(element);
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
    CADRE_TRY(start(ahead, wanted, error));
    pthread_mutex_lock(&ahead->lock);
    cadre_status status = wait_for_slot(ahead, &number, error);
    bool alone = status == CADRE_OK && (*slot_at(ahead, (uint64_t)number))->rows == 0;
    if (status == CADRE_OK) {
        status = give(ahead, number, wanted, ret_element, ret_count, ids, error);
    }
    pthread_mutex_unlock(&ahead->lock);
    if (status == CADRE_OK && alone) {
        *ret_count = 1;
        status = as_row(ret_element, error);
    }
    return status;
}

/* --- where it stands --- */

enum saved_as {
    SAVED_POSITION, /* where the input stood before the first slot, and rows of it that were given
                     */
    SAVED_SLOTS     /* the slots, then whether the input has ended, else where it stands */
};

/* With the lock held. */
static cadre_status save_position(
    struct read_ahead *ahead, struct saved_writer *writer, struct cadre_error *error)
{
    const struct slot *slot = *slot_at(ahead, 0);
    CADRE_TRY(saved_write_number(writer, SAVED_POSITION, error));
    CADRE_TRY(saved_write_number(writer, slot->rows_given, error));
    return saved_write_bytes(writer, slot->position.bytes, slot->position.count, error);
}

static cadre_status save_slot(
    const struct slot *slot, struct saved_writer *writer, struct cadre_error *error)
{
    CADRE_TRY(saved_write_number(writer, (uint64_t)slot->error.code, error));
    if (slot->error.code != CADRE_OK) {
        return saved_write_bytes(writer, slot->error.text, strlen(slot->error.text), error);
    }
    cadre_element rest = {0};
    struct id_list ids = {0};
    size_t left = slot->rows - slot->rows_given;
    if (slot->rows_given > 0) {
        CADRE_TRY(view_rows(slot, left, false, &rest, error));
    }
    cadre_status status = give_ids(slot, slot->rows_given, left, &ids, error);
    status = status == CADRE_OK ? saved_write_number(writer, left, error) : status;
    status = status == CADRE_OK
                 ? saved_write_element(writer, rest.count > 0 ? &rest : &slot->element, error)
                 : status;
    status = status == CADRE_OK ? saved_write_ids(writer, &ids, error) : status;
    cadre_element_clear(&rest);
    id_list_clear(&ids);
    return status;
}

/* With the lock held, and nothing at work. */
static cadre_status save_slots(
    struct read_ahead *ahead, struct saved_writer *writer, struct cadre_error *error)
{
    CADRE_TRY(saved_write_number(writer, SAVED_SLOTS, error));
    CADRE_TRY(saved_write_number(writer, ahead->count, error));
    for (uint64_t i = 0; i < ahead->count; i++) {
        CADRE_TRY(save_slot(*slot_at(ahead, i), writer, error));
    }
    CADRE_TRY(saved_write_number(writer, ahead->input_ended, error));
    return ahead->input_ended ? CADRE_OK : iterator_save(ahead->base.input, writer, error);
}

static bool all_done(struct read_ahead *ahead)
{
    for (uint64_t i = 0; i < ahead->count; i++) {
        if (!(*slot_at(ahead, i))->done) {
            return false;
        }
    }
    return !ahead->reading;
}

static cadre_status ahead_save(
    cadre_iterator *self, struct saved_writer *writer, struct cadre_error *error)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    pthread_mutex_lock(&ahead->lock);
    while (ahead->count > 0 && !(*slot_at(ahead, 0))->read) {
        pthread_cond_wait(&ahead->done, &ahead->lock);
    }
    cadre_status status = CADRE_OK;
    if (ahead->count > 0 && (*slot_at(ahead, 0))->has_position && !ahead->rule.unordered) {
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
    struct read_ahead *ahead, struct saved_reader *reader, struct cadre_error *error)
{
    uint64_t given = 0;
    uint64_t skipped = 0;
    const void *bytes = NULL;
    struct saved_reader position = {0};
    CADRE_TRY(saved_read_number(reader, &given, error));
    CADRE_TRY(saved_read_bytes(reader, &bytes, &position.count, error));
    position.bytes = bytes;
    CADRE_TRY(iterator_restore(ahead->base.input, &position, error));
    return given == 0 ? CADRE_OK : iterator_skip(ahead->base.input, given, &skipped, error);
}

static cadre_status restore_failure(
    struct slot *slot, uint64_t code, struct saved_reader *reader, struct cadre_error *error)
{
    const void *text = NULL;
    size_t bytes = 0;
    CADRE_TRY(saved_read_bytes(reader, &text, &bytes, error));
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
    struct read_ahead *ahead, const struct slot *slot, struct cadre_error *error)
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
    struct read_ahead *ahead, struct saved_reader *reader, struct cadre_error *error)
{
    uint64_t code = 0;
    uint64_t rows = 0;
    CADRE_TRY(saved_read_number(reader, &code, error));
    struct slot *slot = claim(ahead);
    if (slot == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a saved element");
    }
    slot->read = true;
    slot->done = true;
    if (code != CADRE_OK) {
        ahead->input_ended = true;
        return restore_failure(slot, code, reader, error);
    }
    CADRE_TRY(saved_read_number(reader, &rows, error));
    CADRE_TRY(saved_read_element(reader, &slot->element, error));
    CADRE_TRY(saved_read_ids(reader, &slot->ids, error));
    slot->rows = (size_t)rows;
    return check_element(ahead, slot, error);
}

static cadre_status ahead_restore(
    cadre_iterator *self, struct saved_reader *reader, struct cadre_error *error)
{
    struct read_ahead *ahead = (struct read_ahead *)self;
    uint64_t as = 0;
    uint64_t count = 0;
    uint64_t ended = 0;
    CADRE_ASSERT(ahead->threads == NULL);
    CADRE_TRY(saved_read_number(reader, &as, error));
    if (as == SAVED_POSITION) {
        return restore_position(ahead, reader, error);
    }
    CADRE_TRY(saved_read_number(reader, &count, error));
    for (uint64_t i = 0; i < count; i++) {
        CADRE_TRY(restore_slot(ahead, reader, error));
    }
    CADRE_TRY(saved_read_number(reader, &ended, error));
    ahead->input_ended = ahead->input_ended || ended != 0;
    return ended != 0 ? CADRE_OK : iterator_restore(ahead->base.input, reader, error);
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
    while (ahead->count > 0) {
        take_out(ahead, 0);
    }
    while (ahead->unused != NULL) {
        struct slot *slot = ahead->unused;
        ahead->unused = slot->behind;
        slot_free(slot);
    }
    free(ahead->ring);
    free(ahead->threads);
    pthread_cond_destroy(&ahead->done);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->lock);
}

#define AHEAD_OPS                                                                                  \
    .next = ahead_next, .save = ahead_save, .restore = ahead_restore, .saves_input = true,         \
    .destroy = ahead_destroy

static const struct iterator_ops element_ops = {AHEAD_OPS};
static const struct iterator_ops rows_ops = {AHEAD_OPS, .next_rows = ahead_next_rows};

cadre_status read_ahead_iterate(cadre_dataset *self, const struct pass *pass,
    const struct read_ahead_rule *rule, cadre_iterator **ret_iterator, struct cadre_error *error)
{
    CADRE_ASSERT(rule->threads >= 1 && rule->most >= rule->threads);
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
