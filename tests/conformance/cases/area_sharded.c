/* SPDX-License-Identifier: Apache-2.0
 * Variables that are cut into shards: through the public functions, on servers of this process.
 * Shards are as even as can be here; of others the value as a whole is compared. With a strategy by
 * name the same is asked of a variable that is in this process, and whole. */
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "replicas.h"
#include "servers.h"

#define DEFAULT CADRE_SLICE_DEFAULT

/* What a case is about. */
struct sharded {
    struct conformance_case *self;
    cadre_variable *variable;
    cadre_dtype dtype;
    json_t *sizes; /* of the shards, as given */
};

/* --- what is given --- */

/* The lists, one behind the other; the case releases it. */
static json_t *joined(struct conformance_case *self, const json_t *lists)
{
    json_t *all = case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *list;
    json_array_foreach(lists, i, list)
    {
        json_array_extend(all, list);
    }
    return all;
}

/* The initial value, and how many rows each shard has of it. */
static bool take_value(struct sharded *sharded, json_t **ret_value)
{
    struct conformance_case *self = sharded->self;
    const json_t *shards = json_object_get(self->given, "shards");
    const json_t *sizes = json_object_get(self->given, "shard_sizes");
    const json_t *init = json_object_get(self->given, "init");
    sharded->sizes = case_keep(self, json_array(), case_release_json);
    *ret_value =
        shards != NULL ? joined(self, shards) : case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *item;
    json_array_foreach(shards != NULL ? shards : sizes, i, item)
    {
        json_int_t rows =
            shards != NULL ? (json_int_t)json_array_size(item) : json_integer_value(item);
        json_array_append_new(sharded->sizes, json_integer(rows));
        for (json_int_t row = 0; shards == NULL && row < rows; row++) {
            json_array_append_new(*ret_value, init == NULL ? json_real(0) : json_deep_copy(init));
        }
    }
    return json_array_size(sharded->sizes) > 0 || case_skip(self, "neither shards nor their sizes");
}

static bool make(struct sharded *sharded)
{
    struct conformance_case *self = sharded->self;
    const json_t *given = self->given;
    json_t *value = NULL;
    cadre_tensor *tensor = NULL;
    if (!take_value(sharded, &value)) {
        return false;
    }
    json_t *all = case_keep(self, json_pack("[O]", value), case_release_json);
    const json_t *values = json_object_get(given, "values");
    if (values != NULL) {
        json_array_append(all, (json_t *)(uintptr_t)values);
    }
    sharded->dtype = case_dtype_of(all);
    const char *kind = json_string_value(json_object_get(given, "strategy"));
    cadre_strategy *strategy = kind == NULL ? case_servers(self, json_array_size(sharded->sizes))
                                            : case_strategy_of(self, kind, 3);
    return case_tensor(self, value, sharded->dtype, &tensor) && strategy != NULL &&
           case_ok(self,
               cadre_variable_create(strategy, "v", sharded->dtype, cadre_tensor_rank(tensor),
                   cadre_tensor_dims(tensor), NULL, &sharded->variable),
               "cadre_variable_create") &&
           case_ok(self, cadre_variable_assign(NULL, sharded->variable, CADRE_ASSIGN, tensor),
               "cadre_variable_assign");
}

/* --- what is done --- */

static bool whole(struct sharded *sharded, const char *op, bool *ret_known)
{
    struct conformance_case *self = sharded->self;
    cadre_tensor *value = NULL;
    *ret_known =
        strcmp(op, "assign") == 0 || strcmp(op, "assign_add") == 0 || strcmp(op, "assign_sub") == 0;
    if (!*ret_known) {
        return false;
    }
    if (!case_tensor(self, json_object_get(self->given, "value"), sharded->dtype, &value)) {
        return false;
    }
    cadre_assignment how = strcmp(op, "assign") == 0       ? CADRE_ASSIGN
                           : strcmp(op, "assign_add") == 0 ? CADRE_ASSIGN_ADD
                                                           : CADRE_ASSIGN_SUB;
    cadre_status status = cadre_variable_assign(NULL, sharded->variable, how, value);
    return case_verdict(self, status, op);
}

static bool rows(struct sharded *sharded, const char *op)
{
    struct conformance_case *self = sharded->self;
    cadre_tensor *ids = NULL;
    cadre_tensor *values = NULL;
    bool add = strcmp(op, "scatter_add") == 0;
    bool sub = strcmp(op, "scatter_sub") == 0;
    if (!add && !sub && strcmp(op, "scatter_update") != 0) {
        return case_skip(self, "the operation %s", op);
    }
    if (!case_tensor(self, json_object_get(self->given, "indices"), CADRE_I64, &ids) ||
        !case_tensor(self, json_object_get(self->given, "values"), sharded->dtype, &values)) {
        return false;
    }
    cadre_status status = cadre_variable_scatter(NULL, sharded->variable,
        add   ? CADRE_SCATTER_ADD
        : sub ? CADRE_SCATTER_SUB
              : CADRE_SCATTER_UPDATE,
        &(cadre_sparse){.values = values, .indices = ids, .rows = CADRE_DIMENSION_ANY});
    return case_verdict(self, status, op);
}

static int64_t bound(const json_t *query, size_t i)
{
    const json_t *value = json_array_get(query, i);
    return json_is_integer(value) ? json_integer_value(value) : DEFAULT;
}

static void slices(struct sharded *sharded)
{
    struct conformance_case *self = sharded->self;
    json_t *results = case_keep(self, json_array(), case_release_json);
    size_t i;
    const json_t *query;
    json_array_foreach(json_object_get(self->given, "queries"), i, query)
    {
        cadre_tensor *value = NULL;
        cadre_status status = json_is_integer(query)
                                  ? cadre_variable_slice(NULL, sharded->variable,
                                        json_integer_value(query), CADRE_SLICE_ROW, 1, &value)
                                  : cadre_variable_slice(NULL, sharded->variable, bound(query, 0),
                                        bound(query, 1), bound(query, 2), &value);
        if (!case_verdict(self, status, "a slice")) {
            return;
        }
        json_array_append_new(results, value_of_tensor(value));
        cadre_tensor_release(value);
    }
    case_equal(self, "results", json_object_get(self->expect, "results"), results);
}

static void lookup(struct sharded *sharded)
{
    struct conformance_case *self = sharded->self;
    cadre_tensor *ids = NULL;
    cadre_tensor *found = NULL;
    if (!case_tensor(self, json_object_get(self->given, "indices"), CADRE_I64, &ids) ||
        !case_verdict(self, cadre_variable_gather(NULL, sharded->variable, ids, NULL, &found),
            "cadre_variable_gather")) {
        return;
    }
    case_keep(self, found, case_release_tensor);
    case_equal(self, "the rows", json_object_get(self->expect, "results"), case_json(self, found));
}

/* --- what is expected --- */

/* Shard by shard where ours are of those sizes. */
static bool check_shards(struct sharded *sharded, const json_t *wanted)
{
    struct conformance_case *self = sharded->self;
    json_t *shards = case_shards(self, sharded->variable);
    json_t *sizes = case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *shard;
    json_array_foreach(shards, i, shard)
    {
        json_array_append_new(sizes, json_integer((json_int_t)json_array_size(shard)));
    }
    if (shards == NULL) {
        return false;
    }
    return json_equal(sizes, sharded->sizes)
               ? case_equal(self, "the shards", wanted, shards)
               : case_equal(self, "the value", joined(self, wanted), joined(self, shards));
}

/* {"row": value}, all others 0. */
static bool check_nonzero(struct sharded *sharded, const json_t *nonzero)
{
    struct conformance_case *self = sharded->self;
    json_t *shards = case_shards(self, sharded->variable);
    if (shards == NULL) {
        return false;
    }
    json_t *value = joined(self, shards);
    json_t *wanted = case_keep(self, json_array(), case_release_json);
    for (size_t row = 0; row < json_array_size(value); row++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", row);
        json_t *number = json_object_get(nonzero, key);
        json_array_append_new(wanted, number == NULL ? json_real(0) : json_deep_copy(number));
    }
    return case_equal(self, "the value", wanted, value);
}

static bool check_owners(struct sharded *sharded, const json_t *owners)
{
    struct conformance_case *self = sharded->self;
    json_t *is = case_keep(self, json_object(), case_release_json);
    const char *key;
    json_t *owner;
    json_object_foreach((json_t *)(uintptr_t)owners, key, owner)
    {
        int64_t row = strtoll(key, NULL, 10);
        for (uint32_t i = 0; i < cadre_variable_components(sharded->variable); i++) {
            int64_t first = 0;
            int64_t count = 0;
            cadre_variable_component_rows(sharded->variable, i, &first, &count);
            if (row >= first && row < first + count) {
                json_object_set_new(is, key, json_integer(i));
            }
        }
    }
    return case_equal(self, "the owners", owners, is);
}

void area_sharded_variable(struct conformance_case *self)
{
    static const char *const known[] = {"shards", "shard_sizes", "init", "op", "value", "indices",
        "values", "queries", "strategy", NULL};
    struct sharded sharded = {.self = self};
    const char *op = json_string_value(json_object_get(self->given, "op"));
    bool is_whole = false;
    if (!case_knows(self, self->given, known) || !make(&sharded)) {
        return;
    }
    if (op == NULL) {
        case_skip(self, "no operation");
        return;
    }
    if (strcmp(op, "slice") == 0) {
        slices(&sharded);
        return;
    }
    if (strcmp(op, "gather") == 0) {
        lookup(&sharded);
        return;
    }
    bool done = whole(&sharded, op, &is_whole);
    done = is_whole ? done : rows(&sharded, op);
    const json_t *shards = json_object_get(self->expect, "shards");
    const json_t *nonzero = json_object_get(self->expect, "nonzero");
    const json_t *owners = json_object_get(self->expect, "owner_shard");
    if (done && (shards == NULL || check_shards(&sharded, shards)) &&
        (nonzero == NULL || check_nonzero(&sharded, nonzero)) && owners != NULL) {
        check_owners(&sharded, owners);
    }
}
