/* SPDX-License-Identifier: Apache-2.0
 * Distributed input: what it says of itself, and reading steps by its rule; see
 * distributed_input.h. */
#include "worker/library/input/distribution/distributed_input.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/composite/composite.h"
#include "worker/library/input/read_ahead/prefetch.h"
#include "worker/library/input/distribution/distributed_input_internal.h"
#include "worker/library/input/node/sample_id.h"

void distributed_batch_clear(struct distributed_batch *batch)
{
    if (batch->staged != NULL) {
        batch->staged->finish(batch->staged);
    }
    for (uint32_t r = 0; batch->elements != NULL && r < batch->replicas; r++) {
        cadre_element_release(&batch->elements[r]);
    }
    free(batch->elements);
    free(batch->runs);
    free(batch->done);
    *batch = (struct distributed_batch){0};
}

const cadre_element_spec *distributed_input_spec(const struct distributed_input *input)
{
    return &input->piece_spec;
}

int64_t distributed_input_steps(struct distributed_input *input, uint64_t epoch)
{
    return input->rule->steps(input, epoch);
}

cadre_shard_policy distributed_input_policy(const struct distributed_input *input)
{
    return input->policy;
}

bool distributed_input_is_either(const struct distributed_input *input)
{
    return input->choice.either;
}

bool distributed_input_fell_back(
    const struct distributed_input *input, bool *ret_reads_all, struct cadre_error *ret_why)
{
    const struct policy_choice *choice = &input->choice;
    bool reported = input->policy == CADRE_SHARD_DATA && choice->why.code != CADRE_OK;
    *ret_reads_all = reported && !input->data->indexable;
    *ret_why = choice->why;
    return reported && (choice->few || *ret_reads_all);
}

bool distributed_input_agrees(const struct distributed_input *input)
{
    return input->agrees;
}

bool distributed_input_gives_partial(const struct distributed_input *input)
{
    const cadre_element_spec *piece = &input->piece_spec;
    bool all_known = !input->partial_steps;
    struct composite at = {.count = 0};
    for (uint32_t i = 0; i < piece->count; i += at.count) {
        at = composite_of_spec(piece, i);
        if (at.kind != CADRE_COMPOSITE_NONE) { /* of these the rows alone count */
            all_known = all_known && composite_spec_rows(piece, &at) != CADRE_DIMENSION_ANY;
            continue;
        }
        const cadre_tensor_spec *spec = &piece->tensors[i];
        for (uint32_t axis = 0; axis < spec->rank; axis++) {
            all_known = all_known && spec->dims[axis] != CADRE_DIMENSION_ANY;
        }
    }
    return !input->endless && (!all_known || input->workers > 1);
}

int64_t distributed_input_whole_steps(struct distributed_input *input, uint64_t epoch)
{
    int64_t steps = input->rule->steps(input, epoch);
    return steps < 0 || input->rule->whole_steps == NULL || distributed_input_gives_partial(input)
               ? steps
               : input->rule->whole_steps(input, epoch);
}

int64_t distributed_input_left(struct distributed_input *input, uint64_t epoch, uint64_t step)
{
    return input->rule->left == NULL ? CADRE_CARDINALITY_UNKNOWN
                                     : input->rule->left(input, epoch, step);
}

bool distributed_input_shares(const struct distributed_input *input)
{
    return input->rule == &input_rule_data || input->can_reshard;
}

bool distributed_input_can_reshard(
    const struct distributed_input *input, struct cadre_error *ret_reason)
{
    if (!input->can_reshard && ret_reason != NULL) {
        *ret_reason = input->no_reshard;
    }
    return input->can_reshard;
}

const char *distributed_input_file_name(const struct distributed_input *input, uint64_t file)
{
    const struct file_consumption *consumption = &input->consumption;
    return consumption->open && file < consumption->ids.count ? consumption->name_of[file] : "";
}

cadre_status distributed_input_fresh_shares(const struct distributed_input *input, uint64_t epoch,
    struct file_shares *ret_shares, struct cadre_error *error)
{
    if (!input->can_reshard) {
        *ret_shares = (struct file_shares){0};
        if (error != NULL) {
            *error = input->no_reshard;
        }
        return input->no_reshard.code;
    }
    return file_shares_init(ret_shares, epoch, input->consumption.ids.count, input->workers, error);
}

uint64_t distributed_input_source_samples(const struct distributed_input *input)
{
    return input->rule == &input_rule_data ? dataset_samples(input->data) : 0;
}

uint32_t distributed_input_prefetch_depth(const struct distributed_input *input)
{
    CADRE_ASSERT(input->data != NULL);
    return dataset_prefetch_depth(input->data);
}

/* Some runs of samples of files: their ids are those of the pipeline. */
cadre_status distributed_input_files_digest(const struct distributed_input *input, uint64_t epoch,
    const struct file_run runs[], size_t count, struct digest *ret_digest,
    struct cadre_error *error)
{
    struct digest_key key = digest_key_make(input->name, strlen(input->name), epoch);
    const struct file_consumption *consumption = &input->consumption;
    *ret_digest = (struct digest){0};
    for (size_t i = 0; i < count; i++) {
        const struct file_run *run = &runs[i];
        if (!consumption->open || run->file >= consumption->ids.count) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "input '%s': file %" PRIu64 " is none of its %zu files", input->name, run->file,
                consumption->open ? consumption->ids.count : 0);
        }
        for (uint64_t ordinal = run->first; ordinal - run->first < run->count; ordinal++) {
            digest_add(ret_digest, &key, sample_id_of(consumption->ids.ids[run->file], ordinal));
        }
    }
    return CADRE_OK;
}

static struct digest digest_of(
    const struct distributed_input *input, uint64_t epoch, const struct id_list *ids)
{
    struct digest_key key = digest_key_make(input->name, strlen(input->name), epoch);
    struct digest digest = {0};
    digest_add_each(&digest, &key, ids->ids, ids->count);
    return digest;
}

/* What is found out by reading proves nothing about the reading. */
static void distributed_input_prove(
    struct distributed_input *input, struct distributed_batch *batch)
{
    struct cadre_error error;
    batch->provable = input->wants_expected && input->rule == &input_rule_data &&
                      input->data->indexable &&
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
    if (status == CADRE_OK) {
        distributed_input_keep_state(input, epoch, step + 1);
    }
    if (status == CADRE_OK && input->rule->report_files != NULL) {
        status = input->rule->report_files(input, &batch, error);
    }
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
    batch.consumed = digest_of(input, epoch, &input->ids);
    distributed_input_prove(input, &batch);
    *ret_batch = batch;
    return CADRE_OK;
}

cadre_status distributed_input_expected_digest(struct distributed_input *input, uint64_t epoch,
    uint64_t step, struct digest *ret_digest, struct cadre_error *error)
{
    struct element_position position = {.index = step, .epoch = epoch};
    const struct batch_reader *reader = &input->reader;
    *ret_digest = (struct digest){0};
    if (input->rule != &input_rule_data) {
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
    cadre_status status = dataset_ids_at(input->data, &position, 1, &ids, error);
    if (status == CADRE_OK) {
        *ret_digest = digest_of(input, epoch, &ids);
    }
    id_list_clear(&ids);
    return status;
}
