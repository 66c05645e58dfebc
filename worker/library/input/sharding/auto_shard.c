/* SPDX-License-Identifier: Apache-2.0
 * Rewriting a pipeline for one worker; see auto_shard.h. Nodes are known by their names here: what
 * may stand between the reader of files and the end of a pipeline is a list, as in TensorFlow
 * (tensorflow/core/grappler/optimizers/data/auto_shard.cc). */
#include "worker/library/input/sharding/auto_shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/input/sharding/file_names.h"
#include "worker/library/input/sharding/file_list_source.h"
#include "worker/library/input/batching/rebatch_dataset.h"
#include "worker/library/input/sharding/required_shard.h"
#include "worker/library/input/transformations/select.h"

/* --- building the same node again --- */

/* Takes the references of `inputs` over. With the spec of the old node, for the new one may have no
 * element to see it by. */
static cadre_dataset *rebuild_like(const cadre_dataset *node, cadre_dataset *made)
{
    cadre_element_spec spec = {0};
    bool sees = node->ops->spec != NULL && !node->ops->spec_alone;
    if (sees && dataset_spec((cadre_dataset *)(uintptr_t)node, &spec, NULL) == CADRE_OK) {
        return dataset_with_spec(made, &spec);
    }
    return made;
}

/* --- which nodes may be between the files and the end --- */

static bool is_one_of(const cadre_dataset *node, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(node->ops->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool passes_files_through(const cadre_dataset *node)
{
    static const char *const names[] = {"batch", "cache", "filter", "map", "named", "with_options",
        "padded_batch", "prefetch", "rebatch", "repeat", "shard", "shard by hint", "shuffle",
        "skip", "take", "unbatch", "with_spec"};
    return node->input_count == 1 && is_one_of(node, names, CADRE_COUNT_OF(names));
}

static bool has_branches(const cadre_dataset *node)
{
    static const char *const names[] = {"concatenate", "zip"};
    return is_one_of(node, names, CADRE_COUNT_OF(names));
}

static cadre_status not_found(const cadre_dataset *node, struct cadre_error *error)
{
    if (node->ops->reads_files) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "CADRE_SHARD_FILE: %s is one file; give the names of several to "
            "cadre_dataset_interleave (cadre_dataset_list_files), or use CADRE_SHARD_DATA, which "
            "reads only each worker's own records",
            node->ops->name);
    }
    if (node->input_count == 0) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "CADRE_SHARD_FILE needs a source that reads files, and %s does not; use "
            "CADRE_SHARD_DATA",
            node->ops->name);
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "CADRE_SHARD_FILE: the files cannot be shared out before %s, whose elements would be "
        "others; use CADRE_SHARD_DATA, or shard the names yourself and use CADRE_SHARD_OFF",
        node->ops->name);
}

/* --- FILE --- */

/* Makes what stands in the place of a reader, with this worker's part of its names. NULL: nothing
 * is rewritten, it is only asked whether it could be. */
typedef cadre_dataset *(*reader_function)(const cadre_dataset *reader, void *context);

static cadre_status auto_shard_walk(cadre_dataset *node, reader_function part, void *context,
    cadre_dataset **ret_data, struct cadre_error *error);

static cadre_status walk_inputs(cadre_dataset *node, reader_function part, void *context,
    cadre_dataset **ret_data, struct cadre_error *error)
{
    if (node->ops->rebuild == NULL) {
        return not_found(node, error);
    }
    CADRE_FREE_AT_EXIT cadre_dataset **inputs = calloc(node->input_count, sizeof inputs[0]);
    if (inputs == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to shard a dataset");
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        cadre_status status = auto_shard_walk(node->inputs[i], part, context, &inputs[i], error);
        if (status != CADRE_OK) {
            for (uint32_t made = 0; made < i; made++) {
                cadre_dataset_release(inputs[made]);
            }
            return status;
        }
    }
    if (part != NULL) {
        *ret_data = rebuild_like(node, node->ops->rebuild(node, inputs));
    }
    return CADRE_OK;
}

/* A source's list of files is read by names from here on. */
static cadre_dataset *part_of_list(cadre_dataset *source, reader_function part, void *context)
{
    cadre_element_spec spec = {0};
    cadre_dataset *reader = file_list_source_expand(source);
    cadre_dataset *made = dataset_usable(reader) ? part(reader, context) : NULL;
    cadre_dataset_release(reader);
    return dataset_spec(source, &spec, NULL) == CADRE_OK ? dataset_with_spec(made, &spec) : made;
}

/* *ret_data is the rewritten tree: one reference. */
static cadre_status auto_shard_walk(cadre_dataset *node, reader_function part, void *context,
    cadre_dataset **ret_data, struct cadre_error *error)
{
    *ret_data = NULL;
    if (strcmp(node->ops->name, "assert_cardinality") == 0) {
        return auto_shard_walk(node->input, part, context, ret_data, error);
    }
    if (has_branches(node) || passes_files_through(node)) {
        return walk_inputs(node, part, context, ret_data, error);
    }
    if (node->ops->lists != NULL) {
        *ret_data = part != NULL ? part_of_list(node, part, context) : NULL;
        return CADRE_OK;
    }
    bool opens = false;
    if (node->ops->opens_names != NULL) {
        CADRE_TRY(node->ops->opens_names(node, &opens, error));
    }
    if (!opens) {
        return not_found(node, error);
    }
    if (part != NULL) {
        *ret_data = rebuild_like(node, part(node, context));
    }
    return CADRE_OK;
}

cadre_status dataset_require_file_names(cadre_dataset *data, struct cadre_error *error)
{
    cadre_dataset *none = NULL;
    CADRE_TRY(dataset_status(data, error));
    if (data->by_index_only) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "CADRE_SHARD_FILE: a shuffle of all (CADRE_SHUFFLE_ALL) reads its input by index, and "
            "whole files are read in order; give the shuffle a buffer, or use CADRE_SHARD_DATA");
    }
    return auto_shard_walk(data, NULL, NULL, &none, error);
}

cadre_status dataset_rewrite_readers(cadre_dataset *data,
    cadre_dataset *(*part)(const cadre_dataset *reader, void *context), void *context,
    cadre_dataset **ret_data, struct cadre_error *error)
{
    *ret_data = NULL;
    CADRE_TRY(dataset_status(data, error));
    CADRE_TRY(auto_shard_walk(data, part, context, ret_data, error));
    cadre_status status = dataset_status(*ret_data, error);
    if (status != CADRE_OK) {
        cadre_dataset_release(*ret_data);
        *ret_data = NULL;
    }
    return status;
}

static cadre_dataset *shard_of_names(const cadre_dataset *reader, void *context)
{
    const struct auto_shard *shard = context;
    struct file_names_shuffles order = {0};
    cadre_dataset *names = file_names_unshuffle(reader->input, &order);
    names = dataset_required_shard(names, shard->workers, shard->worker, CADRE_SHARD_FILE);
    names = file_names_reshuffle(names, &order);
    return reader->ops->rebuild(reader, &names);
}

static cadre_status shard_by_file(cadre_dataset *data, const struct auto_shard *shard,
    cadre_dataset **ret_data, struct cadre_error *error)
{
    if (shard->workers == 1) {
        *ret_data = cadre_dataset_retain(data);
        return CADRE_OK;
    }
    CADRE_TRY(dataset_require_file_names(data, error));
    return dataset_rewrite_readers(data, shard_of_names, (void *)(uintptr_t)shard, ret_data, error);
}

static cadre_dataset *all_of_it(const cadre_dataset *reader, void *context)
{
    (void)context;
    return cadre_dataset_retain((cadre_dataset *)(uintptr_t)reader);
}

cadre_status dataset_list_by_name(
    cadre_dataset *data, cadre_dataset **ret_data, struct cadre_error *error)
{
    if (file_list_source_min_files(data) == SIZE_MAX) {
        *ret_data = cadre_dataset_retain(data);
        return CADRE_OK;
    }
    return dataset_rewrite_readers(data, all_of_it, NULL, ret_data, error);
}

/* --- FILE in a live job --- */

cadre_status dataset_check_resharding(
    cadre_dataset *data, cadre_dataset **ret_reader, struct cadre_error *error)
{
    static const char *const passes_on[] = {"assert_cardinality", "batch", "filter", "map", "named",
        "with_options", "padded_batch", "prefetch", "rebatch", "shuffle", "with_spec"};
    const cadre_dataset *unbatched = NULL;
    bool opens = false;
    for (; data->ops->opens_names == NULL && data->ops->lists == NULL; data = data->input) {
        const char *name = data->ops->name;
        if (data->input_count == 0) {
            return not_found(data, error);
        }
        bool batches = strcmp(name, "batch") == 0 || strcmp(name, "padded_batch") == 0;
        if (unbatched == NULL && strcmp(name, "unbatch") == 0) {
            unbatched = data;
        } else if (!is_one_of(data, passes_on, CADRE_COUNT_OF(passes_on))) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "what %s gives depends on what it gave before, so an epoch cannot be divided again "
                "in its middle",
                name);
        }
        unbatched = batches ? NULL : unbatched;
    }
    if (data->ops->opens_names != NULL) {
        CADRE_TRY(data->ops->opens_names(data, &opens, error));
    }
    if (!opens && data->ops->lists == NULL) {
        return not_found(data, error);
    }
    if (unbatched != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "unbatch may give several rows of one record, and an epoch is divided again between "
            "records only");
    }
    *ret_reader = data;
    return CADRE_OK;
}

/* --- AUTO --- */

/* Of a list that a source holds. Where it is not divided by files, `ret_why` says why not. */
static cadre_shard_policy policy_of_list(
    cadre_dataset *data, uint32_t workers, struct policy_choice *choice)
{
    cadre_dataset *reader = NULL;
    size_t files = file_list_source_min_files(data);
    if (dataset_check_resharding(data, &reader, &choice->why) != CADRE_OK) {
        return CADRE_SHARD_DATA;
    }
    choice->either = true;
    if (files < workers) {
        choice->few = true;
        cadre_error_set(&choice->why, CADRE_INVALID_ARGUMENT,
            "%zu file%s cannot be shared out among %" PRIu32 " workers; split into more files, or "
            "use CADRE_SHARD_DATA",
            files, files == 1 ? "" : "s", workers);
    }
    return workers > 1 && files >= workers ? CADRE_SHARD_FILE : CADRE_SHARD_DATA;
}

cadre_status dataset_choose_policy(cadre_dataset *data, uint32_t workers,
    struct policy_choice *ret_choice, struct cadre_error *error)
{
    *ret_choice = (struct policy_choice){.policy = CADRE_SHARD_DATA};
    cadre_status status = dataset_require_file_names(data, &ret_choice->why);
    if (status == CADRE_NOT_FOUND) {
        return CADRE_OK;
    }
    if (status != CADRE_OK) {
        if (error != NULL) {
            *error = ret_choice->why;
        }
        return status;
    }
    ret_choice->policy = file_list_source_min_files(data) == SIZE_MAX
                             ? CADRE_SHARD_FILE
                             : policy_of_list(data, workers, ret_choice);
    return CADRE_OK;
}

/* --- DATA --- */

/* Before what only says how the dataset is read. */
static cadre_dataset *shard_at_end(cadre_dataset *data, const struct auto_shard *shard)
{
    static const char *const trailing[] = {"named", "with_options", "prefetch"};
    if (is_one_of(data, trailing, CADRE_COUNT_OF(trailing))) {
        cadre_dataset *input = shard_at_end(data->input, shard);
        return data->ops->rebuild(data, &input);
    }
    cadre_dataset *end = NULL;
    if (dataset_is_rebatch_sizes(data)) {
        end = dataset_rebatch_split(cadre_dataset_retain(data->input), shard->replicas);
    } else {
        end = cadre_dataset_retain(data);
    }
    return shard->workers == 1
               ? end
               : dataset_required_shard(end, shard->workers, shard->worker, CADRE_SHARD_DATA);
}

/* --- HINT --- */

static cadre_dataset *replace_marks(cadre_dataset *node, const struct auto_shard *shard)
{
    if (node->input_count == 0) {
        return cadre_dataset_retain(node);
    }
    CADRE_FREE_AT_EXIT cadre_dataset **inputs = calloc(node->input_count, sizeof inputs[0]);
    bool changed = node->ops == &shard_hint_ops;
    if (inputs == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = replace_marks(node->inputs[i], shard);
        changed = changed || inputs[i] != node->inputs[i];
    }
    if (!changed) {
        for (uint32_t i = 0; i < node->input_count; i++) {
            cadre_dataset_release(inputs[i]);
        }
        return cadre_dataset_retain(node);
    }
    if (node->ops == &shard_hint_ops) {
        return dataset_required_shard(inputs[0], shard->workers, shard->worker, CADRE_SHARD_HINT);
    }
    return rebuild_like(node, node->ops->rebuild(node, inputs));
}

/* --- all of them --- */

static cadre_status auto_shard_check(const struct auto_shard *shard, struct cadre_error *error)
{
    if (shard->workers < 1 || shard->worker >= shard->workers) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "shard of worker %" PRIu32 " of %" PRIu32
            "; give at least 1 worker and an index from 0 to one less",
            shard->worker, shard->workers);
    }
    if (shard->policy < CADRE_SHARD_OFF || shard->policy > CADRE_SHARD_HINT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not a sharding policy; use one of enum cadre_shard_policy", (int)shard->policy);
    }
    return CADRE_OK;
}

static cadre_status auto_shard_rewrite(cadre_dataset *data, const struct auto_shard *shard,
    cadre_shard_policy *policy, cadre_dataset **ret_data, struct cadre_error *error)
{
    CADRE_TRY(dataset_status(data, error));
    CADRE_TRY(auto_shard_check(shard, error));
    if (*policy == CADRE_SHARD_AUTO) {
        struct policy_choice choice;
        CADRE_TRY(dataset_choose_policy(data, shard->workers, &choice, error));
        *policy = choice.policy;
    }
    switch (*policy) {
    case CADRE_SHARD_FILE:
        return shard_by_file(data, shard, ret_data, error);
    case CADRE_SHARD_DATA:
        *ret_data = shard_at_end(data, shard);
        break;
    case CADRE_SHARD_HINT:
        *ret_data = replace_marks(data, shard);
        break;
    default:
        *ret_data = cadre_dataset_retain(data);
    }
    cadre_status status = dataset_status(*ret_data, error);
    if (status != CADRE_OK) {
        cadre_dataset_release(*ret_data);
        *ret_data = NULL;
    }
    return status;
}

cadre_status dataset_auto_shard(cadre_dataset *data, const struct auto_shard *shard,
    cadre_dataset **ret_data, cadre_shard_policy *ret_used, struct cadre_error *error)
{
    cadre_shard_policy policy = shard->policy;
    *ret_data = NULL;
    cadre_status status = auto_shard_rewrite(data, shard, &policy, ret_data, error);
    if (ret_used != NULL) {
        *ret_used = policy;
    }
    cadre_dataset_release(data);
    return status;
}
