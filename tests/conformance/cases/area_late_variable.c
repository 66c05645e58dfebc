/* SPDX-License-Identifier: Apache-2.0
 * Variables that are created while a program runs: what each call gives, what is there at the end.
 *
 *     "script": [{"in": "function", "create": ["v", "v"], "add": 2.0, "fails": true}, ...]
 *
 * "in": "cross" (between steps), "function", "merge" (a merge call). A variable of an entry has its
 * "init" (a number or a list), "dtype", "aggregation" and "synchronization". "add": each replica
 * adds it to its component of the first; "assign": all replicas assign it to that, in number r + 1
 * times of replica r, as the aggregation says. Expected: "got" (the names that each entry gave, or
 * its error's), "values" and "components" at the end, "kinds", "count" of variables, "position". */
#include <stdio.h>
#include <string.h>

#include "areas.h"
#include "cadre/assign.h"
#include "cadre/variable.h"
#include "replicas.h"

#define CREATED_MAX 8
#define LOCALS_MAX  8

struct entry {
    const char *names[CREATED_MAX];
    cadre_variable_options options;
    cadre_dtype dtype;
    cadre_tensor *init;
    double add;
    double assign;
    bool fails;
    bool merges;
    cadre_variable *got[LOCALS_MAX][CREATED_MAX];
};

static cadre_status fill(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    const cadre_tensor *init = user;
    (void)count;
    (void)dtype;
    memcpy(values, cadre_tensor_const_data(init), cadre_tensor_bytes(init));
    return CADRE_OK;
}

static cadre_status create_all(struct entry *entry, cadre_strategy *strategy, uint32_t local)
{
    for (int i = 0; i < CREATED_MAX && entry->names[i] != NULL; i++) {
        CADRE_TRY(cadre_variable_create(strategy, entry->names[i], entry->dtype,
            cadre_tensor_rank(entry->init), cadre_tensor_dims(entry->init), &entry->options,
            &entry->got[local][i]));
    }
    return CADRE_OK;
}

/* --- one entry --- */

static cadre_status create_in_merge(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return create_all(user, strategy, 0);
}

static cadre_status assign_own(cadre_replica *replica, const struct entry *entry)
{
    cadre_tensor *value = NULL;
    cadre_variable *variable = entry->got[cadre_replica_local_id(replica)][0];
    double number = entry->assign * (cadre_replica_id(replica) + 1);
    CADRE_TRY(cadre_tensor_from_f32((float)number, &value));
    cadre_status status = cadre_variable_assign(replica, variable, CADRE_ASSIGN, value);
    cadre_tensor_release(value);
    return status;
}

static cadre_status in_function(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct entry *entry = user;
    uint32_t local = cadre_replica_local_id(replica);
    (void)inputs;
    (void)outputs;
    if (entry->merges) {
        return cadre_merge_call(replica, create_in_merge, entry, NULL, 0, 0, NULL);
    }
    CADRE_TRY(create_all(entry, NULL, local));
    if (entry->add != 0) {
        *(float *)cadre_variable_write(replica, entry->got[local][0]) += (float)entry->add;
    }
    if (entry->assign != 0) {
        CADRE_TRY(assign_own(replica, entry));
    }
    return entry->fails ? cadre_fail(CADRE_DATA_LOSS, "the step is to fail") : CADRE_OK;
}

/* --- taking it from the case --- */

static bool take_number(
    struct conformance_case *self, const json_t *object, const char *key, double *ret_number)
{
    const json_t *value = json_object_get(object, key);
    *ret_number = json_number_value(value);
    return value == NULL || json_is_number(value) || case_skip(self, "\"%s\" is no number", key);
}

static bool take_options(
    struct conformance_case *self, const json_t *object, cadre_variable_options *options)
{
    static const char *const aggregations[] = {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"};
    const char *aggregation = json_string_value(json_object_get(object, "aggregation"));
    const char *synchronization = json_string_value(json_object_get(object, "synchronization"));
    if (synchronization != NULL && strcmp(synchronization, "ON_READ") == 0) {
        options->synchronization = CADRE_SYNC_ON_READ;
    } else if (synchronization != NULL && strcmp(synchronization, "AUTO") != 0) {
        return case_skip(self, "a synchronization \"%s\"", synchronization);
    }
    for (int i = 0; aggregation != NULL && i < 4; i++) {
        if (strcmp(aggregation, aggregations[i]) == 0) {
            options->aggregation = (cadre_aggregation)i;
            return true;
        }
    }
    return aggregation == NULL || case_skip(self, "an aggregation \"%s\"", aggregation);
}

static bool take_entry(
    struct conformance_case *self, const json_t *object, const json_t *init, struct entry *entry)
{
    static const char *const known[] = {"in", "create", "init", "dtype", "aggregation",
        "synchronization", "add", "assign", "fails", NULL};
    const json_t *names = json_object_get(object, "create");
    const char *in = json_string_value(json_object_get(object, "in"));
    *entry = (struct entry){.fails = json_is_true(json_object_get(object, "fails")),
        .merges = in != NULL && strcmp(in, "merge") == 0};
    if (!case_knows(self, object, known) || in == NULL || json_array_size(names) >= CREATED_MAX) {
        return case_skip(self, "an entry of the script is not known");
    }
    for (size_t i = 0; i < json_array_size(names); i++) {
        entry->names[i] = json_string_value(json_array_get(names, i));
    }
    return take_options(self, object, &entry->options) &&
           take_number(self, object, "add", &entry->add) &&
           take_number(self, object, "assign", &entry->assign) &&
           case_dtype(self, object, CADRE_F32, &entry->dtype) &&
           case_tensor(self, init, entry->dtype, &entry->init);
}

/* --- what came of it --- */

static void compare_variables(
    struct conformance_case *self, cadre_strategy *strategy, const char *what)
{
    const char *name;
    json_t *wanted;
    json_object_foreach(json_object_get(self->expect, what), name, wanted)
    {
        cadre_per_replica *values = NULL;
        cadre_variable *variable = NULL;
        if (cadre_variable_find(strategy, name, &variable) != CADRE_OK) {
            case_fail(self, "there is no variable '%s'", name);
            return;
        }
        if (strcmp(what, "kinds") == 0) {
            static const char *const kinds[] = {
                "regular", "mirrored", "sync_on_read", "aggregating"};
            json_t *kind = json_string(kinds[cadre_variable_kind(variable)]);
            case_equal(self, name, wanted, case_keep(self, kind, case_release_json));
        } else if (strcmp(what, "components") == 0) {
            if (case_ok(self, cadre_variable_local_results(variable, &values), "its components")) {
                case_keep(self, values, case_release_values);
                case_equal(self, name, wanted, case_results(self, values, 0));
            }
        } else {
            cadre_tensor *value = NULL;
            if (case_ok(self,
                    cadre_tensor_from_data(cadre_variable_dtype(variable),
                        cadre_variable_rank(variable), cadre_variable_dims(variable),
                        cadre_variable_read(NULL, variable), &value),
                    "its value")) {
                case_keep(self, value, case_release_tensor);
                case_equal(self, name, wanted, case_json(self, value));
            }
        }
    }
}

static void compare_number(struct conformance_case *self, const char *what, json_int_t got)
{
    const json_t *wanted = json_object_get(self->expect, what);
    if (wanted != NULL) {
        case_equal(self, what, wanted, case_keep(self, json_integer(got), case_release_json));
    }
}

static void compare_removed(struct conformance_case *self, cadre_strategy *strategy)
{
    const json_t *names = json_object_get(self->expect, "absent");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        cadre_variable *variable = NULL;
        if (cadre_variable_find(strategy, name, &variable) == CADRE_OK) {
            case_fail(self, "there is a variable '%s'", name);
        }
    }
}

/* The names that it gave, the same on all replicas; or its error's. */
static json_t *perform(
    cadre_strategy *strategy, const json_t *object, struct entry *entry, uint32_t locals)
{
    const bool cross = strcmp(json_string_value(json_object_get(object, "in")), "cross") == 0;
    entry->options.initializer = (cadre_initializer){
        .kind = CADRE_INITIALIZER_FUNCTION, .function = fill, .user = entry->init};
    cadre_status status = cross ? create_all(entry, strategy, 0)
                                : cadre_run(strategy, in_function, entry, NULL, 0, NULL);
    if (status != CADRE_OK) {
        return json_string(cadre_status_name(status));
    }
    json_t *names = json_array();
    for (int i = 0; i < CREATED_MAX && entry->names[i] != NULL; i++) {
        bool same = true;
        for (uint32_t local = 1; !cross && local < locals; local++) {
            same = same && entry->got[local][i] == entry->got[0][i];
        }
        json_array_append_new(
            names, json_string(same ? cadre_variable_name(entry->got[0][i]) : "not the same"));
    }
    return names;
}

void area_late_variable(struct conformance_case *self)
{
    static const char *const known[] = {"num_replicas", "strategy", "script", NULL};
    static const char *const compared[] = {"values", "components", "kinds"};
    const json_t *script = json_object_get(self->given, "script");
    json_int_t replicas = 0;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_replicas", 1, 4, 2, &replicas)) {
        return;
    }
    cadre_strategy *strategy = case_strategy_of(
        self, json_string_value(json_object_get(self->given, "strategy")), (uint32_t)replicas);
    json_t *got = case_keep(self, json_array(), case_release_json);
    for (size_t i = 0; strategy != NULL && i < json_array_size(script); i++) {
        const json_t *object = json_array_get(script, i);
        const json_t *init = json_object_get(object, "init");
        json_t *zero = case_keep(self, json_real(0), case_release_json);
        struct entry entry;
        if (!take_entry(self, object, init == NULL ? zero : init, &entry)) {
            return;
        }
        json_array_append_new(got, perform(strategy, object, &entry, (uint32_t)replicas));
    }
    if (strategy == NULL) {
        return;
    }
    if (json_object_get(self->expect, "got") != NULL) {
        case_equal(self, "what the calls gave", json_object_get(self->expect, "got"), got);
    }
    for (size_t i = 0; i < sizeof compared / sizeof compared[0]; i++) {
        compare_variables(self, strategy, compared[i]);
    }
    compare_removed(self, strategy);
    compare_number(self, "position", (json_int_t)cadre_strategy_position(strategy));
}
