/* SPDX-License-Identifier: Apache-2.0
 * One model and one step for all placements: the same optimizer applied by closures to variables on
 * servers, and at once to regular ones, comes to the same bits. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runtime/training.h"

enum { ROWS = 6, COLUMNS = 3, COUNT = ROWS * COLUMNS, STEPS = 5 };

static cadre_strategy *strategy;

static const cadre_optimizer_options kinds[] = {
    {.kind = CADRE_OPTIMIZER_SGD, .rate = 0.5},
    {.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 0.1, .nesterov = true},
    {.kind = CADRE_OPTIMIZER_RMSPROP, .rate = 0.01, .momentum = 0.5, .centered = true},
    {.kind = CADRE_OPTIMIZER_ADAMW,
        .rate = 0.01,
        .schedule = {.kind = CADRE_RATE_EXPONENTIAL, .decay_rate = 0.5, .decay_steps = 2}},
    {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.01, .clip_global_norm = 0.5},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* The model: the same wherever it is made. */
struct model {
    cadre_optimizer *optimizer;
    cadre_variable *variables[2]; /* dense; by rows */
};

static cadre_status open_model(cadre_strategy *scope, int kind, struct model *ret_model)
{
    static const int64_t dims[2] = {ROWS, COLUMNS};
    static const cadre_variable_options drawn = {
        .initializer = {.kind = CADRE_INITIALIZER_UNIFORM, .low = -1, .high = 1, .seed = 5}};
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s-%d", i == 0 ? "dense" : "rows", kind);
        CADRE_TRY(cadre_variable_create(
            scope, name, CADRE_F32, 2, dims, &drawn, &ret_model->variables[i]));
    }
    CADRE_TRY(cadre_optimizer_create(scope, &kinds[kind], &ret_model->optimizer));
    return cadre_optimizer_build(ret_model->optimizer, ret_model->variables, 2);
}

static cadre_tensor *numbers(int64_t rows, int64_t step)
{
    cadre_tensor *tensor = NULL;
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 2, (const int64_t[]){rows, COLUMNS}, &tensor));
    float *values = cadre_tensor_data(tensor);
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        values[i] = (float)((i * 5 + step * 3) % 11 - 5) / 8;
    }
    return tensor;
}

/* One step, in whatever context. */
static cadre_status step_model(struct model *model, int64_t step)
{
    static const int64_t chosen[] = {5, 1, 5};
    const int64_t dims[1] = {3};
    CADRE_RELEASE_AT_EXIT(tensor) dense = numbers(ROWS, step);
    CADRE_RELEASE_AT_EXIT(tensor) values = numbers(3, step);
    CADRE_RELEASE_AT_EXIT(tensor) indices = NULL;
    CADRE_TRY(cadre_tensor_from_data(CADRE_I64, 1, dims, chosen, &indices));
    const cadre_sparse sparse[2] = {{0}, {.values = values, .indices = indices, .rows = ROWS}};
    return cadre_optimizer_apply(NULL, model->optimizer, (cadre_tensor *[]){dense, NULL},
        model->variables, 2, &(cadre_apply_options){.sparse = sparse});
}

/* In a closure: the model is found, not made. */
static cadre_status train(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    (void)user;
    cadre_tensor *argument = NULL;
    CADRE_TRY(cadre_closure_tensor(closure, 0, &argument));
    const int64_t *what = cadre_tensor_const_data(argument);
    struct model model = {.optimizer = NULL};
    cadre_status status = open_model(NULL, (int)what[0], &model);
    if (status == CADRE_OK) {
        status = step_model(&model, what[1]);
    }
    cadre_optimizer_release(model.optimizer);
    return status;
}

static void learn_alone(int kind, float ret_values[2][COUNT])
{
    struct model model = {.optimizer = NULL};
    assert_public_ok(open_model(NULL, kind, &model));
    for (int64_t step = 0; step < STEPS; step++) {
        assert_public_ok(step_model(&model, step));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cadre_variable_kind(model.variables[i]), CADRE_VARIABLE_REGULAR);
        memcpy(ret_values[i], cadre_variable_read(NULL, model.variables[i]), sizeof ret_values[i]);
    }
    cadre_optimizer_release(model.optimizer);
    cadre_variable_release(model.variables[0]);
    cadre_variable_release(model.variables[1]);
}

static float alone[KINDS][2][COUNT];

static void assert_values(const struct model *model, float wanted[2][COUNT])
{
    for (int i = 0; i < 2; i++) {
        cadre_tensor *value = NULL;
        assert_public_ok(cadre_variable_value(NULL, model->variables[i], NULL, &value));
        assert_memory_equal(cadre_tensor_const_data(value), wanted[i], sizeof wanted[i]);
        cadre_tensor_release(value);
    }
}

static void test_closures_apply_to_variables_on_servers(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct model model = {.optimizer = NULL};
        cadre_variable *slot = NULL;
        assert_public_ok(open_model(strategy, kind, &model));
        assert_int_equal(cadre_variable_kind(model.variables[0]), CADRE_VARIABLE_SERVED);
        for (int64_t step = 0; step < STEPS; step++) {
            cadre_tensor *what = NULL;
            assert_public_ok(cadre_tensor_from_data(
                CADRE_I64, 1, (const int64_t[]){2}, (const int64_t[]){kind, step}, &what));
            assert_public_ok(cadre_schedule(
                strategy, "train", &(cadre_closure_argument){.tensor = what}, 1, NULL));
            assert_public_ok(cadre_join(strategy));
            cadre_tensor_release(what);
        }
        assert_values(&model, alone[kind]);
        assert_public_ok(
            cadre_optimizer_slot(model.optimizer, model.variables[0], "updates", &slot));
        cadre_tensor *updates = NULL;
        assert_public_ok(cadre_variable_value(NULL, slot, NULL, &updates));
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(updates), STEPS);
        cadre_tensor_release(updates);
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), STEPS);
        cadre_optimizer_release(model.optimizer);
    }
}

/* The chief may apply, too, and with another optimizer it is refused. */
static void test_the_chief_applies(void **state)
{
    (void)state;
    static const int64_t dims[2] = {ROWS, COLUMNS};
    cadre_variable *variable = NULL;
    cadre_optimizer *optimizer = NULL;
    cadre_optimizer *other = NULL;
    assert_public_ok(cadre_variable_create(strategy, "c", CADRE_F32, 2, dims, NULL, &variable));
    assert_public_ok(cadre_optimizer_create(strategy, &kinds[0], &optimizer));
    assert_public_ok(cadre_optimizer_create(strategy, &kinds[4], &other));
    assert_public_ok(cadre_optimizer_build(optimizer, &variable, 1));
    assert_public_error(cadre_optimizer_build(other, &variable, 1), CADRE_ALREADY_EXISTS,
        "'c' has an optimizer on its servers already");
    cadre_tensor *gradient = numbers(ROWS, 0);
    assert_public_ok(cadre_optimizer_apply(NULL, optimizer, &gradient, &variable, 1, NULL));
    cadre_tensor *value = NULL;
    assert_public_ok(cadre_variable_value(NULL, variable, NULL, &value));
    for (int64_t i = 0; i < COUNT; i++) {
        assert_true(((const float *)cadre_tensor_const_data(value))[i] ==
                    -0.5f * ((const float *)cadre_tensor_const_data(gradient))[i]);
    }
    cadre_tensor_release(value);
    cadre_tensor_release(gradient);
    cadre_optimizer_release(optimizer);
    cadre_optimizer_release(other);
}

static int begin(void **state)
{
    (void)state;
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = 2}};
    setenv("CADRE_SERVERS", "2", 1);
    setenv("CADRE_WORKERS", "2", 1);
    setenv("CADRE_OUTPUT_DIR", test_temp_dir(), 1);
    CADRE_CHECK(cadre_init(NULL, NULL));
    for (int kind = 0; kind < KINDS; kind++) {
        learn_alone(kind, alone[kind]);
    }
    CADRE_CHECK(cadre_function_register("train", train, NULL));
    CADRE_CHECK(cadre_strategy_parameter_server(&options, &strategy));
    cadre_show_progress(strategy, false);
    return 0;
}

static int end(void **state)
{
    (void)state;
    cadre_strategy_release(strategy);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closures_apply_to_variables_on_servers),
        cmocka_unit_test(test_the_chief_applies),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
