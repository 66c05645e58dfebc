/* SPDX-License-Identifier: Apache-2.0
 * Mean and variance of a whole dataset. The moments of the blocks are merged in the order of the
 * blocks: the same bits, whichever tasks read them. cadre_normalization_adapt is called by the
 * program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/preprocessing.h"
#include "cadre/reduce.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/normalization.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/adapt/adaption.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"

#define BLOCK_ELEMENTS 4
#define BLOCKS_MAX     256
#define BLOCKS_MIN     8
#define ROUND_NUMBERS                                                                              \
    (1 << 20) /* numbers that are sent in a round, where that gives more                           \
                 than the fewest blocks */

struct normalizing {
    struct adaption base;
    int32_t axis; /* from the end */
    bool one;
    size_t features;
    size_t sums;     /* of the moments of one block */
    double *total;   /* of the rounds before */
    double *scratch; /* [local replicas][numbers] */
    double
        *exchanged; /* [local replicas][blocks][numbers]: this round's, before and after the sum */
    double *found;  /* [blocks][numbers] this round's that this task has found */
    char exchanged_text[32];
};

/* --- one block --- */

static void empty_block(struct adaption *adaption, uint64_t block)
{
    struct normalizing *self = (struct normalizing *)adaption;
    memset(self->found + block * self->sums, 0, self->sums * sizeof self->found[0]);
}

static cadre_status add_element(struct adaption *adaption, uint32_t local, uint64_t block,
    const cadre_element *element, uint64_t number, struct cadre_error *error)
{
    struct normalizing *self = (struct normalizing *)adaption;
    const cadre_tensor *tensor =
        adaption->component < element->count ? element->tensors[adaption->component] : NULL;
    struct moments_layout layout;
    if (tensor == NULL || !reals_possible(cadre_tensor_dtype(tensor)) ||
        !normalization_layout(
            cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), self->one, self->axis, &layout) ||
        layout.features != self->features) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "element %" PRIu64 ": component %" PRIu32 " is %s, which is not %zu features along "
            "axis %" PRId32 " as in the first elements",
            number, adaption->component,
            tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
                cadre_tensor_dims(tensor), shape),
            self->features, self->axis);
    }
    double *part = self->scratch + local * self->sums;
    moments_of(tensor, &layout, part);
    moments_merge(self->found + block * self->sums, part, self->features);
    return CADRE_OK;
}

/* --- one round --- */

static double *reported_by(const struct normalizing *self, uint32_t local)
{
    return self->exchanged + local * self->base.blocks * self->sums;
}

static cadre_status normalize_prepare(const cadre_strategy *strategy, struct adaption *adaption,
    uint32_t local, struct cadre_error *error)
{
    (void)error;
    struct normalizing *self = (struct normalizing *)adaption;
    double *exchanged = reported_by(self, local);
    memset(exchanged, 0, adaption->blocks * self->sums * sizeof exchanged[0]);
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        if (adaption_owns_block(strategy, adaption, local, block)) {
            memcpy(exchanged + block * self->sums, self->found + block * self->sums,
                self->sums * sizeof exchanged[0]);
        }
    }
    return CADRE_OK;
}

/* Each block is 0 but on one replica, so their sum has that one's bits. */
static cadre_status normalize_exchange(cadre_strategy *strategy, struct adaption *adaption,
    uint32_t local, uint64_t key, struct cadre_error *error)
{
    const struct normalizing *self = (const struct normalizing *)adaption;
    const struct mesh_buffer sum = {.data = reported_by(self, local),
        .bytes = adaption->blocks * self->sums * sizeof(double),
        .dtype = MESH_F64};
    return collective_sum(strategy, local, &sum, 1, key, error);
}

static cadre_status normalize_merge(struct adaption *adaption, struct cadre_error *error)
{
    (void)error;
    struct normalizing *self = (struct normalizing *)adaption;
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        moments_merge(self->total, self->exchanged + block * self->sums, self->features);
    }
    return CADRE_OK;
}

static const struct adaption_ops normalize_ops = {
    .empty = empty_block,
    .add = add_element,
    .prepare = normalize_prepare,
    .exchange = normalize_exchange,
    .merge = normalize_merge,
};

/* --- all of it --- */

static cadre_status check_component(const cadre_tensor_spec *tensor,
    const cadre_adapt_options *options, struct normalizing *self, struct cadre_error *error)
{
    self->one = options->axis == CADRE_AXIS_NONE;
    self->axis = self->one || options->axis == 0 ? -1 : options->axis;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, shape);
    if (!reals_possible(tensor->dtype)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s; numbers have a mean, so map it to numbers first",
            options->component, shape);
    }
    int64_t at = (int64_t)tensor->rank + self->axis;
    if (!self->one && (self->axis >= 0 || at < 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s, which has no axis %" PRId32
            " (they are counted from the end: the last one is -1)",
            options->component, shape, self->axis);
    }
    int64_t features = self->one ? 1 : tensor->dims[at];
    if (features < 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s, whose size along axis %" PRId32
            " is not one number of features; choose another axis",
            options->component, shape, self->axis);
    }
    self->features = (size_t)features;
    return CADRE_OK;
}

static cadre_status set_up(
    const cadre_strategy *strategy, struct normalizing *self, struct cadre_error *error)
{
    struct adaption *base = &self->base;
    CADRE_ASSERT(self->features > 0);
    self->sums = MOMENTS_COUNT(self->features);
    base->block_elements = BLOCK_ELEMENTS;
    base->blocks = BLOCKS_MAX;
    while (base->blocks > BLOCKS_MIN && base->blocks * self->sums > ROUND_NUMBERS) {
        base->blocks /= 2;
    }
    base->key = collective_key(self->features, base->blocks * self->sums);
    snprintf(self->exchanged_text, sizeof self->exchanged_text, "%zu features", self->features);
    base->exchanged_text = self->exchanged_text;
    size_t sums = base->blocks * self->sums;
    self->total = calloc(self->sums, sizeof *self->total);
    self->scratch = calloc(self->sums * strategy->local_replicas, sizeof *self->scratch);
    self->exchanged = calloc(sums * strategy->local_replicas, sizeof *self->exchanged);
    self->found = calloc(sums, sizeof *self->found);
    if (self->total == NULL || self->scratch == NULL || self->exchanged == NULL ||
        self->found == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the moments of %zu features", self->features);
    }
    return CADRE_OK;
}

static cadre_status normalize_make(const struct normalizing *self,
    cadre_normalization **ret_normalization, struct cadre_error *error)
{
    double count = *moments_count(self->total);
    double *variance = moments_squares(self->total, self->features);
    if (count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the dataset has no number in its component %" PRIu32 ", and no number has no mean",
            self->base.component);
    }
    for (size_t f = 0; f < self->features; f++) {
        variance[f] /= count;
    }
    return normalization_make(moments_mean(self->total), variance, self->features, self->one,
        self->axis, ret_normalization, error);
}

static cadre_status normalize_adapt(cadre_strategy *strategy, struct normalizing *self,
    const cadre_adapt_options *options, cadre_normalization **ret_normalization,
    struct cadre_error *error)
{
    cadre_tensor_spec spec;
    self->base.component = options->component;
    CADRE_TRY(adaption_check(&self->base, &spec, error));
    CADRE_TRY(check_component(&spec, options, self, error));
    CADRE_TRY(set_up(strategy, self, error));
    CADRE_TRY(adaption_run(strategy, &self->base, error));
    return normalize_make(self, ret_normalization, error);
}

cadre_status cadre_normalization_adapt(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_adapt_options *options, cadre_normalization **ret_normalization)
{
    STRATEGY_CALL call = {0};
    static const cadre_adapt_options defaults = {0};
    struct cadre_error error = {0};
    struct normalizing self = {
        .base = {.ops = &normalize_ops, .name = "cadre_normalization_adapt", .data = data}};
    cadre_status status =
        argument_require(ret_normalization, __func__, "ret_normalization", &error);
    if (status == CADRE_OK) {
        *ret_normalization = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = normalize_adapt(
            strategy, &self, options == NULL ? &defaults : options, ret_normalization, &error);
    }
    adaption_end(&self.base);
    free(self.total);
    free(self.scratch);
    free(self.exchanged);
    free(self.found);
    cadre_dataset_release(data);
    return api_return(status, &error);
}
