/* SPDX-License-Identifier: Apache-2.0
 * How batches are cut and pipelines are sharded, one worker at a time. */
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "datasets.h"
#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/batching/rebatch.h"
#include "worker/library/input/batching/rebatch_dataset.h"

#define ELEMENTS_MAX 1000000
#define SIZES_MAX    65536

static void release_json(void *value)
{
    json_decref(value);
}

static void release_data(void *data)
{
    cadre_dataset_release(data);
}

static json_t *new_list(struct conformance_case *self)
{
    return case_keep(self, json_array(), release_json);
}

/* --- numbers --- */

void area_batch_sizes(struct conformance_case *self)
{
    static const char *const known[] = {"global_batch", "num_workers", "replicas_per_worker", NULL};
    json_int_t rows = 0;
    json_int_t workers = 0;
    json_int_t replicas = 0;
    json_t *got = new_list(self);
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "global_batch", 0, INT32_MAX, 0, &rows) ||
        !case_number(self, self->given, "num_workers", 1, 4096, 1, &workers) ||
        !case_number(self, self->given, "replicas_per_worker", 1, 4096, 1, &replicas)) {
        return;
    }
    for (json_int_t w = 0; w < workers; w++) {
        struct size_list list =
            size_list_make(rows, (uint64_t)workers, (uint64_t)replicas, (uint64_t)w);
        json_t *sizes = json_array();
        for (uint64_t i = 0; i < list.length; i++) {
            json_array_append_new(sizes, json_integer(size_list_piece(&list, i, INT64_MAX).count));
        }
        json_array_append_new(got, sizes);
    }
    case_equal(self, "sizes of the workers", json_object_get(self->expect, "per_worker"), got);
}

static bool one_batch_size(
    struct conformance_case *self, const json_t *query, const json_t *wanted, json_t *got)
{
    static const char *const known[] = {"dataset", NULL};
    struct case_dataset dataset;
    struct cadre_error error = {0};
    cadre_element_spec spec;
    if (!case_knows(self, query, known) ||
        !dataset_build(self, json_object_get(query, "dataset"), CADRE_F32, &dataset)) {
        return false;
    }
    cadre_status status = dataset_spec(dataset.data, &spec, &error);
    const json_t *wanted_error = case_wanted_error(wanted);
    if (status != CADRE_OK) {
        cadre_error_publish(&error);
        json_array_append(got, (json_t *)wanted);
        return wanted_error != NULL ? case_check_error(self, wanted_error, status, true)
                                    : case_ok(self, status, "element_spec");
    }
    return json_array_append_new(got, json_integer(dataset_batch_size(dataset.data, &spec))) == 0;
}

void area_compute_batch_size(struct conformance_case *self)
{
    static const char *const known[] = {"queries", NULL};
    const json_t *queries = json_object_get(self->given, "queries");
    const json_t *results = json_object_get(self->expect, "results");
    json_t *got = new_list(self);
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (!json_is_array(queries) || json_array_size(queries) != json_array_size(results)) {
        case_skip(self, "\"queries\" and \"results\" are not equally long lists");
        return;
    }
    for (size_t i = 0; i < json_array_size(queries); i++) {
        if (!one_batch_size(self, json_array_get(queries, i), json_array_get(results, i), got)) {
            return;
        }
    }
    case_equal(self, "batch sizes", results, got);
}

void area_input_context(struct conformance_case *self)
{
    static const char *const known[] = {
        "num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync", "global_batch", NULL};
    json_int_t pipelines = 0;
    json_int_t id = 0;
    json_int_t replicas = 0;
    json_int_t rows = 0;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_input_pipelines", 0, UINT32_MAX, 1, &pipelines) ||
        !case_number(self, self->given, "input_pipeline_id", 0, UINT32_MAX, 0, &id) ||
        !case_number(self, self->given, "num_replicas_in_sync", 0, UINT32_MAX, 1, &replicas) ||
        !case_number(self, self->given, "global_batch", INT32_MIN, INT64_MAX, 0, &rows)) {
        return;
    }
    const cadre_input_context context = {.num_input_pipelines = (uint32_t)pipelines,
        .input_pipeline_id = (uint32_t)id,
        .num_replicas_in_sync = (uint32_t)replicas};
    int64_t size = 0;
    cadre_status status = cadre_per_replica_batch_size(&context, rows, &size);
    const json_t *error = case_wanted_error(self->expect);
    if (error != NULL) {
        if (status == CADRE_OK) {
            case_fail(self, "an error is expected, and the size is %lld", (long long)size);
        } else {
            case_check_error(self, error, status, true);
        }
    } else if (case_ok(self, status, "cadre_per_replica_batch_size")) {
        json_t *got = case_keep(self, json_integer(size), release_json);
        case_equal(
            self, "per-replica batch", json_object_get(self->expect, "per_replica_batch"), got);
    }
}

/* --- pipelines --- */

/* Reads all of it, and compares with "elements", "elements_prefix", "static_batch_dim", "error". */
static void check_elements(
    struct conformance_case *self, cadre_dataset *data, const char *structure)
{
    const json_t *wanted_error = case_wanted_error(self->expect);
    const json_t *prefix = json_object_get(self->expect, "elements_prefix");
    const json_t *elements = json_object_get(self->expect, "elements");
    const json_t *dim = json_object_get(self->expect, "static_batch_dim");
    size_t most = prefix != NULL ? json_array_size(prefix) : ELEMENTS_MAX;
    struct cadre_error error = {0};
    const struct pass pass = {.ordered = true};
    json_t *got = new_list(self);
    cadre_element_spec spec = {0};
    cadre_iterator *iterator = NULL;
    cadre_status status = dataset_status(data, &error);
    status = status == CADRE_OK ? dataset_spec(data, &spec, &error) : status;
    bool early = status != CADRE_OK;
    status = early ? status : dataset_iterate(data, &pass, &iterator, &error);
    while (status == CADRE_OK && json_array_size(got) < most) {
        cadre_element element = {0};
        status = iterator_next(iterator, &element, NULL, &error);
        if (status == CADRE_OK) {
            json_array_append_new(got, value_of_components(element.tensors, structure));
        }
        cadre_element_release(&element);
    }
    cadre_iterator_release(iterator);
    bool failed = status != CADRE_OK && status != CADRE_OUT_OF_RANGE;
    if (failed) {
        error.code = status;
        cadre_error_publish(&error);
    }
    if (wanted_error != NULL) {
        if (failed) {
            case_check_error(self, wanted_error, status, early);
        } else {
            case_fail(
                self, "an error is expected, and there are %zu elements", json_array_size(got));
        }
        return;
    }
    if (failed) {
        case_ok(self, status, "reading");
        return;
    }
    if (elements == NULL && prefix == NULL && dim == NULL) {
        case_skip(self, "neither elements nor an error are expected");
        return;
    }
    if ((elements != NULL || prefix != NULL) &&
        !case_equal(self, "elements", elements != NULL ? elements : prefix, got)) {
        return;
    }
    if (dim != NULL) {
        int64_t rows = element_spec_rows(&spec);
        json_t *known = rows < 0 ? json_null() : json_integer(rows);
        case_keep(self, known, release_json);
        case_equal(self, "static batch dimension", dim, known);
    }
}

static bool sizes_of(struct conformance_case *self, const json_t *list, int64_t **ret_sizes)
{
    size_t count = json_array_size(list);
    if (count == 0 || count > SIZES_MAX) {
        return case_skip(self, "no list of batch sizes");
    }
    *ret_sizes = case_alloc(self, count, sizeof **ret_sizes);
    for (size_t i = 0; i < count; i++) {
        if (!json_is_integer(json_array_get(list, i))) {
            return case_skip(self, "a batch size is no integer");
        }
        (*ret_sizes)[i] = json_integer_value(json_array_get(list, i));
    }
    return true;
}

void area_rebatch_sizes(struct conformance_case *self)
{
    static const char *const known[] = {"dataset", "batch_sizes", "drop_remainder", NULL};
    const json_t *list = json_object_get(self->given, "batch_sizes");
    struct case_dataset dataset;
    int64_t *sizes = NULL;
    json_t *one = NULL;
    if (json_is_integer(list)) { /* a single one stands for a list of it */
        one = case_keep(self, json_pack("[O]", list), release_json);
        list = one;
    }
    if (!case_knows(self, self->given, known) || !sizes_of(self, list, &sizes) ||
        !dataset_build(self, json_object_get(self->given, "dataset"), CADRE_F32, &dataset)) {
        return;
    }
    cadre_dataset *data = dataset_rebatch_sizes(cadre_dataset_retain(dataset.data), sizes,
        json_array_size(list), json_is_true(json_object_get(self->given, "drop_remainder")));
    case_keep(self, data, release_data);
    check_elements(self, data, dataset.structure);
}

void area_rebatch_split(struct conformance_case *self)
{
    static const char *const known[] = {"dataset", "num_replicas", NULL};
    struct case_dataset dataset;
    json_int_t pieces = 0;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_replicas", 1, INT32_MAX, 1, &pieces) ||
        !dataset_build(self, json_object_get(self->given, "dataset"), CADRE_F32, &dataset)) {
        return;
    }
    cadre_dataset *data =
        dataset_rebatch_split(cadre_dataset_retain(dataset.data), (uint64_t)pieces);
    case_keep(self, data, release_data);
    check_elements(self, data, dataset.structure);
}

bool case_policy(struct conformance_case *self, const char *key, cadre_shard_policy *ret_policy)
{
    static const struct {
        const char *name;
        cadre_shard_policy policy;
    } policies[] = {{"OFF", CADRE_SHARD_OFF}, {"AUTO", CADRE_SHARD_AUTO},
        {"FILE", CADRE_SHARD_FILE}, {"DATA", CADRE_SHARD_DATA}, {"HINT", CADRE_SHARD_HINT}};
    const char *name = json_string_value(json_object_get(self->given, key));
    *ret_policy = CADRE_SHARD_AUTO;
    for (size_t i = 0; name != NULL && i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(policies[i].name, name) == 0) {
            *ret_policy = policies[i].policy;
            return true;
        }
    }
    return name == NULL || case_skip(self, "the policy \"%s\" is not known", name);
}

/* What stands between the dataset and the shard. */
static bool rebatched(struct conformance_case *self, const json_t *rebatch, cadre_dataset **data)
{
    static const char *const known[] = {"sizes", "split", "drop_remainder", NULL};
    const json_t *list = json_object_get(rebatch, "sizes");
    json_int_t pieces = 0;
    int64_t *sizes = NULL;
    if (!case_knows(self, rebatch, known)) {
        return false;
    }
    if (list != NULL) {
        if (!sizes_of(self, list, &sizes)) {
            return false;
        }
        *data = dataset_rebatch_sizes(*data, sizes, json_array_size(list),
            json_is_true(json_object_get(rebatch, "drop_remainder")));
        return true;
    }
    if (!case_number(self, rebatch, "split", 1, INT32_MAX, 0, &pieces) || pieces == 0) {
        return case_skip(self, "a rebatch of no kind");
    }
    *data = dataset_rebatch_split(*data, (uint64_t)pieces);
    return true;
}

void area_auto_shard(struct conformance_case *self)
{
    static const char *const known[] = {
        "dataset", "policy", "num_workers", "worker_index", "rebatch", "num_replicas", NULL};
    struct auto_shard shard = {0};
    struct case_dataset dataset;
    struct cadre_error error = {0};
    json_int_t workers = 0;
    json_int_t worker = 0;
    json_int_t replicas = 0;
    const json_t *rebatch = json_object_get(self->given, "rebatch");
    if (!case_knows(self, self->given, known) || !case_policy(self, "policy", &shard.policy) ||
        !case_number(self, self->given, "num_workers", INT32_MIN, INT32_MAX, 1, &workers) ||
        !case_number(self, self->given, "worker_index", INT32_MIN, INT32_MAX, 0, &worker) ||
        !case_number(self, self->given, "num_replicas", 1, INT32_MAX, workers > 0 ? workers : 1,
            &replicas) ||
        !dataset_build(self, json_object_get(self->given, "dataset"), CADRE_F32, &dataset)) {
        return;
    }
    cadre_dataset *data = cadre_dataset_retain(dataset.data);
    if (json_is_object(rebatch) && !rebatched(self, rebatch, &data)) {
        cadre_dataset_release(data);
        return;
    }
    /* The interface counts from 0 on: numbers below it are those that no worker has. */
    shard.workers = workers < 0 ? 0 : (uint32_t)workers;
    shard.worker = worker < 0 ? UINT32_MAX : (uint32_t)worker;
    shard.replicas = (uint64_t)replicas;
    cadre_dataset *sharded = NULL;
    cadre_status status = dataset_auto_shard(data, &shard, &sharded, NULL, &error);
    if (status != CADRE_OK) {
        const json_t *wanted = case_wanted_error(self->expect);
        cadre_error_publish(&error);
        if (wanted != NULL) {
            case_check_error(self, wanted, status, true);
        } else {
            case_ok(self, status, "sharding");
        }
        return;
    }
    case_keep(self, sharded, release_data);
    check_elements(self, sharded, dataset.structure);
}
