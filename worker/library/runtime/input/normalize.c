/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/input/normalize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/preprocessing.h"
#include "cadre/reduce.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node.h"
#include "worker/library/preprocessing/normalization.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/outside.h"
#include "worker/library/runtime/strategy/strategy.h"

struct adaption {
    cadre_dataset *data; /* a reference */
    uint32_t component;
    int32_t axis; /* from the end */
    bool one;
    bool by_place;
    size_t features;
    size_t words; /* of the moments of one block */
    uint64_t blocks;
    uint64_t round;
    double *total; /* of the rounds before */
    double *told;  /* [local replicas][blocks][words]: this round's, before and after it is told */

    /* Of this round: what this task has found, also in attempts before this one. */
    double *found;   /* [blocks][words] */
    int64_t *counts; /* [blocks] elements of it; -1: not read yet */

    /* Read in order: the iterator of the one that reads, and the element it stands before. */
    cadre_iterator *iterator;
    uint64_t stands;

    int64_t elements; /* of the round, over all tasks */
    int64_t failures; /* replicas that could not read their part */
    struct cadre_error own;
    struct cadre_error theirs; /* of the task of the lowest rank that could not */
    atomic_flag *own_is_set;
};

/* --- one block --- */

static cadre_status add_element(const struct adaption *adaption, const cadre_element *element,
    uint64_t number, double *part, double *moments, struct cadre_error *error)
{
    const cadre_tensor *tensor =
        adaption->component < element->count ? element->tensors[adaption->component] : NULL;
    struct moments_layout layout;
    if (tensor == NULL || !reals_possible(cadre_tensor_dtype(tensor)) ||
        !normalization_layout(cadre_tensor_rank(tensor), cadre_tensor_dims(tensor), adaption->one,
            adaption->axis, &layout) ||
        layout.features != adaption->features) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "element %" PRIu64 ": component %" PRIu32 " is %s, which is not %zu features along "
            "axis %" PRId32 " as in the first elements",
            number, adaption->component,
            tensor_shape_text(cadre_tensor_dtype(tensor), cadre_tensor_rank(tensor),
                cadre_tensor_dims(tensor), shape),
            adaption->features, adaption->axis);
    }
    moments_of(tensor, &layout, part);
    moments_merge(moments, part, adaption->features);
    return CADRE_OK;
}

/* Before element `number`. */
static cadre_status stand_before(
    struct adaption *adaption, uint64_t number, struct cadre_error *error)
{
    if (adaption->iterator != NULL && adaption->stands > number) {
        cadre_iterator_release(adaption->iterator);
        adaption->iterator = NULL;
    }
    if (adaption->iterator == NULL) {
        const struct pass pass = {.ordered = true};
        CADRE_TRY(dataset_iterate(adaption->data, &pass, &adaption->iterator, error));
        adaption->stands = 0;
    }
    uint64_t skipped = 0;
    CADRE_ASSERT(adaption->stands <= number);
    CADRE_TRY(iterator_skip(adaption->iterator, number - adaption->stands, &skipped, error));
    adaption->stands += skipped;
    return adaption->stands == number ? CADRE_OK : iterator_end(error);
}

/* OUT_OF_RANGE behind the last one. */
static cadre_status read_element(struct adaption *adaption, uint64_t number,
    cadre_element *ret_element, struct cadre_error *error)
{
    if (adaption->by_place) {
        int64_t cardinality = dataset_cardinality(adaption->data);
        struct id_list ids = {0};
        cadre_status status = cardinality >= 0 && number >= (uint64_t)cardinality
                                  ? iterator_end(error)
                                  : dataset_at(adaption->data, (struct place){.index = number},
                                        ret_element, &ids, error);
        id_list_clear(&ids);
        return status;
    }
    CADRE_TRY(stand_before(adaption, number, error));
    CADRE_TRY(iterator_next(adaption->iterator, ret_element, NULL, error));
    adaption->stands++;
    return CADRE_OK;
}

static cadre_status read_block(
    struct adaption *adaption, uint64_t block, double *part, struct cadre_error *error)
{
    double *moments = adaption->found + block * adaption->words;
    CADRE_ASSERT(block < adaption->blocks);
    CADRE_ASSERT(adaption->counts[block] < 0);
    uint64_t first = (adaption->round * adaption->blocks + block) * NORMALIZE_BLOCK;
    int64_t count = 0;
    memset(moments, 0, adaption->words * sizeof moments[0]);
    while (count < NORMALIZE_BLOCK) {
        cadre_element element = {0};
        uint64_t number = first + (uint64_t)count;
        cadre_status status = read_element(adaption, number, &element, error);
        if (status == CADRE_OUT_OF_RANGE) {
            break;
        }
        if (status == CADRE_OK) {
            status = add_element(adaption, &element, number, part, moments, error);
        }
        cadre_element_release(&element);
        CADRE_TRY(status);
        count++;
    }
    adaption->counts[block] = count;
    return CADRE_OK;
}

/* --- one round --- */

/* Who reads a block. In order only the first replica of a task reads, for an iterator has one
 * place. */
static bool is_mine(const cadre_strategy *strategy, uint32_t local, bool by_place, uint64_t block)
{
    uint64_t rank = strategy->roster.rank;
    uint64_t locals = strategy->local_replicas;
    uint64_t tasks = strategy->roster.member_count;
    return by_place ? block % (tasks * locals) == rank * locals + local
                    : local == 0 && block % tasks == rank;
}

/* Blocks that are not read yet, until it is time to meet the others; *ret_left: some are left. */
static cadre_status read_mine(const cadre_strategy *strategy, uint32_t local,
    struct adaption *adaption, bool *ret_left, struct cadre_error *error)
{
    const uint64_t until_us = clock_monotonic_us() + NORMALIZE_MEET_US;
    double *part = calloc(adaption->words, sizeof *part);
    cadre_status status =
        part != NULL ? CADRE_OK
                     : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                           "no memory for the moments of %zu features", adaption->features);
    *ret_left = false;
    for (uint64_t block = 0; status == CADRE_OK && block < adaption->blocks; block++) {
        bool unread =
            is_mine(strategy, local, adaption->by_place, block) && adaption->counts[block] < 0;
        if (unread && clock_monotonic_us() >= until_us) {
            *ret_left = true;
            break;
        }
        if (unread) {
            status = read_block(adaption, block, part, error);
        }
    }
    free(part);
    return status;
}

static void tell_mine(const cadre_strategy *strategy, uint32_t local,
    const struct adaption *adaption, double *told, int64_t *ret_elements)
{
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        /* Not all of a task's own are read where the last meeting was played back to it. */
        bool read = adaption->counts[block] >= 0;
        if (read && is_mine(strategy, local, adaption->by_place, block)) {
            memcpy(told + block * adaption->words, adaption->found + block * adaption->words,
                adaption->words * sizeof told[0]);
            *ret_elements += adaption->counts[block];
        }
    }
}

/* Until all replicas have read theirs, or one cannot. They meet in between: how often, the slowest
 * of them decides, and all count the same. */
static cadre_status read_round(cadre_strategy *strategy, uint32_t local, struct adaption *adaption,
    uint64_t key, int64_t *ret_failures, struct cadre_error *error)
{
    int64_t counts[2] = {1, 0}; /* replicas that have not read all; that cannot */
    for (uint64_t times = 0; counts[0] > 0 && counts[1] == 0; times++) {
        bool left = false;
        struct cadre_error own = {0};
        cadre_status status = read_mine(strategy, local, adaption, &left, &own);
        if (status != CADRE_OK && !atomic_flag_test_and_set(adaption->own_is_set)) {
            adaption->own = own;
            adaption->own.code = status;
        }
        counts[0] = left ? 1 : 0;
        counts[1] = status != CADRE_OK ? 1 : 0;
        const struct mesh_buffer buffer = {
            .data = counts, .bytes = sizeof counts, .dtype = MESH_I64};
        CADRE_TRY(collective_sum(strategy, local, &buffer, 1, collective_key(key, times), error));
    }
    *ret_failures = counts[1];
    return CADRE_OK;
}

static cadre_status round_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct adaption *adaption = user;
    size_t bytes = adaption->blocks * adaption->words * sizeof(double);
    CADRE_ASSERT(local < strategy->local_replicas);
    double *told = adaption->told + local * adaption->blocks * adaption->words;
    uint64_t key = collective_key(collective_key(adaption->features, adaption->round), bytes);
    int64_t elements = 0;
    int64_t failures = 0;
    memset(told, 0, bytes);
    cadre_status status = read_round(strategy, local, adaption, key, &failures, error);
    if (status == CADRE_OK && local == 0) {
        adaption->failures = failures;
    }
    if (status == CADRE_OK && failures > 0) {
        return collective_hear_lowest(strategy, local, &adaption->own, &adaption->theirs, error);
    }
    /* Each block is 0 but on one replica, so their sum is that one's bits. */
    struct mesh_buffer sums[] = {
        {.data = told, .bytes = bytes, .dtype = MESH_F64},
        {.data = &elements, .bytes = sizeof elements, .dtype = MESH_I64},
    };
    if (status == CADRE_OK) {
        tell_mine(strategy, local, adaption, told, &elements);
        status = collective_sum(strategy, local, sums, 2, key, error);
    }
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status,
            "the tasks do not adapt a normalization to the same data: here it has %zu features",
            adaption->features);
    }
    if (local == 0) {
        adaption->elements = elements;
    }
    return status;
}

static cadre_status run_round(
    cadre_strategy *strategy, struct adaption *adaption, struct cadre_error *error)
{
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        adaption->counts[block] = -1;
    }
    atomic_flag own_is_set = ATOMIC_FLAG_INIT;
    adaption->own = (struct cadre_error){0};
    adaption->own_is_set = &own_is_set;
    char what[64];
    snprintf(what, sizeof what, "cadre_normalization_adapt to %zu features", adaption->features);
    CADRE_TRY(strategy_outside(strategy, what, round_here, adaption, error));
    if (adaption->failures != 0 && adaption->own.code != CADRE_OK) {
        *error = adaption->own;
        return error->code;
    }
    if (adaption->failures != 0) {
        *error = adaption->theirs;
        return error->code;
    }
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        moments_merge(
            adaption->total, adaption->told + block * adaption->words, adaption->features);
    }
    return CADRE_OK;
}

/* --- all of it --- */

static cadre_status check_data(
    struct adaption *adaption, const cadre_adapt_options *options, struct cadre_error *error)
{
    cadre_element_spec spec;
    CADRE_TRY(dataset_spec(adaption->data, &spec, error));
    if (dataset_cardinality(adaption->data) == CADRE_CARDINALITY_INFINITE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a dataset without an end has no mean; take a part of it");
    }
    if (options->component >= spec.count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "there is no component %" PRIu32 ": the elements of the dataset have %" PRIu32,
            options->component, spec.count);
    }
    const cadre_tensor_spec *tensor = &spec.tensors[options->component];
    adaption->component = options->component;
    adaption->one = options->axis == CADRE_AXIS_NONE;
    adaption->axis = adaption->one || options->axis == 0 ? -1 : options->axis;
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    tensor_shape_text(tensor->dtype, tensor->rank, tensor->dims, shape);
    if (!reals_possible(tensor->dtype)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s; numbers have a mean, so map it to numbers first",
            options->component, shape);
    }
    int64_t at = (int64_t)tensor->rank + adaption->axis;
    if (!adaption->one && (adaption->axis >= 0 || at < 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s, which has no axis %" PRId32
            " (they are counted from the end: the last one is -1)",
            options->component, shape, adaption->axis);
    }
    int64_t features = adaption->one ? 1 : tensor->dims[at];
    if (features < 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s, whose size along axis %" PRId32
            " is not one number of features; choose another axis",
            options->component, shape, adaption->axis);
    }
    adaption->features = (size_t)features;
    return CADRE_OK;
}

static cadre_status set_up(
    const cadre_strategy *strategy, struct adaption *adaption, struct cadre_error *error)
{
    adaption->words = MOMENTS_WORDS(adaption->features);
    CADRE_ASSERT(adaption->features > 0);
    adaption->blocks = NORMALIZE_BLOCKS_MAX;
    while (adaption->blocks > NORMALIZE_BLOCKS_MIN &&
           adaption->blocks * adaption->words > NORMALIZE_ROUND_WORDS) {
        adaption->blocks /= 2;
    }
    size_t words = adaption->blocks * adaption->words;
    adaption->total = calloc(adaption->words, sizeof *adaption->total);
    adaption->told = calloc(words * strategy->local_replicas, sizeof *adaption->told);
    adaption->found = calloc(words, sizeof *adaption->found);
    adaption->counts = calloc(adaption->blocks, sizeof *adaption->counts);
    if (adaption->total == NULL || adaption->told == NULL || adaption->found == NULL ||
        adaption->counts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the moments of %zu features", adaption->features);
    }
    adaption->by_place = adaption->data->indexable;
    return adaption->by_place ? dataset_prepare(adaption->data, error) : CADRE_OK;
}

static cadre_status make(const struct adaption *adaption, cadre_normalization **ret_normalization,
    struct cadre_error *error)
{
    double count = *moments_count(adaption->total);
    double *variance = moments_squares(adaption->total, adaption->features);
    if (count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the dataset has no number in its component %" PRIu32 ", and nothing has no mean",
            adaption->component);
    }
    for (size_t f = 0; f < adaption->features; f++) {
        variance[f] /= count;
    }
    return normalization_make(moments_mean(adaption->total), variance, adaption->features,
        adaption->one, adaption->axis, ret_normalization, error);
}

static cadre_status adapt(cadre_strategy *strategy, struct adaption *adaption,
    const cadre_adapt_options *options, cadre_normalization **ret_normalization,
    struct cadre_error *error)
{
    CADRE_TRY(check_data(adaption, options, error));
    CADRE_TRY(set_up(strategy, adaption, error));
    int64_t whole = (int64_t)adaption->blocks * NORMALIZE_BLOCK;
    do {
        CADRE_TRY(run_round(strategy, adaption, error));
        adaption->round++;
    } while (adaption->elements == whole);
    return make(adaption, ret_normalization, error);
}

cadre_status cadre_normalization_adapt(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_adapt_options *options, cadre_normalization **ret_normalization)
{
    STRATEGY_CALL call = {0};
    static const cadre_adapt_options defaults = {0};
    struct cadre_error error = {0};
    struct adaption adaption = {.data = data};
    cadre_status status =
        argument_require(ret_normalization, __func__, "ret_normalization", &error);
    if (status == CADRE_OK) {
        *ret_normalization = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK && data == NULL) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "the dataset is NULL: there was no memory to build it, or none was given");
    }
    if (status == CADRE_OK) {
        status = dataset_status(data, &error);
    }
    if (status == CADRE_OK) {
        status = adapt(
            strategy, &adaption, options == NULL ? &defaults : options, ret_normalization, &error);
    }
    cadre_iterator_release(adaption.iterator);
    free(adaption.total);
    free(adaption.told);
    free(adaption.found);
    free(adaption.counts);
    cadre_dataset_release(data);
    return border(status, &error);
}
