/* SPDX-License-Identifier: Apache-2.0
 * Scopes, devices, logical devices, and what replicas' functions take and return. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "expression.h"
#include "replicas.h"

/* --- scope --- */

#define STRATEGIES_MAX 8

struct stage {
    const char *names[STRATEGIES_MAX];
    size_t name_bytes[STRATEGIES_MAX];
    cadre_strategy *strategies[STRATEGIES_MAX];
    cadre_strategy *scopes[64]; /* entered */
    uint32_t scope_count;
    json_t *answers;
};

/* "default" or "" is the default strategy, any other word one that is made when it is first
 * named. */
static bool find(struct conformance_case *self, struct stage *stage, const char *name,
    cadre_strategy **ret_strategy)
{
    *ret_strategy = NULL;
    if (strcmp(name, "default") == 0 || strcmp(name, "none") == 0 || strcmp(name, "None") == 0) {
        return true;
    }
    for (int i = 0; i < STRATEGIES_MAX; i++) {
        if (stage->names[i] == NULL) {
            stage->names[i] = name;
            stage->strategies[i] = case_strategy(self, 2);
        }
        if (strcmp(stage->names[i], name) == 0) {
            *ret_strategy = stage->strategies[i];
            return *ret_strategy != NULL;
        }
    }
    return case_skip(self, "more than %d strategies", STRATEGIES_MAX);
}

static const char *name_of(const struct stage *stage, const cadre_strategy *strategy)
{
    for (int i = 0; i < STRATEGIES_MAX; i++) {
        if (strategy != NULL && stage->strategies[i] == strategy) {
            return stage->names[i];
        }
    }
    return "default";
}

static const char *context_name(void)
{
    return cadre_in_cross_replica_context() ? "cross_replica" : "replica";
}

/* One entry; false: it is not known. */
static bool play(
    struct conformance_case *self, struct stage *stage, const char *entry, cadre_status *ret_status)
{
    cadre_strategy *strategy = NULL;
    *ret_status = CADRE_OK;
    if (strncmp(entry, "enter ", 6) == 0) {
        if (!find(self, stage, entry + 6, &strategy)) {
            return false;
        }
        *ret_status = cadre_scope_enter(strategy);
        if (*ret_status == CADRE_OK && stage->scope_count < 64) {
            stage->scopes[stage->scope_count++] = strategy;
        }
    } else if (strcmp(entry, "exit") == 0) {
        if (stage->scope_count == 0) {
            return case_skip(self, "an exit without a scope");
        }
        *ret_status = cadre_scope_leave(stage->scopes[--stage->scope_count]);
    } else if (strncmp(entry, "set_strategy ", 13) == 0) {
        if (!find(self, stage, entry + 13, &strategy)) {
            return false;
        }
        *ret_status = cadre_strategy_set(strategy);
    } else if (strcmp(entry, "current") == 0) {
        json_array_append_new(
            stage->answers, json_string(name_of(stage, cadre_strategy_current())));
    } else if (strcmp(entry, "context") == 0) {
        json_array_append_new(stage->answers, json_string(context_name()));
    } else {
        return case_skip(self, "\"%s\" is not known", entry);
    }
    return true;
}

static void play_all(struct conformance_case *self, struct stage *stage)
{
    const json_t *script = json_object_get(self->given, "script");
    const json_t *error = case_wanted_error(self->expect);
    const json_t *at = json_object_get(error, "at");
    for (size_t i = 0; i < json_array_size(script); i++) {
        const char *entry = json_string_value(json_array_get(script, i));
        cadre_status status;
        if (entry == NULL || !play(self, stage, entry, &status)) {
            case_skip(self, "an entry of the script is not known");
            return;
        }
        bool wanted = error != NULL && (at == NULL || json_integer_value(at) == (json_int_t)i);
        if (status != CADRE_OK && wanted) {
            case_check_error(self, error, status, true);
            return;
        }
        if (!case_ok(self, status, entry)) {
            return;
        }
    }
    if (error != NULL) {
        case_fail(self, "the whole script worked, and an error was expected");
    } else {
        case_equal(self, "the answers", json_object_get(self->expect, "answers"), stage->answers);
    }
}

void area_scope(struct conformance_case *self)
{
    static const char *const known[] = {"script", NULL};
    struct stage *stage = case_alloc(self, 1, sizeof *stage);
    stage->answers = case_keep(self, json_array(), case_release_json);
    if (!case_knows(self, self->given, known)) {
        return;
    }
    play_all(self, stage);
    while (stage->scope_count > 0) {
        cadre_scope_leave(stage->scopes[--stage->scope_count]);
    }
    cadre_strategy_set(NULL);
}

/* --- devices --- */

void area_device_name(struct conformance_case *self)
{
    static const char *const known[] = {"queries", NULL};
    static const char *const asked[] = {"device", "default", NULL};
    const json_t *queries = json_object_get(self->given, "queries");
    json_t *got = case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *query;
    if (!case_knows(self, self->given, known)) {
        return;
    }
    json_array_foreach(queries, i, query)
    {
        char name[CADRE_DEVICE_NAME_BYTES];
        const char *device = json_string_value(json_object_get(query, "device"));
        const char *fallback = json_string_value(json_object_get(query, "default"));
        if (!case_knows(self, query, asked)) {
            return;
        }
        cadre_status status = cadre_device_canonical(device == NULL ? "" : device, fallback, name);
        if (!case_verdict(self, status, "cadre_device_canonical")) {
            return;
        }
        json_array_append_new(got, json_string(name));
    }
    case_equal(self, "the names", json_object_get(self->expect, "results"), got);
}

/* --- functions of replicas --- */

#define ARGUMENTS_MAX 8

struct call {
    const char *text;
    uint32_t argument_count;
    const char *names[ARGUMENTS_MAX];
    json_t **results; /* by replica */
    char why[EXPRESSION_WHY_BYTES];
};

struct bound {
    const struct call *call;
    json_t *values[ARGUMENTS_MAX];
    json_t *id;
    json_t *n;
};

static json_t *argument_of(const char *name, size_t length, void *user)
{
    const struct bound *bound = user;
    for (uint32_t i = 0; i < bound->call->argument_count; i++) {
        if (strlen(bound->call->names[i]) == length &&
            memcmp(bound->call->names[i], name, length) == 0) {
            return bound->values[i];
        }
    }
    if (length == 2 && memcmp(name, "id", 2) == 0) {
        return bound->id;
    }
    return length == 1 && *name == 'n' ? bound->n : NULL;
}

/* "{a: x * 2, b: x * x}": the parts' names and expressions, evaluated. */
static json_t *evaluate_map(const char *text, struct bound *bound, char *why)
{
    json_t *map = json_object();
    const char *at = text + 1;
    while (map != NULL && *at != '}' && *at != '\0') {
        char key[32];
        char part[256];
        int used = 0;
        if (sscanf(at, " %31[a-zA-Z0-9_] :%n", key, &used) != 1 || used == 0) {
            json_decref(map);
            return NULL;
        }
        at += used;
        size_t length = 0;
        int depth = 0;
        while (at[length] != '\0' && (depth > 0 || (at[length] != ',' && at[length] != '}'))) {
            depth += at[length] == '(' || at[length] == '[';
            depth -= at[length] == ')' || at[length] == ']';
            length++;
        }
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        json_t *value = expression_evaluate(part, argument_of, bound, why);
        if (value == NULL) {
            json_decref(map);
            return NULL;
        }
        json_object_set_new(map, key, value);
        at += length + (at[length] == ',' ? 1 : 0);
    }
    return map;
}

/* Replica functions work on tensors; what they hold is computed as the case says. */
static cadre_status call_function(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    struct call *call = user;
    struct bound bound = {.call = call,
        .id = json_integer(cadre_replica_id(replica)),
        .n = json_integer(cadre_replica_count(replica))};
    for (uint32_t i = 0; i < call->argument_count; i++) {
        bound.values[i] = value_of_tensor(inputs[i]);
    }
    char why[EXPRESSION_WHY_BYTES] = "";
    json_t *result = call->text[0] == '{'
                         ? evaluate_map(call->text, &bound, why)
                         : expression_evaluate(call->text, argument_of, &bound, why);
    for (uint32_t i = 0; i < call->argument_count; i++) {
        json_decref(bound.values[i]);
    }
    json_decref(bound.id);
    json_decref(bound.n);
    if (result == NULL) {
        return cadre_fail(CADRE_UNIMPLEMENTED, "%s", why);
    }
    call->results[cadre_replica_id(replica)] = result;
    return CADRE_OK;
}

static json_t *results_of(struct conformance_case *self, const struct call *call, uint32_t replicas)
{
    json_t *list = case_keep(self, json_array(), case_release_json);
    for (uint32_t i = 0; i < replicas; i++) {
        json_array_append_new(list, call->results[i]);
        call->results[i] = NULL;
    }
    return list;
}

/* Runs one step with these arguments; its results, or NULL. */
static json_t *run_once(struct conformance_case *self, cadre_strategy *strategy, struct call *call,
    const cadre_argument arguments[], uint32_t replicas)
{
    cadre_status status = cadre_run_arguments(
        strategy, call_function, call, arguments, call->argument_count, 0, NULL);
    if (status == CADRE_UNIMPLEMENTED) {
        case_skip(self, "\"%s\": %s", call->text, cadre_error_message());
        return NULL;
    }
    return case_verdict(self, status, "cadre_run_arguments") ? results_of(self, call, replicas)
                                                             : NULL;
}

/* One argument: {"per_replica"} or a plain value. */
static bool take_argument(struct conformance_case *self, cadre_strategy *strategy,
    const json_t *value, cadre_argument *ret_argument)
{
    const json_t *each = json_object_get(value, "per_replica");
    *ret_argument = (cadre_argument){0};
    if (each != NULL) {
        return case_values(self, strategy, each, case_dtype_of(each), &ret_argument->values);
    }
    return case_tensor(self, value, case_dtype_of(value), &ret_argument->tensor);
}

/* Arguments that are lists of steps: one step of the case after the other. */
static void run_steps(struct conformance_case *self, cadre_strategy *strategy, struct call *call,
    const json_t *args, size_t steps, uint32_t replicas)
{
    json_t *all = case_keep(self, json_array(), case_release_json);
    for (size_t step = 0; step < steps; step++) {
        cadre_argument arguments[ARGUMENTS_MAX];
        for (uint32_t i = 0; i < call->argument_count; i++) {
            const json_t *value = json_object_get(args, call->names[i]);
            const json_t *list = json_object_get(value, "steps");
            json_t *each = json_pack("{sO}", "per_replica", json_array_get(list, step));
            bool taken = take_argument(self, strategy, list != NULL ? each : value, &arguments[i]);
            json_decref(each);
            if (!taken) {
                return;
            }
        }
        json_t *results = run_once(self, strategy, call, arguments, replicas);
        if (results == NULL) {
            return;
        }
        json_array_append(all, results);
    }
    case_equal(self, "the results", json_object_get(self->expect, "per_replica"), all);
}

/* A dataset whose elements are pairs of index and value: the results by index. */
static void run_dataset(
    struct conformance_case *self, cadre_strategy *strategy, struct call *call, uint32_t replicas)
{
    struct case_dataset dataset;
    cadre_distributed_dataset *distributed = NULL;
    cadre_per_replica *batch = NULL;
    json_t *map = case_keep(self, json_object(), case_release_json);
    if (!dataset_build(self, json_object_get(self->given, "dataset"), CADRE_F32, &dataset) ||
        !case_ok(self,
            cadre_distribute_dataset(
                strategy, cadre_dataset_retain(dataset.data), NULL, &distributed),
            "cadre_distribute_dataset")) {
        return;
    }
    call->argument_count = 2;
    call->names[0] = "i";
    call->names[1] = "x";
    cadre_next_epoch(distributed, 1, NULL);
    while (cadre_next(distributed, &batch) == CADRE_OK) {
        if (!case_ok(self, cadre_run(strategy, call_function, call, batch, 0, NULL), "cadre_run")) {
            return;
        }
        json_t *results = results_of(self, call, replicas);
        size_t at;
        json_t *one;
        json_array_foreach(results, at, one)
        {
            json_t *parts = expression_tuple(one);
            const json_t *indices = json_array_get(parts, 0);
            for (size_t i = 0; i < json_array_size(indices); i++) {
                char key[32];
                snprintf(key, sizeof key, "%lld",
                    (long long)json_integer_value(json_array_get(indices, i)));
                json_object_set(map, key, json_array_get(json_array_get(parts, 1), i));
            }
        }
    }
    const json_t *wanted = json_object_get(self->expect, "result_map");
    if (wanted == NULL || !json_equal(wanted, map)) {
        case_equal(self, "the results", wanted, map);
    }
}

/* The documents' step that multiplies a tuple, in a language where that repeats it: what is asked
 * of the library is that a function gets all components and returns as many as it likes. */
static cadre_status repeat_tuple(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)user;
    uint32_t count = cadre_replica_input_count(replica);
    for (uint32_t i = 0; i < 2 * count; i++) {
        outputs[i] = cadre_tensor_retain(inputs[i % count]);
    }
    return CADRE_OK;
}

static void run_tuple(
    struct conformance_case *self, cadre_strategy *strategy, const json_t *args, uint32_t replicas)
{
    const json_t *each = json_object_get(json_object_get(args, "x"), "per_replica");
    size_t count = json_array_size(json_object_get(json_array_get(each, 0), "tuple"));
    cadre_argument arguments[ARGUMENTS_MAX];
    cadre_per_replica *outputs[2 * ARGUMENTS_MAX];
    if (count == 0 || count > ARGUMENTS_MAX || json_array_size(each) != replicas) {
        case_skip(self, "no tuples of a few values");
        return;
    }
    for (size_t c = 0; c < count; c++) {
        json_t *values = case_keep(self, json_array(), case_release_json);
        for (uint32_t r = 0; r < replicas; r++) {
            json_array_append(
                values, json_array_get(json_object_get(json_array_get(each, r), "tuple"), c));
        }
        arguments[c] = (cadre_argument){0};
        if (!case_values(self, strategy, values, CADRE_F32, &arguments[c].values)) {
            return;
        }
    }
    if (!case_ok(self,
            cadre_run_arguments(strategy, repeat_tuple, NULL, arguments, (uint32_t)count,
                2 * (uint32_t)count, outputs),
            "cadre_run_arguments")) {
        return;
    }
    json_t *got = case_keep(self, json_array(), case_release_json);
    for (uint32_t r = 0; r < replicas; r++) {
        json_t *tuple = json_array();
        for (size_t c = 0; c < 2 * count; c++) {
            json_array_append_new(tuple, value_of_tensor(cadre_local_results(outputs[c], 0)[r]));
        }
        json_array_append_new(got, tuple);
    }
    const json_t *wanted = json_object_get(self->expect, "per_replica");
    json_t *plain = case_keep(self, json_array(), case_release_json);
    for (uint32_t r = 0; r < replicas; r++) {
        json_array_append(plain, json_object_get(json_array_get(wanted, r), "tuple"));
    }
    case_equal(self, "the results", plain, got);
}

void area_run(struct conformance_case *self)
{
    static const char *const known[] = {
        "num_replicas", "fn", "args", "dataset", "merge", "input_signature", NULL};
    const json_t *args = json_object_get(self->given, "args");
    const char *merge = json_string_value(json_object_get(self->given, "merge"));
    json_int_t replicas = 0;
    struct call call = {.text = json_string_value(json_object_get(self->given, "fn"))};
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas)) {
        return;
    }
    if (call.text == NULL || (args != NULL && !json_is_object(args)) ||
        (merge != NULL && strcmp(merge, "by index") != 0)) {
        case_skip(self, "no function, or arguments or a merge that is not known");
        return;
    }
    call.results = case_alloc(self, (size_t)replicas, sizeof(json_t *));
    cadre_strategy *strategy = case_strategy(self, (uint32_t)replicas);
    if (strategy == NULL) {
        return;
    }
    if (strstr(call.text, "repeat the argument tuple") != NULL) {
        run_tuple(self, strategy, args, (uint32_t)replicas);
        return;
    }
    if (json_object_get(self->given, "dataset") != NULL) {
        run_dataset(self, strategy, &call, (uint32_t)replicas);
        return;
    }
    const char *name;
    json_t *value;
    size_t steps = 0;
    cadre_argument arguments[ARGUMENTS_MAX];
    json_object_foreach((json_t *)(uintptr_t)args, name, value)
    {
        if (call.argument_count == ARGUMENTS_MAX) {
            case_skip(self, "more than %d arguments", ARGUMENTS_MAX);
            return;
        }
        const json_t *list = json_object_get(value, "steps");
        steps = list != NULL ? json_array_size(list) : steps;
        call.names[call.argument_count++] = name;
    }
    if (steps > 0) {
        run_steps(self, strategy, &call, args, steps, (uint32_t)replicas);
        return;
    }
    for (uint32_t i = 0; i < call.argument_count; i++) {
        if (!take_argument(self, strategy, json_object_get(args, call.names[i]), &arguments[i])) {
            return;
        }
    }
    json_t *results = run_once(self, strategy, &call, arguments, (uint32_t)replicas);
    if (results != NULL) {
        case_equal(self, "the results", json_object_get(self->expect, "per_replica"), results);
    }
}
