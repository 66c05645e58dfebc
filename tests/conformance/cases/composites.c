/* SPDX-License-Identifier: Apache-2.0
 * See composites.h. */
#include "composites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/input/node/node.h"

#define SIZE_MOST (INT64_C(1) << 53)

/* --- pipelines --- */

/* The components that are of any size become ragged. */
static bool ragged_batch(
    struct conformance_case *self, json_int_t size, bool drop, struct case_dataset *dataset)
{
    cadre_element_spec spec = {0};
    struct cadre_error error = {0};
    uint32_t component = 0;
    if (dataset_spec(dataset->data, &spec, &error) == CADRE_OK) {
        for (char *at = dataset->structure; *at != '\0'; at++) {
            if (*at == '(' || *at == ')') {
                continue;
            }
            if (*at != STRUCTURE_PLAIN || component == spec.count) {
                return case_skip(self, "a batch of components that are batches");
            }
            const cadre_tensor_spec *tensor = &spec.tensors[component++];
            bool any = tensor->rank > 0 && tensor->dims[0] == CADRE_DIMENSION_ANY;
            *at = any ? STRUCTURE_RAGGED : STRUCTURE_PLAIN;
        }
    }
    dataset->data = cadre_dataset_ragged_batch(dataset->data, size, drop);
    return true;
}

static bool sparse_batch(
    struct conformance_case *self, const json_t *op, json_int_t size, struct case_dataset *dataset)
{
    const json_t *shape = json_object_get(op, "row_shape");
    cadre_tensor_spec row = {0};
    for (size_t i = 0; i < json_array_size(shape) && i < CADRE_RANK_MAX; i++) {
        const json_t *dim = json_array_get(shape, i);
        row.dims[row.rank++] = json_is_integer(dim) ? json_integer_value(dim) : CADRE_DIMENSION_ANY;
    }
    if (strcmp(dataset->structure, "x") != 0) {
        return case_skip(self, "a sparse batch of several components");
    }
    dataset->structure[0] = STRUCTURE_SPARSE;
    dataset->data = cadre_dataset_sparse_batch(dataset->data, size, &row, false);
    return true;
}

bool composites_apply(struct conformance_case *self, const char *name, const json_t *op,
    struct case_dataset *dataset, bool *ret_known)
{
    json_int_t size = 0;
    const bool ragged = strcmp(name, "ragged_batch") == 0;
    *ret_known = ragged || strcmp(name, "dense_to_sparse_batch") == 0;
    if (!*ret_known) {
        return true;
    }
    if (!case_number(self, op, "size", -SIZE_MOST, SIZE_MOST, 0, &size)) {
        return false;
    }
    return ragged ? ragged_batch(
                        self, size, json_is_true(json_object_get(op, "drop_remainder")), dataset)
                  : sparse_batch(self, op, size, dataset);
}

void composites_unbatch(char *structure)
{
    for (char *at = structure; *at != '\0'; at++) {
        *at = *at == STRUCTURE_RAGGED ? STRUCTURE_PLAIN : *at;
    }
}

/* --- values of replicas --- */

static bool take_ragged(struct conformance_case *self, const json_t *rows, cadre_tensor *parts[3])
{
    json_t *flat = case_keep(self, json_array(), case_release_json);
    json_t *splits = case_keep(self, json_array(), case_release_json);
    json_array_append_new(splits, json_integer(0));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_array_extend(flat, json_array_get(rows, i));
        json_array_append_new(splits, json_integer((json_int_t)json_array_size(flat)));
    }
    cadre_tensor *plain = NULL;
    return case_tensor(self, flat, CADRE_F32, &parts[0]) &&
           case_tensor(self, splits, CADRE_I64, &plain) &&
           case_ok(self, cadre_ragged_from_row_splits(parts[0], plain, &parts[1]), "row splits") &&
           case_keep(self, parts[1], case_release_tensor) != NULL;
}

static bool take_sparse(struct conformance_case *self, const json_t *value, cadre_tensor *parts[3])
{
    const json_t *indices = json_object_get(value, "indices");
    const json_t *shape = json_object_get(value, "dense_shape");
    const int64_t none[] = {0, (int64_t)json_array_size(shape)};
    cadre_tensor *plain = NULL;
    bool taken = true;
    if (json_array_size(indices) > 0) {
        taken = case_tensor(self, indices, CADRE_I64, &parts[0]);
    } else {
        taken = case_ok(self, cadre_tensor_create(CADRE_I64, 2, none, &parts[0]), "indices");
        case_keep(self, parts[0], case_release_tensor);
    }
    return taken && case_tensor(self, json_object_get(value, "values"), CADRE_F32, &parts[1]) &&
           case_tensor(self, shape, CADRE_I64, &plain) &&
           case_ok(self, cadre_sparse_from_indices(parts[0], parts[1], plain, &parts[2]),
               "a dense shape") &&
           case_keep(self, parts[2], case_release_tensor) != NULL;
}

/* The parts of all replicas' values as one value; `ret_structure` says what it is. */
static bool take_values(struct conformance_case *self, cadre_strategy *strategy,
    const json_t *values, char *ret_structure, cadre_per_replica **ret_value)
{
    const char *kind = json_string_value(json_object_get(self->given, "kind"));
    const bool ragged = kind != NULL && strcmp(kind, "ragged") == 0;
    const uint32_t replicas = (uint32_t)json_array_size(values);
    const uint32_t count = ragged ? 2 : 3;
    cadre_tensor *parts[3][REPLICAS_MAX] = {{NULL}};
    cadre_argument arguments[3] = {{.tensor = NULL}};
    if (!ragged && (kind == NULL || strcmp(kind, "sparse") != 0)) {
        return case_skip(self, "a kind that is neither \"ragged\" nor \"sparse\"");
    }
    *ret_structure = ragged ? STRUCTURE_RAGGED : STRUCTURE_SPARSE;
    for (uint32_t r = 0; r < replicas; r++) {
        cadre_tensor *own[3] = {NULL};
        const json_t *value = json_array_get(values, r);
        if (!(ragged ? take_ragged : take_sparse)(self, value, own)) {
            return false;
        }
        for (uint32_t i = 0; i < count; i++) {
            parts[i][r] = own[i];
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!case_ok(self,
                cadre_values_from_tensors(strategy, parts[i], replicas, &arguments[i].values),
                "cadre_values_from_tensors")) {
            return false;
        }
        case_keep(self, arguments[i].values, case_release_values);
    }
    bool joined = case_ok(
        self, cadre_values_join(strategy, arguments, count, ret_value), "cadre_values_join");
    case_keep(self, *ret_value, case_release_values);
    return joined;
}

/* A strategy, and the values in it. */
static bool begin(struct conformance_case *self, cadre_strategy **ret_strategy, char *ret_structure,
    cadre_per_replica **ret_value)
{
    static const char *const known[] = {"call", "axis", "op", "per_replica", "kind", NULL};
    const json_t *values = json_object_get(self->given, "per_replica");
    const size_t replicas = json_array_size(values);
    if (!case_knows(self, self->given, known)) {
        return false;
    }
    if (replicas < 1 || replicas > REPLICAS_MAX) {
        return case_skip(self, "%zu replicas", replicas);
    }
    *ret_strategy = case_strategy(self, (uint32_t)replicas);
    return *ret_strategy != NULL &&
           take_values(self, *ret_strategy, values, ret_structure, ret_value);
}

void composites_gather(struct conformance_case *self)
{
    cadre_strategy *strategy = NULL;
    cadre_per_replica *value = NULL;
    cadre_tensor *results[3] = {NULL};
    char structure[2] = "";
    json_int_t axis = 0;
    if (!case_number(self, self->given, "axis", INT32_MIN, INT32_MAX, 0, &axis) ||
        !begin(self, &strategy, structure, &value)) {
        return;
    }
    cadre_status status = cadre_gather(strategy, value, (int32_t)axis, results);
    for (int i = 0; i < 3; i++) {
        case_keep(self, results[i], case_release_tensor);
    }
    if (case_verdict(self, status, "cadre_gather")) {
        json_t *result =
            case_keep(self, value_of_components(results, structure), case_release_json);
        case_equal(self, "the result", json_object_get(self->expect, "result"), result);
    }
}

void composites_reduce(struct conformance_case *self)
{
    cadre_strategy *strategy = NULL;
    cadre_per_replica *value = NULL;
    cadre_tensor *results[3] = {NULL};
    char structure[2] = "";
    cadre_reduce_op op = CADRE_SUM;
    cadre_status status = CADRE_OK;
    if (!case_op(self, &op, &status) || !begin(self, &strategy, structure, &value)) {
        return;
    }
    const int32_t first = 0;
    const bool along = json_is_integer(json_object_get(self->given, "axis"));
    if (status == CADRE_OK) {
        status = cadre_reduce_values(strategy, op, value, &first, along ? 1 : 0, results);
    }
    for (int i = 0; i < 3; i++) {
        case_keep(self, results[i], case_release_tensor);
    }
    case_verdict(self, status, "cadre_reduce");
}

void area_print(struct conformance_case *self)
{
    cadre_strategy *strategy = NULL;
    cadre_per_replica *value = NULL;
    char structure[2] = "";
    char *text = NULL;
    size_t bytes = 0;
    if (!begin(self, &strategy, structure, &value)) {
        return;
    }
    FILE *to = open_memstream(&text, &bytes);
    cadre_status status = to == NULL ? CADRE_RESOURCE_EXHAUSTED : cadre_value_print(value, to);
    if (to != NULL) {
        fclose(to);
    }
    case_keep(self, text, free);
    if (case_verdict(self, status, "cadre_value_print")) {
        json_t *got = case_keep(self, json_string(text), case_release_json);
        case_equal(self, "the text", json_object_get(self->expect, "text"), got);
    }
}
