/* SPDX-License-Identifier: Apache-2.0
 * What is asked through the public functions alone, in a strategy of this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "expression.h"
#include "steps.h"

static void release_json(void *value)
{
    json_decref(value);
}

static void release_lookup(void *lookup)
{
    cadre_lookup_release(lookup);
}

static void release_tensor(void *tensor)
{
    cadre_tensor_release(tensor);
}

/* --- input options --- */

/* What the program's function returns. */
struct pipelines {
    cadre_dataset *data;  /* the same for each pipeline */
    cadre_dataset **each; /* by pipeline, or NULL */
    size_t each_count;
};

static cadre_status make_pipeline(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    const struct pipelines *pipelines = user;
    if (pipelines->each != NULL && context->input_pipeline_id >= pipelines->each_count) {
        return cadre_fail(CADRE_INTERNAL, "there is no pipeline %u", context->input_pipeline_id);
    }
    *ret_data = cadre_dataset_retain(
        pipelines->each != NULL ? pipelines->each[context->input_pipeline_id] : pipelines->data);
    return CADRE_OK;
}

static void release_data(void *data)
{
    cadre_dataset_release(data);
}

struct pipeline_names {
    json_t *id;
    json_t *rows;
};

static json_t *pipeline_variable(const char *name, size_t length, void *user)
{
    static const char *const ids[] = {"id", "pipeline_id", "input_pipeline_id"};
    const struct pipeline_names *names = user;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        if (strlen(ids[i]) == length && memcmp(ids[i], name, length) == 0) {
            return names->id;
        }
    }
    return length == 1 && *name == 'x' ? names->rows : NULL;
}

/* Rows that differ from pipeline to pipeline: an expression of `id`, and of `x`, the rows given. */
static bool take_expression(struct conformance_case *self, const char *text, const json_t *rows,
    size_t count, struct pipelines *pipelines)
{
    pipelines->each_count = count;
    pipelines->each = case_alloc(self, count, sizeof(cadre_dataset *));
    for (size_t i = 0; i < count; i++) {
        char why[EXPRESSION_WHY_BYTES];
        struct pipeline_names names = {.id = json_integer((json_int_t)i), .rows = (json_t *)rows};
        json_t *value = expression_evaluate(text, pipeline_variable, &names, why);
        json_decref(names.id);
        if (value == NULL) {
            return case_skip(self, "%s", why);
        }
        case_keep(self, value, release_json);
        if (!dataset_of_slices(self, value, CADRE_F32, &pipelines->each[i])) {
            return false;
        }
        case_keep(self, pipelines->each[i], release_data);
    }
    return true;
}

static bool take_data(struct conformance_case *self, const json_t *data,
    struct pipelines *pipelines, char structure[STRUCTURE_BYTES])
{
    static const json_int_t none = 4;
    struct case_dataset dataset;
    const json_t *each = json_object_get(data, "per_pipeline");
    const json_t *rows = json_object_get(data, "values");
    const char *text = json_string_value(json_is_string(data) ? data : json_object_get(data, "fn"));
    memcpy(structure, "x", 2);
    if (data == NULL) { /* any will do: an error is expected */
        pipelines->data = cadre_dataset_batch(cadre_dataset_range(0, none, 1), 2, false);
        return case_keep(self, pipelines->data, release_data) != NULL;
    }
    if (json_is_array(data)) {
        return dataset_of_slices(self, data, CADRE_F32, &pipelines->data) &&
               case_keep(self, pipelines->data, release_data) != NULL;
    }
    if (text != NULL) {
        size_t count = (size_t)json_integer_value(json_object_get(self->given, "replicas"));
        return take_expression(self, text, rows, count > REPLICAS_MAX ? 0 : count + 1, pipelines);
    }
    if (json_is_array(each)) {
        pipelines->each_count = json_array_size(each);
        pipelines->each = case_alloc(self, pipelines->each_count, sizeof(cadre_dataset *));
        for (size_t i = 0; i < pipelines->each_count; i++) {
            struct pipelines one = {0};
            if (!take_data(self, json_array_get(each, i), &one, structure)) {
                return false;
            }
            pipelines->each[i] = one.data;
        }
        return true;
    }
    if (!dataset_build(self, data, CADRE_F32, &dataset)) {
        return false;
    }
    pipelines->data = dataset.data;
    memcpy(structure, dataset.structure, STRUCTURE_BYTES);
    return true;
}

static bool take_options(struct conformance_case *self, cadre_input_options *options)
{
    const char *mode = json_string_value(json_object_get(self->given, "replication_mode"));
    json_int_t buffer = 0;
    options->keep_on_host = json_is_false(json_object_get(self->given, "fetch_to_device"));
    options->copy_to_device = json_is_true(json_object_get(self->given, "place_dataset_on_device"));
    if (mode != NULL && strcmp(mode, "PER_REPLICA") == 0) {
        options->replication_mode = CADRE_PER_REPLICA;
    } else if (mode != NULL && strcmp(mode, "PER_WORKER") != 0) {
        return case_skip(self, "the mode \"%s\" is not known", mode);
    }
    if (!case_number(self, self->given, "per_replica_buffer_size", 0, 1024, 0, &buffer)) {
        return false;
    }
    options->per_replica_buffer = (uint32_t)buffer;
    return true;
}

/* The list of steps may leave the one worker out. */
static bool check_options(struct conformance_case *self, const struct steps *steps)
{
    const json_t *all = json_object_get(self->expect, "steps");
    const json_t *wanted = all != NULL ? all : json_object_get(self->expect, "steps_prefix");
    const json_t *first = json_array_get(json_array_get(wanted, 0), 0);
    const json_t *got = json_array_get(json_array_get(json_array_get(steps->list, 0), 0), 0);
    if (wanted == NULL || json_is_array(json_array_get(first, 0)) || !json_is_array(got)) {
        return steps_check(self, steps);
    }
    /* Replicas stand where workers would: take the level out of what was got. */
    struct steps flat = *steps;
    flat.list = case_keep(self, json_array(), release_json);
    for (size_t i = 0; i < json_array_size(steps->list); i++) {
        json_array_append(flat.list, json_array_get(json_array_get(steps->list, i), 0));
    }
    return steps_check(self, &flat);
}

static cadre_strategy *strategy_of(struct conformance_case *self)
{
    const char *kind = json_string_value(json_object_get(self->given, "strategy"));
    json_int_t replicas = 0;
    if (kind != NULL && strcmp(kind, "mirrored") != 0 && strcmp(kind, "one_device") != 0 &&
        strcmp(kind, "default") != 0) {
        case_skip(self, "a strategy \"%s\" is not made by this runner", kind);
        return NULL;
    }
    bool single = kind != NULL && strcmp(kind, "mirrored") != 0;
    if (!case_number(self, self->given, "replicas", 1, REPLICAS_MAX, 1, &replicas)) {
        return NULL;
    }
    return case_strategy(self, single ? 1 : (uint32_t)replicas);
}

void area_input_options(struct conformance_case *self)
{
    static const char *const known[] = {"strategy", "replicas", "api", "fetch_to_device",
        "replication_mode", "place_dataset_on_device", "per_replica_buffer_size", "data", NULL};
    const char *api = json_string_value(json_object_get(self->given, "api"));
    cadre_input_options options = {0};
    struct pipelines *pipelines = case_alloc(self, 1, sizeof *pipelines);
    struct steps steps;
    cadre_distributed_dataset *distributed = NULL;
    char structure[STRUCTURE_BYTES];
    if (!case_knows(self, self->given, known) || !take_options(self, &options) ||
        !take_data(self, json_object_get(self->given, "data"), pipelines, structure)) {
        return;
    }
    bool function = api == NULL || strstr(api, "function") != NULL;
    if (!function && strstr(api, "dataset") == NULL) {
        case_skip(self, "the function \"%s\" is not known", api);
        return;
    }
    cadre_strategy *strategy = strategy_of(self);
    if (strategy == NULL) {
        return;
    }
    cadre_status status = function
                              ? cadre_distribute_datasets_from_function(
                                    strategy, make_pipeline, pipelines, &options, &distributed)
                              : cadre_distribute_dataset(strategy,
                                    cadre_dataset_retain(pipelines->data), &options, &distributed);
    const json_t *error = case_wanted_error(self->expect);
    if (status != CADRE_OK && error != NULL) {
        case_check_error(self, error, status, true);
    } else if (case_ok(self, status, "distributing")) {
        public_read(self, distributed, structure, steps_wanted(self->expect), &steps);
        check_options(self, &steps);
    }
}

/* --- values of functions --- */

struct value_maker {
    const char *text;
    json_t *id;
    json_t *n;
    char why[EXPRESSION_WHY_BYTES];
    json_t *last; /* the value that was made, for its structure */
    char structure[STRUCTURE_BYTES];
};

static json_t *id_or_n(const char *name, size_t length, void *user)
{
    const struct value_maker *maker = user;
    if (length == 2 && memcmp(name, "id", 2) == 0) {
        return maker->id;
    }
    return length == 1 && *name == 'n' ? maker->n : NULL;
}

static bool open_tuple(const json_t *value, cadre_element *element, char *structure, size_t *used)
{
    const json_t *parts = expression_tuple(value);
    if (*used + 3 > STRUCTURE_BYTES) {
        return false;
    }
    structure[(*used)++] = parts == NULL ? 'x' : '(';
    for (size_t i = 0; i < json_array_size(parts); i++) {
        if (!open_tuple(json_array_get(parts, i), element, structure, used)) {
            return false;
        }
    }
    if (parts != NULL) {
        structure[(*used)++] = ')';
    } else if (element->count == CADRE_ELEMENT_TENSORS_MAX ||
               !value_to_tensor(value, CADRE_F32, &element->tensors[element->count])) {
        return false;
    } else {
        element->count++;
    }
    structure[*used] = '\0';
    return true;
}

static cadre_status make_value(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    struct value_maker *maker = user;
    maker->id = json_integer(context->replica_id_in_sync_group);
    maker->n = json_integer(context->num_replicas_in_sync);
    json_t *value = expression_evaluate(maker->text, id_or_n, maker, maker->why);
    json_decref(maker->id);
    json_decref(maker->n);
    size_t used = 0;
    bool made = value != NULL && open_tuple(value, ret_value, maker->structure, &used);
    json_decref(value);
    return made ? CADRE_OK : cadre_fail(CADRE_INTERNAL, "\"%s\" gives no value", maker->text);
}

static bool values_of(struct conformance_case *self, struct value_maker *maker, uint32_t replicas,
    json_t *got, cadre_status *ret_status)
{
    struct conformance_case inner = {.given = self->given, .expect = self->expect};
    cadre_per_replica *values = NULL;
    cadre_strategy *strategy = case_strategy(&inner, replicas);
    if (strategy == NULL) {
        case_fail(self, "%s", inner.why);
        case_end(&inner);
        return false;
    }
    *ret_status = cadre_values_from_function(strategy, make_value, maker, &values);
    json_t *list = json_array();
    for (uint32_t r = 0; *ret_status == CADRE_OK && r < cadre_per_replica_count(values); r++) {
        cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX] = {NULL};
        for (uint32_t i = 0; i < cadre_per_replica_components(values); i++) {
            tensors[i] = cadre_local_results(values, i)[r];
        }
        json_array_append_new(list, value_of_components(tensors, maker->structure));
    }
    json_array_append_new(got, list);
    cadre_per_replica_release(values);
    case_end(&inner);
    return true;
}

void area_values_from_function(struct conformance_case *self)
{
    static const char *const known[] = {"fn", "num_replicas", NULL};
    const json_t *counts = json_object_get(self->given, "num_replicas");
    struct value_maker maker = {.text = json_string_value(json_object_get(self->given, "fn"))};
    const json_t *error = case_wanted_error(self->expect);
    json_t *got = case_keep(self, json_array(), release_json);
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (json_is_integer(counts)) {
        counts = case_keep(self, json_pack("[O]", counts), release_json);
    }
    if (maker.text == NULL || json_array_size(counts) == 0) {
        case_skip(self, "no function, or no numbers of replicas");
        return;
    }
    for (size_t i = 0; i < json_array_size(counts); i++) {
        json_int_t replicas = json_integer_value(json_array_get(counts, i));
        cadre_status status = CADRE_OK;
        if (replicas < 1 || replicas > REPLICAS_MAX) {
            case_skip(self, "%lld replicas", (long long)replicas);
            return;
        }
        if (!values_of(self, &maker, (uint32_t)replicas, got, &status)) {
            return;
        }
        if (status != CADRE_OK && maker.why[0] != '\0') {
            case_skip(self, "%s", maker.why);
            return;
        }
        if (status != CADRE_OK) {
            if (error != NULL) {
                case_check_error(self, error, status, true);
            } else {
                case_ok(self, status, "cadre_values_from_function");
            }
            return;
        }
    }
    if (error != NULL) {
        case_skip(
            self, "an error is expected where the values are used, which \"fn\" does not say");
    } else {
        case_equal(self, "values", json_object_get(self->expect, "per_replica"), got);
    }
}

/* --- lookups --- */

static bool tensor_under(
    struct conformance_case *self, const json_t *object, const char *key, cadre_tensor **ret_tensor)
{
    if (!value_to_tensor(json_object_get(object, key), CADRE_F32, ret_tensor)) {
        return case_skip(self, "\"%s\" is no tensor", key);
    }
    case_keep(self, *ret_tensor, release_tensor);
    return true;
}

static cadre_tensor *ids_from(struct conformance_case *self, json_int_t first, int64_t count)
{
    cadre_tensor *tensor = NULL;
    int64_t *ids = case_alloc(self, (size_t)count, sizeof *ids);
    for (int64_t i = 0; i < count; i++) {
        ids[i] = first + i;
    }
    cadre_tensor_from_data(CADRE_I64, 1, &count, ids, &tensor);
    case_keep(self, tensor, release_tensor);
    return tensor;
}

/* Tokens get ids from `first_id` on, all others `oov_id`: a vocabulary, or a table where the
 * vocabulary's own numbers would be others. */
static cadre_status vocabulary(
    struct conformance_case *self, const cadre_tensor *tokens, cadre_lookup **ret_lookup)
{
    const json_t *given = self->given;
    json_int_t buckets = 0;
    json_int_t first = 0;
    json_int_t oov = 0;
    const char *mask = json_string_value(json_object_get(given, "mask_token"));
    const char *name = json_string_value(json_object_get(given, "oov_token"));
    if (!case_number(self, given, "num_oov_indices", 0, INT32_MAX, 1, &buckets)) {
        return CADRE_UNIMPLEMENTED;
    }
    bool strings = cadre_tensor_dtype(tokens) == CADRE_STRING;
    json_int_t own = buckets + (mask != NULL);
    if (!case_number(self, given, "first_id", INT32_MIN, INT32_MAX, own, &first) ||
        !case_number(self, given, "oov_id", INT32_MIN, INT32_MAX, mask != NULL, &oov)) {
        return CADRE_UNIMPLEMENTED;
    }
    if (first != own || oov != (mask != NULL)) {
        cadre_tensor *missing = NULL;
        cadre_tensor_from_i64(oov, &missing);
        case_keep(self, missing, release_tensor);
        return cadre_lookup_table(
            tokens, ids_from(self, first, cadre_tensor_count(tokens)), missing, ret_lookup);
    }
    const cadre_lookup_options options = {.oov_ids = buckets == 0 ? CADRE_LOOKUP_NO_OOV : buckets,
        .mask_string = strings ? mask : NULL,
        .oov_string = strings ? name : NULL};
    return cadre_lookup_create(tokens, &options, ret_lookup);
}

static cadre_status make_lookup(struct conformance_case *self, cadre_lookup **ret_lookup)
{
    cadre_tensor *keys = NULL;
    cadre_tensor *values = NULL;
    cadre_tensor *missing = NULL;
    const json_t *given = self->given;
    if (json_object_get(given, "vocabulary") != NULL) {
        return tensor_under(self, given, "vocabulary", &keys) ? vocabulary(self, keys, ret_lookup)
                                                              : CADRE_UNIMPLEMENTED;
    }
    if (!tensor_under(self, given, "table_keys", &keys) ||
        !tensor_under(self, given, "table_values", &values) ||
        !tensor_under(self, given, "default", &missing)) {
        return CADRE_UNIMPLEMENTED;
    }
    return cadre_lookup_table(keys, values, missing, ret_lookup);
}

/* What is looked up in a dataset, which gives each replica batches of its own. */
static void check_lookup_steps(struct conformance_case *self, cadre_lookup *lookup)
{
    json_int_t rows = 0;
    json_int_t replicas = 0;
    cadre_tensor *tokens = NULL;
    cadre_distributed_dataset *distributed = NULL;
    struct pipelines *pipelines = case_alloc(self, 1, sizeof *pipelines);
    struct steps steps;
    if (!case_number(self, self->given, "per_replica_batch", 1, 65536, 1, &rows) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas) ||
        !tensor_under(self, self->given, "data", &tokens)) {
        return;
    }
    cadre_dataset *data = cadre_dataset_tensor_slices(&tokens, 1);
    if (json_is_true(json_object_get(self->given, "repeat"))) {
        data = cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER);
    }
    data = cadre_dataset_map(data, cadre_lookup_map, lookup, NULL);
    pipelines->data = cadre_dataset_batch(data, rows, false);
    case_keep(self, pipelines->data, release_data);
    cadre_strategy *strategy = case_strategy(self, (uint32_t)replicas);
    if (strategy == NULL || !case_ok(self,
                                cadre_distribute_datasets_from_function(
                                    strategy, make_pipeline, pipelines, NULL, &distributed),
                                "cadre_distribute_datasets_from_function")) {
        return;
    }
    public_read(self, distributed, "x", steps_wanted(self->expect), &steps);
    check_options(self, &steps);
}

static void check_queries(struct conformance_case *self, const cadre_lookup *lookup)
{
    cadre_tensor *queries = NULL;
    cadre_tensor *found = NULL;
    const json_t *wanted = json_object_get(self->expect, "values");
    const json_t *error = case_wanted_error(self->expect);
    if (!tensor_under(self, self->given, "queries", &queries)) {
        return;
    }
    cadre_status status = cadre_lookup_apply(lookup, queries, &found);
    case_keep(self, found, release_tensor);
    if (status != CADRE_OK && error != NULL) {
        case_check_error(self, error, status, true);
    } else if (case_ok(self, status, "cadre_lookup_apply")) {
        json_t *got = case_keep(self, value_of_tensor(found), release_json);
        if (wanted == NULL) {
            case_skip(self, "no values are expected");
        } else {
            case_equal(self, "values", wanted, got);
        }
    }
}

void area_lookup(struct conformance_case *self)
{
    static const char *const known[] = {"vocabulary", "oov_id", "first_id", "num_oov_indices",
        "mask_token", "oov_token", "data", "repeat", "per_replica_batch", "num_replicas",
        "table_keys", "table_values", "default", "queries", "num_workers", NULL};
    cadre_lookup *lookup = NULL;
    if (!case_knows(self, self->given, known)) {
        return;
    }
    cadre_status status = make_lookup(self, &lookup);
    if (self->verdict != VERDICT_PASSED) {
        return;
    }
    const json_t *error = case_wanted_error(self->expect);
    if (status != CADRE_OK) {
        if (error != NULL) {
            case_check_error(self, error, status, true);
        } else {
            case_ok(self, status, "making the lookup");
        }
        return;
    }
    case_keep(self, lookup, release_lookup);
    const json_t *size = json_object_get(self->expect, "size");
    json_t *got = case_keep(self, json_integer(cadre_lookup_size(lookup)), release_json);
    if (size != NULL && !case_equal(self, "size", size, got)) {
        return;
    }
    if (json_object_get(self->given, "data") != NULL) {
        check_lookup_steps(self, lookup);
    } else if (json_object_get(self->given, "queries") != NULL) {
        check_queries(self, lookup);
    } else if (size == NULL) {
        case_skip(self, "nothing is looked up");
    }
}
