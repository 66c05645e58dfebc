/* SPDX-License-Identifier: Apache-2.0
 * Whole training loops, which a case tells in words. */
#include <string.h>

#include "areas.h"
#include "replicas.h"

static cadre_status sum_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    bool reals = cadre_tensor_dtype(inputs[0]) == CADRE_F32;
    double sum = 0;
    for (int64_t i = 0; i < cadre_tensor_count(inputs[0]); i++) {
        const void *data = cadre_tensor_const_data(inputs[0]);
        sum += reals ? ((const float *)data)[i] : (double)((const int64_t *)data)[i];
    }
    return reals ? cadre_tensor_from_f32((float)sum, &outputs[0])
                 : cadre_tensor_from_i64((int64_t)sum, &outputs[0]);
}

static cadre_status add_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_tensor *sum = NULL;
    (void)outputs;
    CADRE_TRY(sum_rows(replica, inputs, &sum, NULL));
    cadre_status status = cadre_variable_assign(replica, user, CADRE_ASSIGN_ADD, sum);
    cadre_tensor_release(sum);
    return status;
}

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_assign_literal(replica, user, CADRE_ASSIGN_ADD, 1);
}

static cadre_status pass_on(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    outputs[0] = cadre_tensor_retain(inputs[0]);
    return CADRE_OK;
}

struct loop {
    struct conformance_case *self;
    cadre_strategy *strategy;
    cadre_distributed_dataset *data;
};

static double number_of(const cadre_tensor *tensor)
{
    const void *data = cadre_tensor_const_data(tensor);
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_F32:
        return *(const float *)data;
    case CADRE_F64:
        return *(const double *)data;
    default:
        return (double)*(const int64_t *)data;
    }
}

/* total += reduce(SUM, run(sum)) in each epoch. */
static void epoch_totals(struct loop *loop, uint64_t epochs)
{
    json_t *totals = case_keep(loop->self, json_array(), case_release_json);
    cadre_per_replica *batch = NULL;
    while (cadre_next_epoch(loop->data, epochs, NULL)) {
        double total = 0;
        while (cadre_next(loop->data, &batch) == CADRE_OK) {
            cadre_per_replica *sums = NULL;
            cadre_tensor *sum = NULL;
            if (!case_ok(loop->self, cadre_run(loop->strategy, sum_rows, NULL, batch, 1, &sums),
                    "cadre_run") ||
                !case_ok(loop->self,
                    cadre_reduce(loop->strategy, CADRE_SUM, sums, CADRE_AXIS_NONE, &sum),
                    "cadre_reduce")) {
                return;
            }
            total += number_of(sum);
            cadre_tensor_release(sum);
        }
        json_array_append_new(totals, json_real(total));
    }
    case_equal(loop->self, "the totals", json_object_get(loop->self->expect, "totals"), totals);
}

static bool make_variable(struct loop *loop, const json_t *object, double otherwise,
    cadre_aggregation aggregation, cadre_variable **ret_variable)
{
    const json_t *init = json_object_get(object, "init");
    const cadre_variable_options options = {.aggregation = aggregation,
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT,
            .value = init == NULL ? otherwise : json_number_value(init)}};
    return case_ok(loop->self,
        cadre_variable_create(loop->strategy, "v", CADRE_F32, 0, NULL, &options, ret_variable),
        "cadre_variable_create");
}

static float value_of(const cadre_variable *variable)
{
    return *(const float *)cadre_variable_read(NULL, variable);
}

static void sum_until_end(struct loop *loop)
{
    static const char *const known[] = {"init", "aggregation", NULL};
    struct conformance_case *self = loop->self;
    const json_t *object = json_object_get(self->given, "variable");
    const char *aggregation = json_string_value(json_object_get(object, "aggregation"));
    cadre_variable *variable = NULL;
    cadre_per_replica *batch = NULL;
    cadre_status status = CADRE_OK;
    if (!case_knows(self, object, known) || aggregation == NULL ||
        strcmp(aggregation, "SUM") != 0 ||
        !make_variable(loop, object, 0, CADRE_AGGREGATION_SUM, &variable)) {
        case_skip(self, "a variable that is not known");
        return;
    }
    cadre_next_epoch(loop->data, 1, NULL);
    while ((status = cadre_next(loop->data, &batch)) == CADRE_OK) {
        if (!case_ok(
                self, cadre_run(loop->strategy, add_rows, variable, batch, 0, NULL), "a step")) {
            return;
        }
    }
    json_t *end = case_keep(self, json_string(cadre_status_name(status)), case_release_json);
    json_t *last = case_keep(self, json_real(value_of(variable)), case_release_json);
    case_equal(self, "the end", json_object_get(self->expect, "ends_with"), end);
    case_equal(self, "the variable", json_object_get(self->expect, "final"), last);
}

/* The first pass multiplies the means of all rows, the second one counts its steps. */
static void two_passes(struct loop *loop)
{
    struct conformance_case *self = loop->self;
    cadre_variable *variable = NULL;
    cadre_per_replica *batch = NULL;
    json_int_t steps = 0;
    double product = 2;
    if (!make_variable(loop, NULL, 1, CADRE_AGGREGATION_ONLY_FIRST_REPLICA, &variable)) {
        return;
    }
    for (int pass = 0; cadre_next_epoch(loop->data, 2, NULL); pass++) {
        while (cadre_next(loop->data, &batch) == CADRE_OK) {
            cadre_per_replica *rows = NULL;
            cadre_tensor *mean = NULL;
            if (pass == 1) {
                if (!case_ok(self, cadre_run(loop->strategy, add_one, variable, batch, 0, NULL),
                        "a step")) {
                    return;
                }
                continue;
            }
            if (!case_ok(self, cadre_run(loop->strategy, pass_on, NULL, batch, 1, &rows), "run") ||
                !case_ok(self, cadre_reduce(loop->strategy, CADRE_MEAN, rows, 0, &mean), "mean")) {
                return;
            }
            product *= number_of(mean);
            steps++;
            cadre_tensor_release(mean);
        }
    }
    json_t *got = case_keep(self,
        json_pack("[I, f, f]", steps, product, (double)value_of(variable)), case_release_json);
    case_equal(self, "the steps", json_object_get(self->expect, "steps"), json_array_get(got, 0));
    case_equal(
        self, "the product", json_object_get(self->expect, "product"), json_array_get(got, 1));
    case_equal(self, "a", json_object_get(self->expect, "a"), json_array_get(got, 2));
}

static bool says(const json_t *given, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(given, key));
    return value != NULL && strcmp(value, text) == 0;
}

void area_training_loop(struct conformance_case *self)
{
    static const char *const known[] = {"dataset", "num_workers", "replicas_per_worker", "step",
        "epochs", "variable", "first_pass", "second_pass", NULL};
    const json_t *given = self->given;
    struct case_dataset dataset;
    struct loop loop = {.self = self};
    json_int_t workers = 0;
    json_int_t replicas = 0;
    json_int_t epochs = 0;
    if (!case_knows(self, given, known) ||
        !case_number(self, given, "num_workers", 1, 1, 1, &workers) ||
        !case_number(self, given, "replicas_per_worker", 1, REPLICAS_MAX, 1, &replicas) ||
        !case_number(self, given, "epochs", 1, 1000, 1, &epochs) ||
        !dataset_build(self, json_object_get(given, "dataset"), CADRE_F32, &dataset)) {
        return;
    }
    loop.strategy = case_strategy(self, (uint32_t)replicas);
    if (loop.strategy == NULL || !case_ok(self,
                                     cadre_distribute_dataset(loop.strategy,
                                         cadre_dataset_retain(dataset.data), NULL, &loop.data),
                                     "cadre_distribute_dataset")) {
        return;
    }
    if (says(given, "step", "total += reduce(SUM, run(sum), axis none)")) {
        epoch_totals(&loop, (uint64_t)epochs);
    } else if (says(given, "step",
                   "assign_add(sum(x)) in replica context, loop get_next until it fails")) {
        sum_until_end(&loop);
    } else if (says(given, "first_pass",
                   "count steps and multiply 2.0 by reduce(MEAN, x, axis=0) each step") &&
               says(given, "second_pass",
                   "variable a (init 1.0, ONLY_FIRST_REPLICA) assign_add 1.0 per step")) {
        two_passes(&loop);
    } else {
        case_skip(self, "a loop that is not known");
    }
}
