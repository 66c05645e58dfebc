/* SPDX-License-Identifier: Apache-2.0
 * The source that counts: start, start + step, ... */
#include <inttypes.h>

#include "worker/library/device/tensor.h"
#include "worker/library/input/node/source.h"

struct range_dataset {
    cadre_dataset base;
    int64_t start;
    int64_t step;
};

static cadre_status range_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    (void)inputs;
    (void)error;
    *ret_spec = (cadre_element_spec){.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    return CADRE_OK;
}

/* In unsigned arithmetic: the product may pass 2^63 on its way to a value that does not. */
static int64_t value_at(const struct range_dataset *range, uint64_t index)
{
    return (int64_t)((uint64_t)range->start + index * (uint64_t)range->step);
}

static cadre_status range_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    int64_t value = value_at((const struct range_dataset *)self, position.index);
    CADRE_TRY(id_list_add(ids, position.index, error));
    CADRE_TRY(tensor_from_data(CADRE_I64, 0, NULL, &value, &ret_element->tensors[0], error));
    ret_element->count = 1;
    return CADRE_OK;
}

static cadre_status range_gather(cadre_dataset *self, const struct element_position positions[],
    size_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const struct range_dataset *range = (const struct range_dataset *)self;
    const int64_t dims[] = {(int64_t)count};
    CADRE_TRY(source_ids_at(self, positions, count, ids, error));
    CADRE_TRY(tensor_create_unset(CADRE_I64, 1, dims, &ret_element->tensors[0], error));
    int64_t *values = cadre_tensor_data(ret_element->tensors[0]);
    for (size_t i = 0; i < count; i++) {
        values[i] = value_at(range, positions[i].index);
    }
    ret_element->count = 1;
    return CADRE_OK;
}

static void range_describe(const cadre_dataset *self, struct description *text)
{
    const struct range_dataset *range = (const struct range_dataset *)self;
    description_add(text, "%" PRId64 " numbers from %" PRId64 " by %" PRId64,
        dataset_cardinality(self), range->start, range->step);
}

static const struct dataset_ops range_ops = {
    .name = "range",
    .describe = range_describe,
    .spec = range_spec,
    .at = range_at,
    .gather = range_gather,
    .ids_at = source_ids_at,
};

/* How many values lie between; the distance of two int64 fits an uint64. */
static uint64_t count_steps(int64_t start, int64_t stop, int64_t step)
{
    if (step > 0 ? start >= stop : start <= stop) {
        return 0;
    }
    uint64_t distance =
        step > 0 ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = step > 0 ? (uint64_t)step : UINT64_C(0) - (uint64_t)step;
    return (distance - 1) / stride + 1;
}

cadre_dataset *cadre_dataset_range(int64_t start, int64_t stop, int64_t step)
{
    struct cadre_error error = {0};
    if (step == 0) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT, "range: step is 0; give 1 to count up");
        return dataset_failed(NULL, &error);
    }
    uint64_t count = count_steps(start, stop, step);
    if (count > INT64_MAX) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "range: 2^63 values or more; give nearer ends or a larger step");
        return dataset_failed(NULL, &error);
    }
    struct range_dataset *range = dataset_new(sizeof *range, &range_ops, NULL);
    if (range == NULL) {
        return NULL;
    }
    range->base.cardinality = (int64_t)count;
    range->start = start;
    range->step = step;
    return &range->base;
}
