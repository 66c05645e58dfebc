/* SPDX-License-Identifier: Apache-2.0
 * Distributed input: choosing the rule for a layout, and reading steps by it; see distribute.h. */
#include "worker/input/distribute.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/input/prefetch_depth.h"
#include "worker/input/rule.h"

void distributed_batch_clear(struct distributed_batch *batch)
{
    for (uint32_t r = 0; batch->elements != NULL && r < batch->replicas; r++) {
        cadre_element_clear(&batch->elements[r]);
    }
    free(batch->elements);
    *batch = (struct distributed_batch){0};
}

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

/* The node all elements come from. */
static const cadre_dataset *source_of(const cadre_dataset *data)
{
    while (data->input != NULL) {
        data = data->input;
    }
    return data;
}

static cadre_status choose_rule(
    struct distributed_input *input, cadre_shard_policy policy, struct cadre_error *error)
{
    bool single = input->workers == 1 && input->replicas == 1;
    switch (policy) {
    case CADRE_SHARD_AUTO: /* today's sources have no list of files to share out, so DATA */
    case CADRE_SHARD_DATA:
        input->rule = single ? &rule_whole : &rule_split_data;
        return CADRE_OK;
    case CADRE_SHARD_OFF:
        input->batch_rows = dataset_batch_size(input->data, &input->spec);
        if (single) {
            input->rule = &rule_whole;
        } else {
            input->rule = input->batch_rows > 0 ? &rule_sizes_own : &rule_split_own;
        }
        return CADRE_OK;
    case CADRE_SHARD_FILE:
        if (!source_of(input->data)->ops->reads_files) {
            return cadre_error_set(error, CADRE_NOT_FOUND,
                "FILE sharding needs a source that reads files, and %s does not; use "
                "CADRE_SHARD_DATA",
                source_of(input->data)->ops->name);
        }
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "FILE sharding of %s is not there yet; use CADRE_SHARD_DATA, which reads only each "
            "worker's own records",
            source_of(input->data)->ops->name);
    case CADRE_SHARD_HINT:
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "HINT sharding is not there yet; use CADRE_SHARD_DATA, or shard the dataset yourself "
            "and use CADRE_SHARD_OFF");
    default:
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a sharding policy; use one of enum cadre_shard_policy", (int)policy);
    }
}

/* What one replica gets, and the refusal of what cannot be cut. */
static cadre_status derive_piece_spec(struct distributed_input *input, struct cadre_error *error)
{
    uint64_t pieces = (uint64_t)input->workers * input->replicas;
    input->piece_spec = input->spec;
    if (pieces == 1) {
        return CADRE_OK;
    }
    for (uint32_t i = 0; i < input->spec.count; i++) {
        cadre_tensor_spec *spec = &input->piece_spec.tensors[i];
        if (spec->rank == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "component %" PRIu32 " of the dataset is a scalar, which cannot be divided among "
                "%" PRIu64 " replicas; call cadre_dataset_batch first",
                i, pieces);
        }
        bool even = input->workers == 1 && spec->dims[0] != CADRE_DIMENSION_ANY &&
                    (uint64_t)spec->dims[0] % pieces == 0;
        spec->dims[0] = even ? spec->dims[0] / (int64_t)pieces : CADRE_DIMENSION_ANY;
    }
    return CADRE_OK;
}

static cadre_status open_input(struct distributed_input *input,
    const struct distributed_layout *layout, struct cadre_error *error)
{
    input->name = strdup(layout->name != NULL ? layout->name : "");
    if (input->name == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a name");
    }
    input->workers = layout->workers;
    input->worker_index = layout->worker_index;
    input->replicas = layout->replicas;
    input->proves = layout->proves;
    if (input->data->indexable) {
        CADRE_TRY(dataset_prepare(input->data, error));
    }
    CADRE_TRY(dataset_spec(input->data, &input->spec, error));
    CADRE_TRY(derive_piece_spec(input, error));
    input->reader.data = input->data;
    input->reader.static_rows = element_spec_rows(&input->spec);
    return choose_rule(input, layout->policy, error);
}

cadre_status distributed_input_open(cadre_dataset *data, const struct distributed_layout *layout,
    struct distributed_input **ret_input, struct cadre_error *error)
{
    const char *name = layout->name != NULL ? layout->name : "";
    *ret_input = NULL;
    CADRE_TRY(dataset_status(data, error));
    CADRE_TRY(check_layout(layout, error));
    struct distributed_input *input = calloc(1, sizeof *input);
    if (input == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the input %s", name);
    }
    input->data = cadre_dataset_retain(data);
    cadre_status status = open_input(input, layout, error);
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
    batch_reader_finish(&input->reader);
    id_list_clear(&input->ids);
    cadre_dataset_release(input->data);
    free(input->name);
    free(input);
}

const cadre_element_spec *distributed_input_spec(const struct distributed_input *input)
{
    return &input->piece_spec;
}

int64_t distributed_input_steps(struct distributed_input *input, uint64_t epoch)
{
    return input->rule->steps(input, epoch);
}

bool distributed_input_shares(const struct distributed_input *input)
{
    return input->rule->claims_samples;
}

uint64_t distributed_input_source_samples(const struct distributed_input *input)
{
    return dataset_samples(input->data);
}

uint32_t distributed_input_prefetch_depth(const struct distributed_input *input)
{
    return dataset_prefetch_depth(input->data);
}

static struct digest digest_of(
    const struct distributed_input *input, uint64_t epoch, const struct id_list *ids)
{
    struct digest_key key = digest_key_make(input->name, strlen(input->name), epoch);
    struct digest digest = {0};
    for (size_t i = 0; i < ids->count; i++) {
        digest_add(&digest, &key, ids->ids[i]);
    }
    return digest;
}

/* What is found out by reading proves nothing about the reading. */
static void prove(struct distributed_input *input, struct distributed_batch *batch)
{
    struct cadre_error error;
    batch->provable = input->proves && input->data->indexable && input->rule->claims_samples &&
                      distributed_input_expected_digest(
                          input, batch->epoch, batch->step, &batch->expected, &error) == CADRE_OK;
}

cadre_status distributed_input_read(struct distributed_input *input, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error)
{
    *ret_batch = (struct distributed_batch){0};
    cadre_element *elements = calloc(input->replicas, sizeof elements[0]);
    if (elements == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %" PRIu32 " replicas", input->replicas);
    }
    struct distributed_batch batch = {
        .epoch = epoch, .step = step, .replicas = input->replicas, .elements = elements};
    input->ids.count = 0;
    cadre_status status = input->rule->fill(input, &batch, error);
    if (status != CADRE_OK) {
        distributed_batch_clear(&batch);
        return status == CADRE_OUT_OF_RANGE
                   ? cadre_error_set(error, status,
                         "dataset '%s' has no step %" PRIu64 " in epoch %" PRIu64, input->name,
                         step, epoch)
                   : cadre_error_wrap(error, status,
                         "dataset '%s', epoch %" PRIu64 ", step %" PRIu64, input->name, epoch,
                         step);
    }
    batch.samples = input->ids.count;
    batch.fed = digest_of(input, epoch, &input->ids);
    prove(input, &batch);
    *ret_batch = batch;
    return CADRE_OK;
}

cadre_status distributed_input_expected_digest(struct distributed_input *input, uint64_t epoch,
    uint64_t step, struct digest *ret_digest, struct cadre_error *error)
{
    struct place place = {.index = step, .epoch = epoch};
    const struct batch_reader *reader = &input->reader;
    *ret_digest = (struct digest){0};
    if (!input->rule->claims_samples) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "input '%s': workers that read a pipeline each make no claim about samples",
            input->name);
    }
    if (!input->data->indexable) {
        if (!reader->holds || reader->held.index != step || reader->held.epoch != epoch) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "input '%s' is not indexable: the samples of step %" PRIu64
                " are known only after it is read",
                input->name, step);
        }
        *ret_digest = digest_of(input, epoch, &reader->ids);
        return CADRE_OK;
    }
    int64_t cardinality = dataset_cardinality(input->data);
    if (cardinality >= 0 && step >= (uint64_t)cardinality) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "dataset '%s' has no step %" PRIu64 " in epoch %" PRIu64, input->name, step, epoch);
    }
    struct id_list ids = {0};
    cadre_status status = dataset_ids_at(input->data, &place, 1, &ids, error);
    if (status == CADRE_OK) {
        *ret_digest = digest_of(input, epoch, &ids);
    }
    id_list_clear(&ids);
    return status;
}
