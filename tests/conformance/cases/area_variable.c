/* SPDX-License-Identifier: Apache-2.0
 * Variables: scripts of assignments in either context, what components hold and reads give. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "replicas.h"

/* What a variable of a case is. */
struct described {
    cadre_variable_options options;
    cadre_dtype dtype;
    cadre_tensor *init;
};

struct named {
    const char *name;
    int value;
};

static bool take_name(struct conformance_case *self, const json_t *object, const char *key,
    const struct named names[], int otherwise, int *ret_value)
{
    const json_t *value = json_object_get(object, key);
    *ret_value = otherwise;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    for (size_t i = 0; names[i].name != NULL; i++) {
        if (json_is_string(value) && strcmp(json_string_value(value), names[i].name) == 0) {
            *ret_value = names[i].value;
            return true;
        }
    }
    /* A name that is none of the enum's is what the library is to refuse. */
    *ret_value = 99;
    return json_is_string(value) ? true : case_skip(self, "\"%s\" is no name", key);
}

static bool take_enums(
    struct conformance_case *self, const json_t *object, cadre_variable_options *ret_options)
{
    static const struct named synchronizations[] = {{"AUTO", CADRE_SYNC_AUTO},
        {"NONE", CADRE_SYNC_NONE}, {"ON_WRITE", CADRE_SYNC_ON_WRITE},
        {"ON_READ", CADRE_SYNC_ON_READ}, {NULL, 0}};
    static const struct named aggregations[] = {{"NONE", CADRE_AGGREGATION_NONE},
        {"SUM", CADRE_AGGREGATION_SUM}, {"MEAN", CADRE_AGGREGATION_MEAN},
        {"ONLY_FIRST_REPLICA", CADRE_AGGREGATION_ONLY_FIRST_REPLICA}, {NULL, 0}};
    int synchronization;
    int aggregation;
    if (!take_name(
            self, object, "synchronization", synchronizations, CADRE_SYNC_AUTO, &synchronization) ||
        !take_name(
            self, object, "aggregation", aggregations, CADRE_AGGREGATION_NONE, &aggregation)) {
        return false;
    }
    ret_options->synchronization = (cadre_synchronization)synchronization;
    ret_options->aggregation = (cadre_aggregation)aggregation;
    return true;
}

static bool take_variable(
    struct conformance_case *self, const json_t *object, struct described *ret_variable)
{
    static const char *const known[] = {
        "init", "aggregation", "synchronization", "dtype", "name", NULL};
    const json_t *init = json_object_get(object, "init");
    *ret_variable = (struct described){.dtype = CADRE_F32};
    return case_knows(self, object, known) && take_enums(self, object, &ret_variable->options) &&
           case_dtype(self, object, case_dtype_of(init), &ret_variable->dtype) &&
           (init == NULL ? case_skip(self, "no \"init\"")
                         : case_tensor(self, init, ret_variable->dtype, &ret_variable->init));
}

static cadre_status fill(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    const cadre_tensor *init = user;
    (void)count;
    (void)dtype;
    memcpy(values, cadre_tensor_const_data(init), cadre_tensor_bytes(init));
    return CADRE_OK;
}

static cadre_status create(
    cadre_strategy *strategy, const struct described *described, cadre_variable **ret_variable)
{
    cadre_variable_options options = described->options;
    options.initializer = (cadre_initializer){
        .kind = CADRE_INITIALIZER_FUNCTION, .function = fill, .user = described->init};
    return cadre_variable_create(strategy, "Variable", described->dtype,
        cadre_tensor_rank(described->init), cadre_tensor_dims(described->init), &options,
        ret_variable);
}

/* --- one entry of the script --- */

enum operation {
    ASSIGN,
    ASSIGN_ADD,
    ASSIGN_SUB,
    READ,
    SCATTER_ADD,
    SCATTER_SUB,
    SCATTER_MUL,
    SCATTER_DIV,
    SCATTER_MIN,
    SCATTER_MAX,
    SCATTER_UPDATE
};

enum context { IN_REPLICA, IN_CROSS, IN_UPDATE };

struct entry {
    int operation;
    int context;
    bool literal;
    double number;
    cadre_tensor *plain;       /* a tensor that is the same for all */
    cadre_tensor **tensors;    /* by replica; or NULL */
    cadre_sparse *sparse;      /* by replica; or NULL */
    cadre_per_replica *values; /* of `tensors` */
    cadre_variable *variable;
};

static cadre_status assign(
    cadre_replica *replica, const struct entry *entry, const cadre_tensor *value)
{
    switch (entry->operation) {
    case ASSIGN:
        return cadre_variable_assign(replica, entry->variable, CADRE_ASSIGN, value);
    case ASSIGN_ADD:
        return cadre_variable_assign(replica, entry->variable, CADRE_ASSIGN_ADD, value);
    default:
        return cadre_variable_assign(replica, entry->variable, CADRE_ASSIGN_SUB, value);
    }
}

static cadre_status assign_literal(cadre_replica *replica, const struct entry *entry)
{
    switch (entry->operation) {
    case ASSIGN:
        return cadre_variable_assign_literal(replica, entry->variable, CADRE_ASSIGN, entry->number);
    case ASSIGN_ADD:
        return cadre_variable_assign_literal(
            replica, entry->variable, CADRE_ASSIGN_ADD, entry->number);
    default:
        return cadre_variable_assign_literal(
            replica, entry->variable, CADRE_ASSIGN_SUB, entry->number);
    }
}

static cadre_status scatter(
    cadre_replica *replica, const struct entry *entry, const cadre_sparse *value)
{
    cadre_scatter how = (cadre_scatter)(entry->operation - SCATTER_ADD);
    return cadre_variable_scatter(replica, entry->variable, how, value);
}

static cadre_status copy_component(
    const cadre_replica *replica, const cadre_variable *variable, cadre_tensor **ret_tensor)
{
    return cadre_tensor_from_data(cadre_variable_dtype(variable), cadre_variable_rank(variable),
        cadre_variable_dims(variable), cadre_variable_read(replica, variable), ret_tensor);
}

static cadre_status in_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const struct entry *entry = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_status status = CADRE_OK;
    if (entry->operation >= SCATTER_ADD) {
        status = scatter(replica, entry, &entry->sparse[id]);
    } else if (entry->operation != READ && entry->literal) {
        status = assign_literal(replica, entry);
    } else if (entry->operation != READ) {
        status = assign(replica, entry, entry->tensors == NULL ? entry->plain : entry->tensors[id]);
    }
    return status == CADRE_OK ? copy_component(replica, entry->variable, &outputs[0]) : status;
}

static cadre_status in_update(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    const struct entry *entry = user;
    (void)variable;
    (void)ret_output;
    return entry->literal ? assign_literal(NULL, entry)
                          : assign(NULL, entry, entry->values == NULL ? entry->plain : inputs[0]);
}

static cadre_status in_cross(const struct entry *entry)
{
    if (entry->operation >= SCATTER_ADD) {
        return scatter(NULL, entry, &entry->sparse[0]);
    }
    if (entry->literal) {
        return assign_literal(NULL, entry);
    }
    return entry->values == NULL ? assign(NULL, entry, entry->plain)
                                 : cadre_variable_assign_values(entry->variable,
                                       (enum cadre_assignment)entry->operation, entry->values);
}

/* Does it; *ret_outputs: what each replica holds afterwards, if it ran in replica context. */
static cadre_status perform(
    cadre_strategy *strategy, struct entry *entry, cadre_per_replica **ret_outputs)
{
    *ret_outputs = NULL;
    switch (entry->context) {
    case IN_REPLICA:
        return cadre_run(strategy, in_replica, entry, NULL, 1, ret_outputs);
    case IN_UPDATE:
        return cadre_variable_update(
            strategy, entry->variable, in_update, entry, entry->values, NULL);
    default:
        return entry->operation == READ ? CADRE_OK : in_cross(entry);
    }
}

/* --- taking it from the case --- */

static bool take_sparse(
    struct conformance_case *self, const json_t *value, cadre_dtype dtype, cadre_sparse *ret_sparse)
{
    static const char *const known[] = {"values", "indices", "dense_shape", NULL};
    const json_t *rows = json_array_get(json_object_get(value, "dense_shape"), 0);
    ret_sparse->rows = json_is_integer(rows) ? json_integer_value(rows) : CADRE_DIMENSION_ANY;
    return json_is_object(value) && case_knows(self, value, known) &&
           case_tensor(self, json_object_get(value, "values"), dtype, &ret_sparse->values) &&
           case_tensor(self, json_object_get(value, "indices"), CADRE_I64, &ret_sparse->indices);
}

static bool take_values(struct conformance_case *self, cadre_strategy *strategy,
    const json_t *value, cadre_dtype dtype, struct entry *entry)
{
    const json_t *literal = json_object_get(value, "literal");
    const json_t *each = json_object_get(value, "per_replica");
    size_t count = json_array_size(each);
    if (entry->operation >= SCATTER_ADD) {
        size_t sparse = each != NULL ? count : 1;
        entry->sparse = case_alloc(self, sparse + 1, sizeof(cadre_sparse));
        for (size_t i = 0; i < sparse; i++) {
            const json_t *one = each != NULL      ? json_array_get(each, i)
                                : literal != NULL ? literal
                                                  : value;
            if (!take_sparse(self, one, dtype, &entry->sparse[i])) {
                return case_skip(self, "a sparse value is not known");
            }
        }
        return true;
    }
    if (literal != NULL) {
        entry->literal = json_is_number(literal);
        entry->number = json_number_value(literal);
        return entry->literal || case_tensor(self, literal, dtype, &entry->plain);
    }
    if (each == NULL) {
        return case_tensor(self, value, dtype, &entry->plain);
    }
    entry->tensors = case_alloc(self, count + 1, sizeof(cadre_tensor *));
    for (size_t i = 0; i < count; i++) {
        if (!case_tensor(self, json_array_get(each, i), dtype, &entry->tensors[i])) {
            return false;
        }
    }
    return case_values(self, strategy, each, dtype, &entry->values);
}

static bool take_entry(struct conformance_case *self, cadre_strategy *strategy,
    const json_t *object, cadre_variable *variable, struct entry *ret_entry)
{
    static const char *const known[] = {"context", "op", "value", NULL};
    static const struct named contexts[] = {
        {"replica", IN_REPLICA}, {"cross", IN_CROSS}, {"update", IN_UPDATE}, {NULL, 0}};
    static const struct named operations[] = {{"assign", ASSIGN}, {"assign_add", ASSIGN_ADD},
        {"assign_sub", ASSIGN_SUB}, {"read", READ}, {"scatter_add", SCATTER_ADD},
        {"scatter_sub", SCATTER_SUB}, {"scatter_mul", SCATTER_MUL}, {"scatter_div", SCATTER_DIV},
        {"scatter_min", SCATTER_MIN}, {"scatter_max", SCATTER_MAX},
        {"scatter_update", SCATTER_UPDATE}, {NULL, 0}};
    *ret_entry = (struct entry){.variable = variable};
    if (!case_knows(self, object, known) ||
        !take_name(self, object, "context", contexts, 99, &ret_entry->context) ||
        !take_name(self, object, "op", operations, 99, &ret_entry->operation)) {
        return false;
    }
    if (ret_entry->context == 99 || ret_entry->operation == 99 ||
        (ret_entry->context == IN_UPDATE && ret_entry->operation >= READ)) {
        return case_skip(self, "an entry of the script is not known");
    }
    const json_t *value = json_object_get(object, "value");
    return ret_entry->operation == READ ||
           take_values(self, strategy, value, cadre_variable_dtype(variable), ret_entry);
}

/* --- what came of it --- */

static json_t *components_of(
    struct conformance_case *self, cadre_strategy *strategy, cadre_variable *variable)
{
    struct entry read = {.operation = READ, .variable = variable};
    cadre_per_replica *outputs = NULL;
    if (cadre_variable_kind(variable) == CADRE_VARIABLE_REGULAR) {
        cadre_tensor *only = NULL;
        copy_component(NULL, variable, &only);
        case_keep(self, only, case_release_tensor);
        json_t *list = case_keep(self, json_array(), case_release_json);
        json_array_append(list, case_json(self, only));
        return list;
    }
    return case_ok(self, cadre_run(strategy, in_replica, &read, NULL, 1, &outputs), "reading")
               ? case_results(self, outputs, 0)
               : NULL;
}

/* The same from outside of a step. */
static json_t *local_results_of(struct conformance_case *self, const cadre_variable *variable)
{
    cadre_per_replica *values = NULL;
    if (!case_ok(self, cadre_variable_local_results(variable, &values), "the local results")) {
        return NULL;
    }
    case_keep(self, values, case_release_values);
    return case_results(self, values, 0);
}

static json_t *cross_read(struct conformance_case *self, cadre_variable *variable)
{
    cadre_tensor *value = NULL;
    if (cadre_variable_read(NULL, variable) ==
        NULL) { /* it has no status to give, only a sentence */
        bool own = strstr(cadre_error_message(), "of each replica its own") != NULL;
        case_verdict(
            self, own ? CADRE_INVALID_ARGUMENT : CADRE_FAILED_PRECONDITION, "cadre_variable_read");
        return NULL;
    }
    if (!case_ok(self, copy_component(NULL, variable, &value), "a copy of the variable")) {
        return NULL;
    }
    case_keep(self, value, case_release_tensor);
    return case_json(self, value);
}

struct observed {
    json_t *reads;
    json_t *after;
};

static bool run_entry(struct conformance_case *self, cadre_strategy *strategy, struct entry *entry,
    size_t at, struct observed *observed)
{
    const json_t *error = case_wanted_error(self->expect);
    const json_t *where = json_object_get(error, "at");
    bool wanted = error != NULL && (where == NULL || json_integer_value(where) == (json_int_t)at);
    cadre_per_replica *outputs = NULL;
    cadre_status status = perform(strategy, entry, &outputs);
    if (status != CADRE_OK && wanted) {
        case_check_error(self, error, status, true);
        return false;
    }
    if (!case_ok(self, status, "an entry of the script")) {
        return false;
    }
    if (entry->operation == READ) {
        json_t *read =
            outputs == NULL ? cross_read(self, entry->variable) : case_results(self, outputs, 0);
        if (read == NULL) {
            return false;
        }
        json_array_append(observed->reads, read);
    }
    if (json_object_get(self->expect, "components_after") != NULL) {
        json_array_append(observed->after, components_of(self, strategy, entry->variable));
    }
    return self->verdict == VERDICT_PASSED;
}

static const char *kind_name(const cadre_variable *variable)
{
    static const char *const names[] = {"regular", "mirrored", "sync_on_read", "aggregating"};
    return names[cadre_variable_kind(variable)];
}

static json_t *names_of(struct conformance_case *self, const cadre_variable *variable)
{
    json_t *list = case_keep(self, json_array(), case_release_json);
    for (uint32_t i = 0; i < cadre_variable_components(variable); i++) {
        char name[192];
        cadre_variable_component_name(variable, i, name, sizeof name);
        size_t length = strlen(name);
        snprintf(name + length, sizeof name - length, ":0"); /* the output of TensorFlow's op */
        json_array_append_new(list, json_string(name));
    }
    return list;
}

/* A `cross_read` may be one value for each aggregation. */
static const json_t *wanted_read(const json_t *expect, const char *aggregation)
{
    const json_t *wanted = json_object_get(expect, "cross_read");
    return json_is_object(wanted) ? json_object_get(wanted, aggregation) : wanted;
}

static void check(struct conformance_case *self, cadre_strategy *strategy, cadre_variable *variable,
    const struct observed *observed, const char *aggregation)
{
    const json_t *expect = self->expect;
    if (case_wanted_error(expect) != NULL) {
        case_fail(self, "everything worked, and an error was expected");
        return;
    }
    if (json_object_get(expect, "cross_read") != NULL &&
        !case_equal(
            self, "the read", wanted_read(expect, aggregation), cross_read(self, variable))) {
        return;
    }
    if (json_object_get(expect, "components") != NULL) {
        case_equal(self, "the components", json_object_get(expect, "components"),
            components_of(self, strategy, variable));
        case_equal(self, "the local results", json_object_get(expect, "components"),
            local_results_of(self, variable));
    }
    if (json_object_get(expect, "components_after") != NULL) {
        case_equal(
            self, "the components", json_object_get(expect, "components_after"), observed->after);
    }
    if (json_object_get(expect, "reads") != NULL) {
        case_equal(self, "the reads", json_object_get(expect, "reads"), observed->reads);
    }
    if (json_object_get(expect, "kind") != NULL) {
        json_t *kind = case_keep(self, json_string(kind_name(variable)), case_release_json);
        case_equal(self, "the kind", json_object_get(expect, "kind"), kind);
    }
    if (json_object_get(expect, "component_names") != NULL) {
        case_equal(self, "the names", json_object_get(expect, "component_names"),
            names_of(self, variable));
    }
    if (json_object_get(expect, "single_value") != NULL) {
        case_equal(
            self, "the value", json_object_get(expect, "single_value"), cross_read(self, variable));
    }
}

static void release_variable(void *variable)
{
    cadre_variable_release(variable);
}

/* The whole script, with one aggregation. */
static void run_script(struct conformance_case *self, const struct described *described,
    uint32_t replicas, const char *aggregation)
{
    const json_t *script = json_object_get(self->given, "steps");
    const json_t *scoped = json_object_get(self->given, "created_in_scope");
    bool regular = json_is_false(scoped);
    cadre_variable *variable = NULL;
    struct observed observed = {.reads = case_keep(self, json_array(), case_release_json),
        .after = case_keep(self, json_array(), case_release_json)};
    cadre_strategy *strategy = case_strategy(self, replicas);
    if (strategy == NULL) {
        return;
    }
    cadre_status status = create(regular ? NULL : strategy, described, &variable);
    if (regular) {
        case_keep(self, variable, release_variable);
    }
    if (status != CADRE_OK && case_wanted_error(self->expect) != NULL) {
        case_check_error(self, case_wanted_error(self->expect), status, true);
        return;
    }
    if (!case_ok(self, status, "cadre_variable_create")) {
        return;
    }
    for (size_t i = 0; i < json_array_size(script); i++) {
        struct entry entry;
        if (!take_entry(self, strategy, json_array_get(script, i), variable, &entry) ||
            !run_entry(self, strategy, &entry, i, &observed)) {
            return;
        }
    }
    check(self, strategy, variable, &observed, aggregation);
}

/* A case of its own inside this one, whose verdict it takes over. */
static bool run_inner(struct conformance_case *self, const struct described *described,
    uint32_t replicas, const char *aggregation)
{
    struct conformance_case inner = {.given = self->given, .expect = self->expect};
    run_script(&inner, described, replicas, aggregation);
    enum verdict verdict = inner.verdict;
    char why[WHY_BYTES];
    snprintf(why, sizeof why, "%s", inner.why);
    case_end(&inner);
    if (verdict == VERDICT_SKIPPED) {
        return case_skip(self, "%s", why);
    }
    return verdict == VERDICT_PASSED ||
           case_fail(self, "%s%s%.1900s", aggregation, aggregation[0] != '\0' ? ": " : "", why);
}

void area_variable(struct conformance_case *self)
{
    static const char *const known[] = {
        "num_replicas", "variable", "steps", "created_in", "created_in_scope", NULL};
    const json_t *object = json_object_get(self->given, "variable");
    const json_t *aggregations = json_object_get(object, "aggregation");
    json_int_t replicas = 0;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas)) {
        return;
    }
    if (!json_is_array(aggregations)) {
        aggregations = case_keep(self,
            json_pack("[o]", aggregations == NULL ? json_string("NONE")
                                                  : json_incref((json_t *)(uintptr_t)aggregations)),
            case_release_json);
    }
    for (size_t i = 0; i < json_array_size(aggregations); i++) {
        struct described described;
        json_t *one = case_keep(self, json_copy((json_t *)(uintptr_t)object), case_release_json);
        json_object_set(one, "aggregation", json_array_get(aggregations, i));
        const char *name = json_string_value(json_array_get(aggregations, i));
        if (!take_variable(self, one, &described) ||
            !run_inner(self, &described, (uint32_t)replicas, name == NULL ? "" : name)) {
            return;
        }
    }
}
