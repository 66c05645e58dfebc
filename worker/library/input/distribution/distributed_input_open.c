/* SPDX-License-Identifier: Apache-2.0
 * Opening a distributed input: what the policy comes to, and the pipelines it makes of a dataset.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/composite/composite.h"
#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/transformations/dataset_options.h"
#include "worker/library/input/batching/rebatch_dataset.h"
#include "worker/library/input/distribution/distributed_input_internal.h"

static cadre_status check_layout(const struct distributed_layout *layout, struct cadre_error *error)
{
    if (layout->workers < 1 || layout->workers > DISTRIBUTED_WORKERS_MAX || layout->replicas < 1 ||
        layout->replicas > DISTRIBUTED_REPLICAS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu32 " workers of %" PRIu32 " replicas; 1 to %d workers of 1 to %d are possible",
            layout->workers, layout->replicas, DISTRIBUTED_WORKERS_MAX, DISTRIBUTED_REPLICAS_MAX);
    }
    if (layout->worker_index >= layout->workers) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "worker %" PRIu32 " of %" PRIu32 "; give an index from 0 to one less",
            layout->worker_index, layout->workers);
    }
    return CADRE_OK;
}

static cadre_status check_choices(
    const struct distributed_layout *layout, cadre_shard_policy policy, struct cadre_error *error)
{
    if (policy < CADRE_SHARD_OFF || policy > CADRE_SHARD_HINT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a sharding policy; use one of enum cadre_shard_policy", (int)policy);
    }
    if (layout->rebatch != CADRE_REBATCH_SPLIT && layout->rebatch != CADRE_REBATCH_TENSORFLOW) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a rule of rebatching; use one of enum cadre_rebatch", (int)layout->rebatch);
    }
    return CADRE_OK;
}

/* What the options of the input, and then those of the dataset, leave open depends on the files. */
static cadre_status choose_policy(struct distributed_input *input,
    const struct distributed_layout *layout, struct cadre_error *error)
{
    uint32_t workers = layout->auto_workers > 0 ? layout->auto_workers : layout->workers;
    input->policy = layout->policy;
    if (input->policy == CADRE_SHARD_AUTO) {
        dataset_auto_shard_option(input->data, &input->policy);
    }
    CADRE_TRY(check_choices(layout, input->policy, error));
    if (input->policy == CADRE_SHARD_FILE) {
        return dataset_require_file_names(input->data, error);
    }
    if (input->policy == CADRE_SHARD_AUTO) {
        CADRE_TRY(dataset_choose_policy(input->data, workers, &input->choice, error));
        input->policy = input->choice.policy;
        if (input->choice.either && layout->auto_policy != CADRE_SHARD_AUTO) {
            input->policy = layout->auto_policy;
        }
    }
    return CADRE_OK;
}

static uint64_t pieces_of(const struct distributed_input *input)
{
    return (uint64_t)input->workers * input->replicas;
}

/* Several workers may have to give dummies where others have elements, and one where that is asked
 * for, unless there is no end. */
static void distributed_input_open_advertise(
    struct distributed_input *input, const cadre_element_spec *pieces)
{
    bool dummies = (input->workers > 1 || input->partial_steps) && !input->endless;
    input->piece_spec = *pieces;
    if (dummies) {
        element_spec_set_rows(&input->piece_spec, CADRE_DIMENSION_ANY);
    }
}

/* --- DATA --- */

static cadre_status open_data(
    struct distributed_input *input, const cadre_element_spec *spec, struct cadre_error *error)
{
    const uint64_t pieces = pieces_of(input);
    cadre_element_spec piece = *spec;
    if (pieces > 1) {
        element_spec_split(&piece, pieces);
    }
    if (input->data->indexable) {
        CADRE_TRY(dataset_prepare(input->data, error));
    }
    input->spec = *spec;
    input->rule = &input_rule_data;
    input->reader.data = input->data;
    input->reader.stream.data = input->data;
    input->reader.stream.replay = &input->replay;
    distributed_input_open_advertise(input, &piece);
    return CADRE_OK;
}

/* --- a pipeline of the worker's own --- */

/* In elements of one replica each. Takes no reference; *ret_data is one. */
static cadre_status distributed_input_open_rebatch(struct distributed_input *input,
    const struct distributed_layout *layout, const cadre_element_spec *spec,
    cadre_dataset **ret_data, struct cadre_error *error)
{
    int64_t rows = dataset_batch_size(input->data, spec);
    cadre_dataset *data = cadre_dataset_retain(input->data);
    input->alike = input->policy == CADRE_SHARD_OFF;
    if (pieces_of(input) > 1 && layout->rebatch == CADRE_REBATCH_TENSORFLOW && rows > 0) {
        struct size_list list =
            size_list_make(rows, layout->workers, layout->replicas, layout->worker_index);
        input->alike = input->alike && size_list_is_even(&list);
        data = dataset_rebatch_list(data, &list, false);
    } else if (pieces_of(input) > 1) {
        data = dataset_rebatch_split(data, pieces_of(input));
    }
    cadre_status status = dataset_status(data, error);
    if (status != CADRE_OK) {
        cadre_dataset_release(data);
        data = NULL;
    }
    *ret_data = data;
    return status;
}

/* Finds out whether an epoch can be cut again, and prepares for it. */
static cadre_status open_consumption(struct distributed_input *input,
    const struct distributed_layout *layout, struct cadre_error *error)
{
    cadre_dataset *reader = NULL;
    struct cadre_error own = {0};
    cadre_status status = dataset_check_resharding(input->data, &reader, &own);
    if (status == CADRE_OK) {
        status = file_consumption_init(&input->consumption, reader, layout->workers,
            layout->worker_index, layout->shares, &own);
    }
    input->can_reshard = status == CADRE_OK;
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    bool only_this = status == CADRE_FAILED_PRECONDITION || status == CADRE_NOT_FOUND;
    own.code = only_this ? CADRE_FAILED_PRECONDITION : status;
    if (!only_this || layout->shares != NULL) {
        if (error != NULL) {
            *error = own;
        }
        return own.code;
    }
    input->no_reshard = own;
    return CADRE_OK;
}

static cadre_status open_files(struct distributed_input *input,
    const struct distributed_layout *layout, cadre_dataset *data, cadre_dataset **ret_data,
    struct cadre_error *error)
{
    cadre_dataset *assigned = NULL;
    CADRE_TRY(open_consumption(input, layout, error));
    if (!input->can_reshard) {
        const struct auto_shard shard = {.policy = CADRE_SHARD_FILE,
            .workers = input->workers,
            .worker = input->worker_index,
            .replicas = pieces_of(input)};
        return dataset_auto_shard(cadre_dataset_retain(data), &shard, ret_data, NULL, error);
    }
    if (layout->shares != NULL) {
        CADRE_TRY(file_consumption_rewrite(&input->consumption, data, true, &assigned, error));
        CADRE_TRY(worker_pipelines_init(&input->assigned, &assigned, 1, &input->replay, error));
        input->assigned.first_step = layout->shares->step;
    }
    return file_consumption_rewrite(&input->consumption, data, false, ret_data, error);
}

static bool rows_are_known(const cadre_element_spec *spec)
{
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < spec->count; i += at.count) {
        at = composite_of_spec(spec, i);
        bool scalar = at.kind == CADRE_COMPOSITE_NONE && spec->tensors[i].rank == 0;
        if (!scalar && composite_spec_rows(spec, &at) == CADRE_DIMENSION_ANY) {
            return false;
        }
    }
    return true;
}

/* `data` is in elements of one replica each. */
static cadre_status open_own(struct distributed_input *input,
    const struct distributed_layout *layout, cadre_dataset *data, struct cadre_error *error)
{
    cadre_dataset *own = NULL;
    CADRE_TRY(dataset_spec(data, &input->spec, error));
    if (input->policy == CADRE_SHARD_FILE) {
        CADRE_TRY(open_files(input, layout, data, &own, error));
    } else {
        const struct auto_shard shard = {.policy = input->policy,
            .workers = input->workers,
            .worker = input->worker_index,
            .replicas = pieces_of(input)};
        CADRE_TRY(dataset_auto_shard(cadre_dataset_retain(data), &shard, &own, NULL, error));
    }
    CADRE_TRY(worker_pipelines_init(&input->own, &own, 1, &input->replay, error));
    input->rule = &input_rule_pipelines;
    input->agrees = input->workers > 1 && !(input->endless && rows_are_known(&input->spec));
    distributed_input_open_advertise(input, &input->spec);
    return CADRE_OK;
}

static cadre_status open_dataset(struct distributed_input *input,
    const struct distributed_layout *layout, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    cadre_dataset *pieces = NULL;
    CADRE_TRY(choose_policy(input, layout, error));
    CADRE_TRY(dataset_spec(input->data, &spec, error));
    if (pieces_of(input) > 1) {
        CADRE_TRY(element_spec_check_divisible(&spec, pieces_of(input), error));
    }
    input->endless = dataset_cardinality(input->data) == CADRE_CARDINALITY_INFINITE;
    if (input->policy == CADRE_SHARD_DATA) {
        return open_data(input, &spec, error);
    }
    if (input->policy == CADRE_SHARD_FILE) {
        cadre_dataset *named = NULL;
        CADRE_TRY(dataset_list_by_name(input->data, &named, error));
        cadre_dataset_release(input->data);
        input->data = named;
    }
    CADRE_TRY(distributed_input_open_rebatch(input, layout, &spec, &pieces, error));
    cadre_status status = open_own(input, layout, pieces, error);
    cadre_dataset_release(pieces);
    return status;
}

/* --- pipelines of functions --- */

/* Dimensions in which they differ are not known. */
static cadre_status merge_spec(struct distributed_input *input, uint32_t number,
    const cadre_element_spec *other, struct cadre_error *error)
{
    cadre_element_spec *spec = &input->spec;
    bool alike = spec->count == other->count;
    for (uint32_t i = 0; alike && i < spec->count; i++) {
        cadre_tensor_spec *own = &spec->tensors[i];
        alike = own->dtype == other->tensors[i].dtype && own->rank == other->tensors[i].rank &&
                own->composite == other->tensors[i].composite;
        for (uint32_t axis = 0; alike && axis < own->rank; axis++) {
            bool same = own->dims[axis] == other->tensors[i].dims[axis];
            own->dims[axis] = same ? own->dims[axis] : CADRE_DIMENSION_ANY;
        }
    }
    return alike ? CADRE_OK
                 : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                       "the elements of pipeline %" PRIu32
                       " differ in type or rank from those of the first; a function makes the same "
                       "kind for all replicas",
                       number);
}

static cadre_status open_made(struct distributed_input *input, cadre_dataset *const data[],
    uint32_t count, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT cadre_dataset **kept = calloc(count, sizeof kept[0]);
    if (kept == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %" PRIu32 " pipelines", count);
    }
    input->endless = true;
    for (uint32_t i = 0; i < count; i++) {
        cadre_element_spec spec = {0};
        CADRE_TRY(dataset_spec(data[i], &spec, error));
        if (i == 0) {
            input->spec = spec;
        }
        CADRE_TRY(merge_spec(input, i, &spec, error));
        input->endless =
            input->endless && dataset_cardinality(data[i]) == CADRE_CARDINALITY_INFINITE;
    }
    for (uint32_t i = 0; i < count; i++) {
        kept[i] = cadre_dataset_retain(data[i]);
    }
    CADRE_TRY(worker_pipelines_init(&input->own, kept, count, &input->replay, error));
    input->policy = CADRE_SHARD_OFF;
    input->rule = &input_rule_pipelines;
    input->agrees = input->workers > 1; /* others may have made what ends */
    distributed_input_open_advertise(input, &input->spec);
    return CADRE_OK;
}

/* --- both --- */

static cadre_status make_input(const struct distributed_layout *layout,
    struct distributed_input **ret_input, struct cadre_error *error)
{
    const char *name = layout->name != NULL ? layout->name : "";
    struct distributed_input *input = calloc(1, sizeof *input);
    char *own_name = strdup(name);
    if (input == NULL || own_name == NULL) {
        free(input);
        free(own_name);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the input %s", name);
    }
    input->name = own_name;
    input->workers = layout->workers;
    input->worker_index = layout->worker_index;
    input->replicas = layout->replicas;
    input->partial_steps = layout->partial_steps;
    input->wants_expected = layout->wants_expected;
    input->state_bytes_max = layout->state_bytes_max;
    input->state_us = layout->state_us;
    pthread_mutex_init(&input->lock, NULL);
    cadre_error_set(
        &input->no_reshard, CADRE_FAILED_PRECONDITION, "the dataset is not divided by whole files");
    *ret_input = input;
    return CADRE_OK;
}

cadre_status distributed_input_open(cadre_dataset *data, const struct distributed_layout *layout,
    struct distributed_input **ret_input, struct cadre_error *error)
{
    struct distributed_input *input = NULL;
    *ret_input = NULL;
    CADRE_TRY(dataset_status(data, error));
    CADRE_TRY(check_layout(layout, error));
    CADRE_TRY(make_input(layout, &input, error));
    input->data = cadre_dataset_retain(data);
    cadre_status status = open_dataset(input, layout, error);
    if (status != CADRE_OK) {
        distributed_input_close(input);
        return status;
    }
    *ret_input = input;
    return CADRE_OK;
}

cadre_status distributed_input_open_pipelines(cadre_dataset *const data[], size_t count,
    const struct distributed_layout *layout, struct distributed_input **ret_input,
    struct cadre_error *error)
{
    struct distributed_input *input = NULL;
    *ret_input = NULL;
    CADRE_TRY(check_layout(layout, error));
    if (count != 1 && count != layout->replicas) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%zu pipelines for %" PRIu32 " replicas; give one, or one for each", count,
            layout->replicas);
    }
    for (size_t i = 0; i < count; i++) {
        CADRE_TRY(dataset_status(data[i], error));
    }
    CADRE_TRY(make_input(layout, &input, error));
    cadre_status status = open_made(input, data, (uint32_t)count, error);
    if (status != CADRE_OK) {
        distributed_input_close(input);
        return status;
    }
    *ret_input = input;
    return CADRE_OK;
}

void distributed_input_close(struct distributed_input *input)
{
    if (input == NULL) {
        return;
    }
    worker_pipelines_clear(&input->own);
    worker_pipelines_clear(&input->assigned);
    file_consumption_clear(&input->consumption);
    batch_reader_finish(&input->reader);
    id_list_clear(&input->ids);
    for (uint32_t i = 0; i < input->state_count; i++) {
        distributed_state_clear(&input->states[i]);
    }
    pthread_mutex_destroy(&input->lock);
    cadre_dataset_release(input->data);
    free(input->name);
    free(input);
}
