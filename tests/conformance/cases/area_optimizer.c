/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: scripts of apply_gradients in either context, and what variables, slots and rates are
 * then, in this process or on servers; and schedules by themselves. Names are those of
 * tf.keras.optimizers. */
#include <stdio.h>
#include <string.h>

#include "areas.h"
#include "replicas.h"
#include "servers.h"

enum { VARIABLES_MAX = 8, REPLICAS_OF_CASE = 8, SHARDS_OF_CASE = 8 };

struct model {
    struct conformance_case *self;
    cadre_strategy *strategy; /* NULL: of regular variables */
    cadre_optimizer *optimizer;
    cadre_variable *variables[VARIABLES_MAX];
    size_t count;
    cadre_dtype dtype;
    uint32_t replicas;
    bool served; /* all that applies is a push of the chief */
};

/* --- what is asked for --- */

static double real(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool take_kind(struct conformance_case *self, const json_t *object,
    const char *const names[], size_t count, int *ret_kind)
{
    const char *name = json_string_value(json_object_get(object, "kind"));
    for (size_t i = 0; name != NULL && i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_kind = (int)i;
            return true;
        }
    }
    return case_skip(self, "\"%s\" is no kind", name == NULL ? "" : name);
}

static bool take_schedule(
    struct conformance_case *self, const json_t *object, cadre_rate_schedule *ret_schedule)
{
    static const char *const kinds[] = {
        "constant", "exponential", "piecewise", "polynomial", "inverse_time", "cosine"};
    static const char *const known[] = {"kind", "decay_steps", "decay_rate", "staircase",
        "end_learning_rate", "power", "cycle", "alpha", "warmup_steps", "warmup_target",
        "boundaries", "values", NULL};
    int kind = 0;
    if (object == NULL) {
        return true;
    }
    if (!case_knows(self, object, known) ||
        !take_kind(self, object, kinds, sizeof kinds / sizeof kinds[0], &kind)) {
        return false;
    }
    const json_t *boundaries = json_object_get(object, "boundaries");
    const json_t *values = json_object_get(object, "values");
    *ret_schedule = (cadre_rate_schedule){.kind = (cadre_rate_kind)kind,
        .decay_steps = (uint64_t)json_integer_value(json_object_get(object, "decay_steps")),
        .decay_rate = real(object, "decay_rate"),
        .staircase = json_is_true(json_object_get(object, "staircase")),
        .end_rate = real(object, "end_learning_rate"),
        .power = real(object, "power"),
        .cycle = json_is_true(json_object_get(object, "cycle")),
        .alpha = real(object, "alpha"),
        .warmup_steps = (uint64_t)json_integer_value(json_object_get(object, "warmup_steps")),
        .warmup_target = real(object, "warmup_target"),
        .pieces = (uint32_t)json_array_size(boundaries)};
    for (size_t i = 0; i < json_array_size(boundaries) && i < CADRE_RATE_PIECES_MAX; i++) {
        ret_schedule->boundaries[i] = (uint64_t)json_integer_value(json_array_get(boundaries, i));
        ret_schedule->rates[i] = json_number_value(json_array_get(values, i + 1));
    }
    return true;
}

static bool take_optimizer(
    struct conformance_case *self, const json_t *object, cadre_optimizer_options *ret_options)
{
    static const char *const kinds[] = {
        "none", "sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "lamb"};
    static const char *const known[] = {"kind", "learning_rate", "schedule", "momentum", "nesterov",
        "rho", "centered", "beta_1", "beta_2", "epsilon", "initial_accumulator_value",
        "weight_decay", "clipnorm", "clipvalue", "global_clipnorm", NULL};
    int kind = 0;
    if (!case_knows(self, object, known) ||
        !take_kind(self, object, kinds, sizeof kinds / sizeof kinds[0], &kind)) {
        return false;
    }
    *ret_options = (cadre_optimizer_options){.kind = (cadre_optimizer_kind)kind,
        .rate = real(object, "learning_rate"),
        .momentum = real(object, "momentum"),
        .nesterov = json_is_true(json_object_get(object, "nesterov")),
        .rho = real(object, "rho"),
        .centered = json_is_true(json_object_get(object, "centered")),
        .beta1 = real(object, "beta_1"),
        .beta2 = real(object, "beta_2"),
        .epsilon = real(object, "epsilon"),
        .initial_accumulator = real(object, "initial_accumulator_value"),
        .weight_decay = real(object, "weight_decay"),
        .clip_norm = real(object, "clipnorm"),
        .clip_value = real(object, "clipvalue"),
        .clip_global_norm = real(object, "global_clipnorm")};
    return take_schedule(self, json_object_get(object, "schedule"), &ret_options->schedule);
}

/* --- the model --- */

static void release_optimizer(void *optimizer)
{
    cadre_optimizer_release(optimizer);
}

static void release_variable(void *variable)
{
    cadre_variable_release(variable);
}

static cadre_status fill(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    const cadre_tensor *init = user;
    (void)count;
    (void)dtype;
    memcpy(values, cadre_tensor_const_data(init), cadre_tensor_bytes(init));
    return CADRE_OK;
}

static bool make_variables(struct model *model, const json_t *inits)
{
    struct conformance_case *self = model->self;
    model->count = json_array_size(inits);
    if (model->count == 0 || model->count > VARIABLES_MAX) {
        return case_skip(self, "\"variables\" are a list of 1 to %d", VARIABLES_MAX);
    }
    for (size_t i = 0; i < model->count; i++) {
        char name[24];
        cadre_tensor *init = NULL;
        snprintf(name, sizeof name, "v%zu", i);
        if (!case_tensor(self, json_array_get(inits, i), model->dtype, &init)) {
            return false;
        }
        const cadre_variable_options options = {
            .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = fill, .user = init}};
        if (!case_ok(self,
                cadre_variable_create(model->strategy, name, model->dtype, cadre_tensor_rank(init),
                    cadre_tensor_dims(init), &options, &model->variables[i]),
                "a variable")) {
            return false;
        }
        case_keep(self, model->variables[i], release_variable);
    }
    return true;
}

/* Where the variables are: "servers", so many shards; or replicas of a "strategy". */
static cadre_strategy *strategy_given(struct conformance_case *self)
{
    const char *strategy = json_string_value(json_object_get(self->given, "strategy"));
    json_int_t replicas = 1;
    json_int_t shards = 0;
    if (!case_number(self, self->given, "servers", 0, SHARDS_OF_CASE, 0, &shards) ||
        !case_number(self, self->given, "replicas", 1, REPLICAS_OF_CASE, 1, &replicas)) {
        return NULL;
    }
    return shards > 0 ? case_servers(self, (uint64_t)shards)
                      : case_strategy_of(self, strategy, (uint32_t)replicas);
}

/* False: the case has its verdict. */
static bool make_model(
    struct conformance_case *self, cadre_strategy *strategy, struct model *ret_model)
{
    const char *kind = json_string_value(json_object_get(self->given, "strategy"));
    cadre_optimizer_options options;
    *ret_model = (struct model){.self = self,
        .strategy = kind != NULL && strcmp(kind, "default") == 0 ? NULL : strategy,
        .replicas = cadre_strategy_local_replicas(strategy)};
    ret_model->served = json_object_get(self->given, "servers") != NULL;
    if (!case_dtype(self, self->given, CADRE_F32, &ret_model->dtype) ||
        !take_optimizer(self, json_object_get(self->given, "optimizer"), &options)) {
        return false;
    }
    if (!make_variables(ret_model, json_object_get(self->given, "variables"))) {
        return false;
    }
    cadre_status status =
        cadre_optimizer_create(ret_model->strategy, &options, &ret_model->optimizer);
    if (status == CADRE_OK) {
        case_keep(self, ret_model->optimizer, release_optimizer);
    }
    if (status == CADRE_OK && !json_is_false(json_object_get(self->given, "built"))) {
        status =
            cadre_optimizer_build(ret_model->optimizer, ret_model->variables, ret_model->count);
    }
    return status == CADRE_OK || case_verdict(self, status, "making the optimizer");
}

/* --- one entry of the script --- */

struct entry {
    struct model *model;
    cadre_tensor *dense[REPLICAS_OF_CASE][VARIABLES_MAX];
    cadre_sparse sparse[REPLICAS_OF_CASE][VARIABLES_MAX];
    cadre_apply_options options;
};

/* A gradient: null; {"values", "indices"}; else a tensor. */
static bool take_gradient(struct conformance_case *self, const json_t *value, cadre_dtype dtype,
    cadre_tensor **ret_dense, cadre_sparse *ret_sparse)
{
    static const char *const known[] = {"values", "indices", NULL};
    if (json_is_null(value)) {
        return true;
    }
    if (!json_is_object(value)) {
        return case_tensor(self, value, dtype, ret_dense);
    }
    ret_sparse->rows = CADRE_DIMENSION_ANY;
    return case_knows(self, value, known) &&
           case_tensor(self, json_object_get(value, "values"), dtype, &ret_sparse->values) &&
           case_tensor(self, json_object_get(value, "indices"), CADRE_I64, &ret_sparse->indices);
}

/* Each of "gradients" is the same for all replicas, or {"per_replica": [...]}. */
static bool take_entry(
    struct conformance_case *self, const json_t *object, struct model *model, struct entry *entry)
{
    static const char *const known[] = {"gradients", "aggregate", "context", NULL};
    const json_t *gradients = json_object_get(object, "gradients");
    const char *aggregate = json_string_value(json_object_get(object, "aggregate"));
    *entry = (struct entry){.model = model};
    if (!case_knows(self, object, known)) {
        return false;
    }
    entry->options.gradients = aggregate == NULL                ? CADRE_GRADIENTS_SUM
                               : strcmp(aggregate, "MEAN") == 0 ? CADRE_GRADIENTS_MEAN
                               : strcmp(aggregate, "NONE") == 0 ? CADRE_GRADIENTS_REDUCED
                                                                : CADRE_GRADIENTS_SUM;
    for (uint32_t replica = 0; replica < model->replicas; replica++) {
        for (size_t i = 0; i < model->count && i < json_array_size(gradients); i++) {
            const json_t *value = json_array_get(gradients, i);
            const json_t *each = json_object_get(value, "per_replica");
            value = each == NULL ? value : json_array_get(each, replica);
            cadre_tensor *dense = NULL;
            if (!take_gradient(self, value, model->dtype, &dense, &entry->sparse[replica][i])) {
                return false;
            }
            /* It is reduced in place, so each replica has its own. */
            if (dense != NULL &&
                !case_ok(self, cadre_tensor_copy(dense, &entry->dense[replica][i]), "a copy")) {
                return false;
            }
            case_keep(self, entry->dense[replica][i], case_release_tensor);
        }
    }
    return true;
}

static cadre_status apply(cadre_replica *replica, struct entry *entry, uint32_t id)
{
    cadre_apply_options options = entry->options;
    options.sparse = entry->sparse[id];
    return cadre_optimizer_apply(replica, entry->model->optimizer, entry->dense[id],
        entry->model->variables, entry->model->count, &options);
}

static cadre_status in_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return apply(replica, user, cadre_replica_id(replica));
}

/* Of the first variable alone. */
static cadre_status in_update(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    struct entry *entry = user;
    (void)inputs;
    (void)ret_output;
    return cadre_optimizer_apply(
        NULL, entry->model->optimizer, entry->dense[0], &variable, 1, &entry->options);
}

static cadre_status perform(const json_t *object, struct entry *entry)
{
    struct model *model = entry->model;
    const char *context = json_string_value(json_object_get(object, "context"));
    if (context != NULL && strcmp(context, "update") == 0) {
        return cadre_variable_update(
            model->strategy, model->variables[0], in_update, entry, NULL, NULL);
    }
    bool cross = model->served || (context != NULL && strcmp(context, "cross") == 0);
    return cross || model->strategy == NULL
               ? apply(NULL, entry, 0)
               : cadre_run(model->strategy, in_replica, entry, NULL, 0, NULL);
}

static cadre_status assign_rate(const struct model *model, double rate)
{
    cadre_variable *variable = NULL;
    CADRE_TRY(cadre_optimizer_slot(model->optimizer, NULL, "learning_rate", &variable));
    return cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, rate);
}

/* --- what came of it --- */

static json_t *value_now(struct conformance_case *self, cadre_variable *variable)
{
    cadre_per_replica *values = NULL;
    cadre_tensor *served = NULL;
    if (cadre_variable_kind(variable) == CADRE_VARIABLE_SERVED) {
        if (!case_ok(self, cadre_variable_value(NULL, variable, NULL, &served), "the value")) {
            return NULL;
        }
        case_keep(self, served, case_release_tensor);
        return case_json(self, served);
    }
    if (!case_ok(self, cadre_variable_local_results(variable, &values), "the value")) {
        return NULL;
    }
    case_keep(self, values, case_release_values);
    json_t *all = case_results(self, values, 0);
    for (size_t i = 1; i < json_array_size(all); i++) {
        if (!json_equal(json_array_get(all, 0), json_array_get(all, i))) {
            case_fail(self, "the replicas have come to differ");
        }
    }
    return json_array_get(all, 0);
}

static json_t *values_now(const struct model *model)
{
    json_t *list = case_keep(model->self, json_array(), case_release_json);
    for (size_t i = 0; i < model->count; i++) {
        json_array_append(list, value_now(model->self, model->variables[i]));
    }
    return list;
}

/* "m" of the first variable. */
static void check_slots(const struct model *model, const json_t *wanted)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)(uintptr_t)wanted, name, value)
    {
        cadre_variable *slot = NULL;
        if (case_ok(model->self,
                cadre_optimizer_slot(model->optimizer, model->variables[0], name, &slot),
                "a slot")) {
            case_equal(model->self, name, value, value_now(model->self, slot));
        }
    }
}

static void check(const struct model *model, json_t *history)
{
    struct conformance_case *self = model->self;
    const json_t *expect = self->expect;
    if (case_wanted_error(expect) != NULL) {
        case_fail(self, "everything worked, and an error was expected");
        return;
    }
    if (json_object_get(expect, "values") != NULL) {
        case_equal(self, "the variables", json_object_get(expect, "values"), values_now(model));
    }
    if (json_object_get(expect, "history") != NULL) {
        case_equal(self, "the first variable", json_object_get(expect, "history"), history);
    }
    check_slots(model, json_object_get(expect, "slots"));
    json_t *iterations = case_keep(self,
        json_integer((json_int_t)cadre_optimizer_iterations(model->optimizer)), case_release_json);
    if (json_object_get(expect, "iterations") != NULL) {
        case_equal(self, "iterations", json_object_get(expect, "iterations"), iterations);
    }
    json_t *rate = case_keep(
        self, json_real(cadre_optimizer_learning_rate(model->optimizer)), case_release_json);
    if (json_object_get(expect, "learning_rate") != NULL) {
        case_equal(self, "learning_rate", json_object_get(expect, "learning_rate"), rate);
    }
}

/* The first variable after each entry of the script; false: the case has its verdict. */
static bool run_script(struct model *model, json_t *history)
{
    struct conformance_case *self = model->self;
    const json_t *script = json_object_get(self->given, "steps");
    for (size_t at = 0; at < json_array_size(script); at++) {
        const json_t *object = json_array_get(script, at);
        const json_t *rate = json_object_get(object, "learning_rate");
        struct entry entry;
        if (rate == NULL && !take_entry(self, object, model, &entry)) {
            return false;
        }
        cadre_status status =
            rate != NULL ? assign_rate(model, json_number_value(rate)) : perform(object, &entry);
        if (status != CADRE_OK) {
            return case_verdict(self, status, "a step");
        }
        json_array_append(history, value_now(self, model->variables[0]));
    }
    return true;
}

json_t *optimizer_values(struct conformance_case *self, cadre_strategy *strategy)
{
    json_t *history = case_keep(self, json_array(), case_release_json);
    struct model model;
    return make_model(self, strategy, &model) && run_script(&model, history) ? values_now(&model)
                                                                             : NULL;
}

void area_optimizer(struct conformance_case *self)
{
    static const char *const known[] = {"strategy", "replicas", "servers", "dtype", "optimizer",
        "built", "variables", "steps", NULL};
    json_t *history = case_keep(self, json_array(), case_release_json);
    struct model model;
    cadre_strategy *strategy = NULL;
    if (case_knows(self, self->given, known) && (strategy = strategy_given(self)) != NULL &&
        make_model(self, strategy, &model) && run_script(&model, history)) {
        check(&model, history);
    }
}

/* The rate at each of "steps": of an optimizer that has made so many updates. */
void area_learning_rate_schedule(struct conformance_case *self)
{
    static const char *const known[] = {"learning_rate", "schedule", "steps", NULL};
    const json_t *steps = json_object_get(self->given, "steps");
    json_t *rates = case_keep(self, json_array(), case_release_json);
    cadre_optimizer_options options = {
        .kind = CADRE_OPTIMIZER_SGD, .rate = real(self->given, "learning_rate")};
    struct model model = {.self = self, .count = 1, .dtype = CADRE_F32};
    cadre_variable *updates = NULL;
    if (!case_knows(self, self->given, known) ||
        !take_schedule(self, json_object_get(self->given, "schedule"), &options.schedule) ||
        (model.strategy = case_strategy_of(self, NULL, 1)) == NULL) {
        return;
    }
    if (!case_ok(self,
            cadre_variable_create(
                model.strategy, "v", CADRE_F32, 0, NULL, NULL, &model.variables[0]),
            "a variable") ||
        !case_verdict(self, cadre_optimizer_create(model.strategy, &options, &model.optimizer),
            "the schedule")) {
        return;
    }
    case_keep(self, model.optimizer, release_optimizer);
    if (!case_ok(self, cadre_optimizer_build(model.optimizer, model.variables, 1), "building") ||
        !case_ok(self,
            cadre_optimizer_slot(model.optimizer, model.variables[0], "updates", &updates),
            "the updates")) {
        return;
    }
    for (size_t i = 0; i < json_array_size(steps); i++) {
        double step = json_number_value(json_array_get(steps, i));
        if (!case_ok(self, cadre_variable_assign_literal(NULL, updates, CADRE_ASSIGN, step),
                "a count of updates")) {
            return;
        }
        json_array_append_new(rates, json_real(cadre_optimizer_learning_rate(model.optimizer)));
    }
    case_equal(self, "the rates", json_object_get(self->expect, "rates"), rates);
}
