/* SPDX-License-Identifier: Apache-2.0
 * The transformation that gives the elements several times over. Each pass is an epoch of its own
 * to the nodes before it, so that a shuffle there gives another order. */
#include <inttypes.h>

#include "worker/input/node.h"

struct repeat_dataset {
    cadre_dataset base;
    int64_t count; /* or CADRE_REPEAT_FOREVER */
};

struct repeat_iterator {
    cadre_iterator base; /* `input` is the iterator of the pass at hand */
    uint64_t epoch;
    uint64_t pass;
    bool pass_gave; /* an element: endless passes over nothing must end */
};

/* The epoch of the input in pass `pass` of epoch `epoch`: epochs follow on each other without a
 * gap. An endless repeat has 2^32 passes to an epoch. */
static uint64_t pass_epoch(const struct repeat_dataset *repeat, uint64_t epoch, uint64_t pass)
{
    uint64_t passes =
        repeat->count == CADRE_REPEAT_FOREVER ? UINT64_C(1) << 32 : (uint64_t)repeat->count;
    return epoch * passes + pass;
}

static struct place repeat_locate(const cadre_dataset *self, struct place place)
{
    const struct repeat_dataset *repeat = (const struct repeat_dataset *)self;
    int64_t elements = self->input->cardinality;
    if (elements < 0) {
        return (struct place){place.index, pass_epoch(repeat, place.epoch, 0)};
    }
    return (struct place){
        .index = place.index % (uint64_t)elements,
        .epoch = pass_epoch(repeat, place.epoch, place.index / (uint64_t)elements),
    };
}

static cadre_status repeat_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct repeat_iterator *iterator = (struct repeat_iterator *)self;
    const struct repeat_dataset *repeat = (const struct repeat_dataset *)self->data;
    while (repeat->count == CADRE_REPEAT_FOREVER || iterator->pass < (uint64_t)repeat->count) {
        if (self->input == NULL) {
            uint64_t epoch = pass_epoch(repeat, iterator->epoch, iterator->pass);
            iterator->pass_gave = false;
            CADRE_TRY(dataset_iterate(self->data->input, epoch, &self->input, error));
        }
        cadre_status status = iterator_next(self->input, ret_element, ids, error);
        if (status != CADRE_OUT_OF_RANGE) {
            iterator->pass_gave = true;
            return status;
        }
        if (!iterator->pass_gave) {
            break;
        }
        cadre_iterator_free(self->input);
        self->input = NULL;
        iterator->pass++;
    }
    return iterator_end(error);
}

static const struct iterator_ops repeat_iterator_ops = {.next = repeat_next};

static cadre_status repeat_iterate(
    cadre_dataset *self, uint64_t epoch, cadre_iterator **ret_iterator, struct cadre_error *error)
{
    CADRE_TRY(iterator_new(
        sizeof(struct repeat_iterator), &repeat_iterator_ops, self, NULL, ret_iterator, error));
    ((struct repeat_iterator *)*ret_iterator)->epoch = epoch;
    return CADRE_OK;
}

static const struct dataset_ops repeat_ops = {
    .name = "repeat",
    .locate = repeat_locate,
    .iterate = repeat_iterate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_repeat(cadre_dataset *data, int64_t count)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (count < CADRE_REPEAT_FOREVER) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "repeat: count %" PRId64 "; give 0 or more, or CADRE_REPEAT_FOREVER", count);
        return dataset_failed(data, &error);
    }
    int64_t elements = data->cardinality;
    if (count == 0 || elements == 0) {
        elements = 0;
    } else if (count == CADRE_REPEAT_FOREVER) {
        elements = CADRE_CARDINALITY_INFINITE;
    } else if (elements > 0 && __builtin_mul_overflow(elements, count, &elements)) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "repeat: %" PRId64 " times %" PRId64
            " elements are more than can be counted; use CADRE_REPEAT_FOREVER",
            count, data->cardinality);
        return dataset_failed(data, &error);
    }
    struct repeat_dataset *repeat = dataset_new(sizeof *repeat, &repeat_ops, data);
    if (repeat == NULL) {
        return NULL;
    }
    repeat->count = count;
    repeat->base.cardinality = elements;
    return &repeat->base;
}
