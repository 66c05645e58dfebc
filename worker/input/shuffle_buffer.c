/* SPDX-License-Identifier: Apache-2.0
 * The shuffle with a buffer: keeps a number of elements, gives one of them at random, and puts the
 * next of the input in its place. Its order is fixed by (seed, epoch) but known only by reading. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/pure/prng.h"
#include "worker/input/node.h"
#include "worker/input/shuffle.h"

struct buffer_dataset {
    cadre_dataset base;
    int64_t buffer_size;
    uint64_t seed;
};

struct held {
    cadre_element element;
    struct id_list ids;
};

struct buffer_iterator {
    cadre_iterator base;
    struct prng prng;
    struct held *held;
    uint64_t held_count;
    uint64_t capacity;
    bool input_ended;
};

static void buffer_destroy(cadre_iterator *self)
{
    struct buffer_iterator *iterator = (struct buffer_iterator *)self;
    for (uint64_t i = 0; i < iterator->held_count; i++) {
        cadre_element_clear(&iterator->held[i].element);
        id_list_clear(&iterator->held[i].ids);
    }
    free(iterator->held);
}

/* The buffer grows with what comes, so that a size beyond the data costs nothing. */
static cadre_status grow(struct buffer_iterator *iterator, struct cadre_error *error)
{
    if (iterator->held_count < iterator->capacity) {
        return CADRE_OK;
    }
    uint64_t capacity = iterator->capacity == 0 ? 64 : 2 * iterator->capacity;
    struct held *held = realloc(iterator->held, capacity * sizeof held[0]);
    if (held == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "shuffle: no memory to hold %" PRIu64 " elements; give a smaller buffer", capacity);
    }
    iterator->held = held;
    iterator->capacity = capacity;
    return CADRE_OK;
}

static cadre_status fill(struct buffer_iterator *iterator, struct cadre_error *error)
{
    int64_t size = ((const struct buffer_dataset *)iterator->base.data)->buffer_size;
    while (!iterator->input_ended && iterator->held_count < (uint64_t)size) {
        struct held next = {0};
        CADRE_TRY(grow(iterator, error));
        cadre_status status = iterator_next(iterator->base.input, &next.element, &next.ids, error);
        if (status != CADRE_OK) {
            id_list_clear(&next.ids);
            iterator->input_ended = status == CADRE_OUT_OF_RANGE;
            if (!iterator->input_ended) {
                return status;
            }
        } else {
            iterator->held[iterator->held_count++] = next;
        }
    }
    return CADRE_OK;
}

static cadre_status buffer_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct buffer_iterator *iterator = (struct buffer_iterator *)self;
    CADRE_TRY(fill(iterator, error));
    if (iterator->held_count == 0) {
        return iterator_end(error);
    }
    uint64_t drawn = prng_below(&iterator->prng, iterator->held_count);
    struct held *held = &iterator->held[drawn];
    CADRE_TRY(id_list_add_range(ids, &held->ids, 0, held->ids.count, error));
    *ret_element = held->element;
    id_list_clear(&held->ids);
    *held = iterator->held[--iterator->held_count];
    return CADRE_OK;
}

static const struct iterator_ops buffer_iterator_ops = {
    .next = buffer_next, .destroy = buffer_destroy};

static cadre_status buffer_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    uint64_t seed = ((const struct buffer_dataset *)self)->seed;
    CADRE_TRY(iterator_new(sizeof(struct buffer_iterator), &buffer_iterator_ops, self, pass, pass,
        ret_iterator, error));
    struct buffer_iterator *iterator = (struct buffer_iterator *)*ret_iterator;
    iterator->prng.state = prng_mix(prng_mix(seed) ^ pass->epoch);
    return CADRE_OK;
}

static cadre_dataset *buffer_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct buffer_dataset *buffer = (const struct buffer_dataset *)self;
    return cadre_dataset_shuffle(inputs[0], buffer->buffer_size, buffer->seed);
}

static void buffer_describe(const cadre_dataset *self, struct description *text)
{
    const struct buffer_dataset *buffer = (const struct buffer_dataset *)self;
    description_add(
        text, "buffer of %" PRId64 ", seed %" PRIu64, buffer->buffer_size, buffer->seed);
}

static const struct dataset_ops buffer_ops = {
    .name = "shuffle",
    .rebuild = buffer_rebuild,
    .describe = buffer_describe,
    .iterate = buffer_iterate,
    .keeps_elements = true,
};

cadre_dataset *shuffle_buffered(cadre_dataset *data, int64_t buffer_size, uint64_t seed)
{
    struct buffer_dataset *buffer = dataset_new(sizeof *buffer, &buffer_ops, data);
    if (buffer == NULL) {
        return NULL;
    }
    buffer->base.indexable = false;
    buffer->buffer_size = buffer_size;
    buffer->seed = seed;
    return &buffer->base;
}
