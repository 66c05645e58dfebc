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

static void repeat_locate(const cadre_dataset *self, struct place places[], size_t count)
{
    const struct repeat_dataset *repeat = (const struct repeat_dataset *)self;
    int64_t elements = dataset_cardinality(self->input);
    for (size_t i = 0; i < count; i++) {
        uint64_t passed = elements < 0 ? 0 : places[i].index / (uint64_t)elements;
        places[i].epoch = pass_epoch(repeat, places[i].epoch, passed);
        places[i].index -= elements < 0 ? 0 : passed * (uint64_t)elements;
    }
}

static cadre_status repeat_next(cadre_iterator *self, cadre_element *ret_element,
    struct id_list *ids, struct cadre_error *error)
{
    struct repeat_iterator *iterator = (struct repeat_iterator *)self;
    const struct repeat_dataset *repeat = (const struct repeat_dataset *)self->data;
    while (repeat->count == CADRE_REPEAT_FOREVER || iterator->pass < (uint64_t)repeat->count) {
        if (self->input == NULL) {
            uint64_t epoch = pass_epoch(repeat, self->pass.epoch, iterator->pass);
            iterator->pass_gave = false;
            const struct pass pass = {.epoch = epoch, .ordered = self->pass.ordered};
            CADRE_TRY(dataset_iterate(self->data->input, &pass, &self->input, error));
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

static cadre_status repeat_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error)
{
    return iterator_new(sizeof(struct repeat_iterator), &repeat_iterator_ops, self, pass, NULL,
        ret_iterator, error);
}

static int64_t repeat_cardinality(const cadre_dataset *self)
{
    int64_t count = ((const struct repeat_dataset *)self)->count;
    int64_t elements = dataset_cardinality(self->input);
    if (count == 0 || elements == 0) {
        return 0;
    }
    if (count == CADRE_REPEAT_FOREVER) {
        return CADRE_CARDINALITY_INFINITE;
    }
    if (elements > 0 && __builtin_mul_overflow(elements, count, &elements)) {
        return CADRE_CARDINALITY_INFINITE; /* nobody reads so far */
    }
    return elements;
}

static cadre_dataset *repeat_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    return cadre_dataset_repeat(inputs[0], ((const struct repeat_dataset *)self)->count);
}

static void repeat_describe(const cadre_dataset *self, struct description *text)
{
    int64_t count = ((const struct repeat_dataset *)self)->count;
    if (count == CADRE_REPEAT_FOREVER) {
        description_add(text, "forever");
    } else {
        description_add(text, "%" PRId64 " times", count);
    }
}

static const struct dataset_ops repeat_ops = {
    .name = "repeat",
    .rebuild = repeat_rebuild,
    .describe = repeat_describe,
    .cardinality = repeat_cardinality,
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
    int64_t elements = dataset_cardinality(data);
    if (elements > 0 && count > 0 && __builtin_mul_overflow(elements, count, &elements)) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "repeat: %" PRId64 " times %" PRId64
            " elements are more than can be counted; use CADRE_REPEAT_FOREVER",
            count, dataset_cardinality(data));
        return dataset_failed(data, &error);
    }
    struct repeat_dataset *repeat = dataset_new(sizeof *repeat, &repeat_ops, data);
    if (repeat == NULL) {
        return NULL;
    }
    repeat->count = count;
    return &repeat->base;
}
