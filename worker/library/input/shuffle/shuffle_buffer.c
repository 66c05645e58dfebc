/* SPDX-License-Identifier: Apache-2.0
 * The shuffle with a buffer: keeps a number of elements, gives one of them at random, and takes the
 * next of the input in. Its order is fixed by (seed, epoch) but known only by reading. */
#include "worker/library/input/shuffle/shuffle_buffer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/device/machine_memory.h"
#include "worker/library/input/node/available_memory.h"
#include "worker/library/input/node/element_stack.h"
#include "worker/library/input/shuffle/shuffle.h"

/* Larger elements of a fixed size are held as the tensors that they came in: copying them twice
 * costs more than a tensor each. */
#define ROW_BYTES_MAX 4096

/* How much is read ahead of the buffer, and given at once. */
#define BLOCK_BYTES  ((size_t)64 << 10)
#define BLOCK_ROWS   256
#define OUTPUT_BYTES ((size_t)4 << 20)
#define OUTPUT_ROWS  4096

/* Draws that are made ahead, so that the slots are on their way. */
#define DRAWS_AHEAD 16

/* Whether there is memory left is looked up once in so many bytes. */
#define BYTES_BETWEEN_CHECKS ((uint64_t)64 << 20)

/* --- slots --- */

static cadre_element *slot_element(const struct row_slot *slot)
{
    return (cadre_element *)(void *)slot->memory;
}

void shuffle_buffer_slot_clear(struct shuffle_buffer_iterator *iterator, struct row_slot *slot)
{
    if (!iterator->by_rows && slot->memory != NULL) {
        cadre_element_release(slot_element(slot));
    }
    row_slot_clear(slot, &iterator->memory);
}

static void buffer_destroy(cadre_iterator *self)
{
    struct shuffle_buffer_iterator *iterator = (struct shuffle_buffer_iterator *)self;
    for (uint64_t i = 0; i < iterator->held_count; i++) {
        shuffle_buffer_slot_clear(iterator, &iterator->held[i]);
    }
    for (size_t i = 0; i < iterator->drawn_count; i++) {
        shuffle_buffer_slot_clear(iterator, &iterator->drawn[i]);
    }
    free(iterator->held);
    free(iterator->drawn);
    slab_allocator_clear(&iterator->memory);
    cadre_element_release(&iterator->incoming);
    id_list_clear(&iterator->incoming_ids);
}

/* What was drawn has been given. */
static void clear_drawn(struct shuffle_buffer_iterator *iterator)
{
    for (size_t i = 0; i < iterator->drawn_count; i++) {
        shuffle_buffer_slot_clear(iterator, &iterator->drawn[i]);
    }
    iterator->drawn_count = 0;
}

static cadre_status reserve_drawn(
    struct shuffle_buffer_iterator *iterator, size_t count, struct cadre_error *error)
{
    if (count <= iterator->drawn_capacity) {
        return CADRE_OK;
    }
    struct row_slot *drawn = realloc(iterator->drawn, count * sizeof drawn[0]);
    if (drawn == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "shuffle: no memory to give %zu elements", count);
    }
    iterator->drawn = drawn;
    iterator->drawn_capacity = count;
    return CADRE_OK;
}

cadre_status shuffle_buffer_put_element(struct shuffle_buffer_iterator *iterator,
    struct row_slot *slot, cadre_element *element, struct cadre_error *error)
{
    slot->memory = slab_alloc(&iterator->memory, sizeof *element);
    if (slot->memory == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "shuffle: no memory to hold an element");
    }
    slot->bytes = sizeof *element;
    *slot_element(slot) = *element;
    *element = (cadre_element){0};
    return CADRE_OK;
}

/* --- what comes --- */

static size_t rows_within(size_t bytes, size_t row_bytes, size_t limit)
{
    size_t rows = bytes / (row_bytes > 0 ? row_bytes : 1);
    return rows < 1 ? 1 : rows < limit ? rows : limit;
}

static cadre_status read_block(struct shuffle_buffer_iterator *iterator, struct cadre_error *error)
{
    size_t count = 1;
    size_t wanted = iterator->block_rows > 0 ? iterator->block_rows : 1;
    cadre_element_release(&iterator->incoming);
    iterator->incoming_ids.count = 0;
    iterator->incoming_at = 0;
    iterator->incoming_count = 0;
    cadre_status status = iterator->by_rows
                              ? iterator_next_rows(iterator->base.input, wanted,
                                    &iterator->incoming, &count, &iterator->incoming_ids, error)
                              : iterator_next(iterator->base.input, &iterator->incoming,
                                    &iterator->incoming_ids, error);
    iterator->input_ended = status == CADRE_OUT_OF_RANGE;
    if (status != CADRE_OK) {
        return iterator->input_ended ? CADRE_OK : status;
    }
    iterator->incoming_count = count;
    return iterator->by_rows ? row_block_init(&iterator->block, &iterator->layout,
                                   &iterator->incoming, count, error)
                             : CADRE_OK;
}

static cadre_status set_ids(const struct shuffle_buffer_iterator *iterator, struct row_slot *slot,
    struct cadre_error *error)
{
    const struct id_list *ids = &iterator->incoming_ids;
    if (ids->count == iterator->incoming_count) {
        slot->id = ids->ids[iterator->incoming_at];
        return CADRE_OK;
    }
    return row_slot_set_ids(slot, ids->ids, iterator->incoming_at == 0 ? ids->count : 0, error);
}

/* Puts the next row that has come into an empty slot. */
static cadre_status take_incoming(
    struct shuffle_buffer_iterator *iterator, struct row_slot *slot, struct cadre_error *error)
{
    CADRE_ASSERT(iterator->incoming_at < iterator->incoming_count);
    CADRE_TRY(iterator->by_rows
                  ? row_slot_put(slot, &iterator->layout, &iterator->block, iterator->incoming_at,
                        &iterator->memory, error)
                  : shuffle_buffer_put_element(iterator, slot, &iterator->incoming, error));
    CADRE_TRY(set_ids(iterator, slot, error));
    iterator->incoming_at++;
    return CADRE_OK;
}

/* --- the buffer --- */

static uint64_t held_bytes(
    const struct shuffle_buffer_iterator *iterator, const struct row_slot *slot)
{
    return sizeof *slot + slot->bytes +
           (iterator->by_rows ? 0 : element_memory_bytes(slot_element(slot)));
}

/* The first element tells what the others will take: refused before it has taken all there is. */
static cadre_status look_at_first(struct shuffle_buffer_iterator *iterator,
    const struct row_slot *slot, struct cadre_error *error)
{
    int64_t size = ((const struct shuffle_buffer_dataset *)iterator->base.data)->buffer_size;
    int64_t elements = dataset_cardinality(iterator->base.data->input);
    uint64_t bytes = held_bytes(iterator, slot);
    uint64_t memory = machine_memory();
    uint64_t total = 0;
    /* Elements of several samples come one by one, so that each keeps its own. */
    iterator->block_rows =
        slot->ids != NULL ? 1 : rows_within(BLOCK_BYTES, slot->bytes, BLOCK_ROWS);
    size = elements >= 0 && elements < size ? elements : size;
    if (elements == CADRE_CARDINALITY_UNKNOWN ||
        (!__builtin_mul_overflow((uint64_t)size, bytes, &total) && total <= memory)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "shuffle: a buffer of %" PRId64 " elements of about %" PRIu64
        " bytes does not fit into this machine's memory of %" PRIu64
        " bytes; give a smaller buffer, or shuffle all of an indexable dataset",
        size, bytes, memory);
}

/* Where the size of the input is not known: stops while there is memory left. */
static cadre_status look_at_memory(struct shuffle_buffer_iterator *iterator,
    const struct row_slot *slot, struct cadre_error *error)
{
    iterator->bytes_since_check += held_bytes(iterator, slot);
    if (iterator->bytes_since_check < BYTES_BETWEEN_CHECKS) {
        return CADRE_OK;
    }
    iterator->bytes_since_check = 0;
    if (available_memory_is_low()) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "shuffle: this machine's memory runs out with %" PRIu64 " of %" PRId64
            " elements in the buffer, of about %" PRIu64
            " bytes each; give a smaller buffer, or shuffle all of an indexable dataset",
            iterator->held_count,
            ((const struct shuffle_buffer_dataset *)iterator->base.data)->buffer_size,
            held_bytes(iterator, slot));
    }
    return CADRE_OK;
}

/* The buffer grows with what comes, so that a size beyond the data costs nothing. */
cadre_status shuffle_buffer_add(
    struct shuffle_buffer_iterator *iterator, struct row_slot *slot, struct cadre_error *error)
{
    if (iterator->held_count == iterator->capacity) {
        uint64_t capacity = iterator->capacity == 0 ? 64 : 2 * iterator->capacity;
        struct row_slot *held = realloc(iterator->held, capacity * sizeof held[0]);
        if (held == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "shuffle: no memory to hold %" PRIu64 " elements; give a smaller buffer", capacity);
        }
        iterator->held = held;
        iterator->capacity = capacity;
    }
    iterator->held[iterator->held_count++] = *slot;
    *slot = (struct row_slot){0}; /* it is held now, whatever is found */
    return look_at_memory(iterator, &iterator->held[iterator->held_count - 1], error);
}

/* Reads until a row waits, or there are no more. */
static cadre_status need_incoming(
    struct shuffle_buffer_iterator *iterator, struct cadre_error *error)
{
    if (iterator->incoming_at < iterator->incoming_count || iterator->input_ended) {
        return CADRE_OK;
    }
    return read_block(iterator, error);
}

static cadre_status shuffle_buffer_fill(
    struct shuffle_buffer_iterator *iterator, struct cadre_error *error)
{
    int64_t size = ((const struct shuffle_buffer_dataset *)iterator->base.data)->buffer_size;
    while (iterator->held_count < (uint64_t)size) {
        CADRE_TRY(need_incoming(iterator, error));
        if (iterator->incoming_at == iterator->incoming_count) {
            return CADRE_OK;
        }
        struct row_slot slot = {0};
        cadre_status status = take_incoming(iterator, &slot, error);
        if (status == CADRE_OK && iterator->block_rows == 0) {
            status = look_at_first(iterator, &slot, error);
        }
        if (status == CADRE_OK) {
            status = shuffle_buffer_add(iterator, &slot, error);
        }
        if (status != CADRE_OK) {
            shuffle_buffer_slot_clear(iterator, &slot);
            return status;
        }
    }
    return CADRE_OK;
}

/* Draws `count` elements, at most DRAWS_AHEAD. The last one held goes to the place of the one that
 * was drawn, and a row that has come becomes the last. */
static cadre_status draw_and_replace(
    struct shuffle_buffer_iterator *iterator, size_t count, struct cadre_error *error)
{
    uint64_t positions[DRAWS_AHEAD];
    for (size_t i = 0; i < count; i++) {
        positions[i] = prng_uniform(&iterator->prng, iterator->held_count);
        __builtin_prefetch(&iterator->held[positions[i]], 1);
    }
    struct row_slot *last = &iterator->held[iterator->held_count - 1];
    for (size_t i = 0; i < count; i++) {
        struct row_slot *slot = &iterator->held[positions[i]];
        iterator->drawn[iterator->drawn_count++] = *slot;
        row_slot_prefetch(slot);
        *slot = *last;
        *last = (struct row_slot){0};
        CADRE_TRY(take_incoming(iterator, last, error));
    }
    return CADRE_OK;
}

/* Draws `wanted` elements, fewer only at the end. */
static cadre_status shuffle_buffer_draw(
    struct shuffle_buffer_iterator *iterator, size_t wanted, struct cadre_error *error)
{
    CADRE_ASSERT(iterator->drawn_count == 0);
    CADRE_TRY(reserve_drawn(iterator, wanted, error));
    CADRE_TRY(shuffle_buffer_fill(iterator, error));
    while (iterator->drawn_count < wanted && iterator->held_count > 0) {
        CADRE_TRY(need_incoming(iterator, error));
        size_t left = wanted - iterator->drawn_count;
        size_t come = iterator->incoming_count - iterator->incoming_at;
        if (come > 0) {
            size_t count = left < come ? left : come;
            CADRE_TRY(draw_and_replace(iterator, count < DRAWS_AHEAD ? count : DRAWS_AHEAD, error));
        } else {
            uint64_t position = prng_uniform(&iterator->prng, iterator->held_count);
            iterator->drawn[iterator->drawn_count++] = iterator->held[position];
            iterator->held[position] = iterator->held[--iterator->held_count];
        }
    }
    return CADRE_OK;
}

/* --- the iterator --- */

static cadre_status buffer_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct shuffle_buffer_iterator *iterator = (struct shuffle_buffer_iterator *)self;
    CADRE_TRY(shuffle_buffer_draw(iterator, 1, error));
    if (iterator->drawn_count == 0) {
        return iterator_end(error);
    }
    struct row_slot *slot = &iterator->drawn[0];
    CADRE_TRY(row_slots_add_ids(slot, 1, ids, error));
    if (iterator->by_rows) {
        CADRE_TRY(row_slot_element(slot, &iterator->layout, ret_element, error));
    } else {
        *ret_element = *slot_element(slot);
        *slot_element(slot) = (cadre_element){0};
    }
    clear_drawn(iterator);
    return CADRE_OK;
}

static cadre_status buffer_next_rows(cadre_iterator *self, size_t wanted,
    cadre_element *ret_element, size_t *ret_count, struct id_list *ids, struct cadre_error *error)
{
    struct shuffle_buffer_iterator *iterator = (struct shuffle_buffer_iterator *)self;
    size_t row_bytes = iterator->held_count > 0 ? iterator->held[0].bytes : ROW_BYTES_MAX;
    size_t limit = rows_within(OUTPUT_BYTES, row_bytes, OUTPUT_ROWS);
    CADRE_TRY(shuffle_buffer_draw(iterator, wanted < limit ? wanted : limit, error));
    size_t count = iterator->drawn_count;
    if (count == 0) {
        return iterator_end(error);
    }
    CADRE_TRY(row_slots_add_ids(iterator->drawn, count, ids, error));
    CADRE_TRY(row_slots_stack(iterator->drawn, count, &iterator->layout, ret_element, error));
    clear_drawn(iterator);
    *ret_count = count;
    return CADRE_OK;
}

static cadre_status buffer_skip(
    cadre_iterator *self, uint64_t count, uint64_t *ret_skipped, struct cadre_error *error)
{
    struct shuffle_buffer_iterator *iterator = (struct shuffle_buffer_iterator *)self;
    while (*ret_skipped < count) {
        uint64_t left = count - *ret_skipped;
        CADRE_TRY(
            shuffle_buffer_draw(iterator, left < BLOCK_ROWS ? (size_t)left : BLOCK_ROWS, error));
        if (iterator->drawn_count == 0) {
            break;
        }
        *ret_skipped += iterator->drawn_count;
        clear_drawn(iterator);
    }
    return CADRE_OK;
}

static const struct iterator_ops element_ops = {
    .next = buffer_next,
    .skip = buffer_skip,
    .save = shuffle_buffer_save,
    .restore = shuffle_buffer_restore,
    .destroy = buffer_destroy,
};

static const struct iterator_ops row_ops = {
    .next = buffer_next,
    .next_rows = buffer_next_rows,
    .skip = buffer_skip,
    .save = shuffle_buffer_save,
    .restore = shuffle_buffer_restore,
    .destroy = buffer_destroy,
};

/* Whether elements are kept as bytes: worth it where they need not be made tensors at all. What the
 * spec fails with, reading meets again; but not that there was no memory to find it. */
static cadre_status keeps_rows(cadre_dataset *input, const cadre_iterator *reading,
    struct row_layout *layout, bool *ret_rows, struct cadre_error *error)
{
    cadre_element_spec spec;
    struct cadre_error unsaid = {0};
    *ret_rows = false;
    if (reading->ops->next_rows == NULL) {
        return CADRE_OK;
    }
    if (dataset_spec(input, &spec, &unsaid) == CADRE_RESOURCE_EXHAUSTED) {
        return cadre_error_set(error, unsaid.code, "shuffle: %s", unsaid.text);
    }
    *ret_rows = unsaid.code == CADRE_OK && element_spec_is_uniform(&spec) &&
                row_layout_init(layout, &spec, &unsaid) == CADRE_OK &&
                (layout->string_count > 0 || layout->fixed_bytes <= ROW_BYTES_MAX);
    return CADRE_OK;
}

static cadre_status buffer_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    const struct shuffle_buffer_dataset *buffer = (const struct shuffle_buffer_dataset *)self;
    CADRE_TRY(iterator_new(sizeof(struct shuffle_buffer_iterator), &element_ops, self, pass, pass,
        ret_iterator, error));
    struct shuffle_buffer_iterator *iterator = (struct shuffle_buffer_iterator *)*ret_iterator;
    uint64_t epoch = buffer->once ? 0 : pass->epoch;
    iterator->prng.state = prng_mix(prng_mix(buffer->seed) ^ epoch);
    cadre_status status =
        keeps_rows(self->input, iterator->base.input, &iterator->layout, &iterator->by_rows, error);
    if (status != CADRE_OK) {
        cadre_iterator_release(*ret_iterator);
        *ret_iterator = NULL;
        return status;
    }
    if (iterator->by_rows) {
        iterator->base.ops = &row_ops;
    }
    return CADRE_OK;
}

/* --- the node --- */

static cadre_dataset *buffer_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct shuffle_buffer_dataset *buffer = (const struct shuffle_buffer_dataset *)self;
    return shuffle_buffered(inputs[0], buffer->buffer_size, buffer->seed, buffer->once);
}

static void buffer_describe(const cadre_dataset *self, struct description *text)
{
    const struct shuffle_buffer_dataset *buffer = (const struct shuffle_buffer_dataset *)self;
    description_add(text, "buffer of %" PRId64 ", seed %" PRIu64 "%s", buffer->buffer_size,
        buffer->seed, buffer->once ? ", one order" : "");
}

static const struct dataset_ops buffer_ops = {
    .name = "shuffle",
    .rebuild = buffer_rebuild,
    .describe = buffer_describe,
    .iterate = buffer_iterate,
    .keeps_elements = true,
};

cadre_dataset *shuffle_buffered(cadre_dataset *data, int64_t buffer_size, uint64_t seed, bool once)
{
    if (!dataset_usable(data)) {
        return data;
    }
    struct shuffle_buffer_dataset *buffer = dataset_new(sizeof *buffer, &buffer_ops, data);
    if (buffer == NULL) {
        return NULL;
    }
    buffer->base.indexable = false;
    buffer->buffer_size = buffer_size;
    buffer->seed = seed;
    buffer->once = once;
    return &buffer->base;
}
