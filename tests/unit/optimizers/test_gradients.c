/* SPDX-License-Identifier: Apache-2.0
 * Gradients on their way: sparse ones, clipped ones, many, and those that are refused. */
#include <math.h>
#include <string.h>

#include "common/base/fault.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/variables/variable.h"

enum { ROWS = 5, WIDTH = 2, VARIABLES = 3 };

struct model {
    cadre_strategy *strategy;
    cadre_optimizer *optimizer;
    cadre_variable *table; /* f32 [ROWS, WIDTH] */
    cadre_variable *vectors[VARIABLES];
    const float *values; /* of each vector's gradient, two numbers */
    cadre_apply_options options;
};

static struct model open_model(uint32_t replicas, cadre_optimizer_options options)
{
    static const char *const names[VARIABLES] = {"a", "b", "c"};
    struct model model = {.strategy = training_strategy(replicas)};
    const int64_t dims[2] = {ROWS, WIDTH};
    assert_public_ok(
        cadre_variable_create(model.strategy, "table", CADRE_F32, 2, dims, NULL, &model.table));
    for (int i = 0; i < VARIABLES; i++) {
        assert_public_ok(cadre_variable_create(
            model.strategy, names[i], CADRE_F32, 1, dims + 1, NULL, &model.vectors[i]));
    }
    assert_public_ok(cadre_optimizer_create(model.strategy, &options, &model.optimizer));
    assert_public_ok(cadre_optimizer_build(model.optimizer, &model.table, 1));
    assert_public_ok(cadre_optimizer_build(model.optimizer, model.vectors, VARIABLES));
    return model;
}

static void close_model(struct model *model)
{
    cadre_optimizer_release(model->optimizer);
    cadre_strategy_release(model->strategy);
}

static void assert_values(const cadre_variable *variable, size_t count, const float *wanted)
{
    for (uint32_t local = 0; local < variable->component_count; local++) {
        const float *values = variable->components[local].value;
        for (size_t i = 0; i < count; i++) {
            if (fabsf(values[i] - wanted[i]) > 1e-6f) {
                fail_msg("'%s'[%zu] is %g on replica %u and not %g", variable->name, i,
                    (double)values[i], local, (double)wanted[i]);
            }
        }
    }
}

/* ---- sparse ---- */

/* Replica r names rows 3, r and 3 again, with 1, 10 and 100 in all elements. */
static cadre_status train_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    const int64_t dims[2] = {3, WIDTH};
    CADRE_RELEASE_AT_EXIT(tensor) values = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) indices = NULL;
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &values));
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, dims, &indices));
    int64_t *index = cadre_tensor_data(indices);
    float *value = cadre_tensor_data(values);
    index[0] = 3;
    index[1] = cadre_replica_id(replica);
    index[2] = 3;
    for (int i = 0; i < 3 * WIDTH; i++) {
        value[i] = i < WIDTH ? 1.0f : i < 2 * WIDTH ? 10.0f : 100.0f;
    }
    const cadre_sparse sparse = {.values = values, .indices = indices, .rows = ROWS};
    cadre_apply_options options = model->options;
    options.sparse = &sparse;
    return cadre_optimizer_apply(replica, model->optimizer, NULL, &model->table, 1, &options);
}

static void test_rows_are_joined_and_summed(void **state)
{
    (void)state;
    const float sums[] = {-10, -10, -10, -10, 0, 0, -202, -202, 0, 0};
    const float means[] = {-5, -5, -5, -5, 0, 0, -101, -101, 0, 0};
    const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 1};
    struct model model = open_model(2, sgd);
    assert_public_ok(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL));
    assert_values(model.table, ROWS * WIDTH, sums);
    close_model(&model);
    model = open_model(2, sgd);
    model.options.gradients = CADRE_GRADIENTS_MEAN;
    assert_public_ok(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL));
    assert_values(model.table, ROWS * WIDTH, means);
    close_model(&model);
}

/* What is remembered of rows that no replica names stays as it is. */
static void test_slots_of_other_rows_stay(void **state)
{
    (void)state;
    struct model model = open_model(
        1, (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 1, .momentum = 0.5});
    cadre_variable *momentum = NULL;
    assert_public_ok(cadre_optimizer_slot(model.optimizer, model.table, "momentum", &momentum));
    float before[ROWS * WIDTH] = {0};
    before[8] = -4;
    cadre_tensor *begin = NULL;
    assert_public_ok(cadre_tensor_create(CADRE_F32, 2, (const int64_t[]){ROWS, WIDTH}, &begin));
    memcpy(cadre_tensor_data(begin), before, sizeof before);
    assert_public_ok(cadre_variable_assign(NULL, momentum, CADRE_ASSIGN, begin));
    cadre_tensor_release(begin);
    assert_public_ok(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL));
    assert_public_ok(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL));
    assert_values(
        momentum, ROWS * WIDTH, (const float[]){-15, -15, 0, 0, 0, 0, -151.5f, -151.5f, -4, 0});
    assert_values(
        model.table, ROWS * WIDTH, (const float[]){-25, -25, 0, 0, 0, 0, -252.5f, -252.5f, 0, 0});
    close_model(&model);
}

/* ---- clipping ---- */

/* The first two vectors have gradients, of which replica 0 has all. */
static cadre_status train_vectors(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    cadre_tensor *gradients[VARIABLES] = {NULL};
    const float none[WIDTH] = {0};
    for (int i = 0; i < 2; i++) {
        gradients[i] =
            training_f32(WIDTH, cadre_replica_id(replica) == 0 ? model->values + i * WIDTH : none);
    }
    cadre_status status = cadre_optimizer_apply(
        replica, model->optimizer, gradients, model->vectors, VARIABLES, &model->options);
    cadre_tensor_release(gradients[0]);
    cadre_tensor_release(gradients[1]);
    return status;
}

static void run_clipped(cadre_optimizer_options options, const float *values, const float *wanted)
{
    options.kind = CADRE_OPTIMIZER_SGD;
    options.rate = 1;
    for (uint32_t replicas = 1; replicas <= 2; replicas++) {
        struct model model = open_model(replicas, options);
        model.values = values;
        assert_public_ok(cadre_run(model.strategy, train_vectors, &model, NULL, 0, NULL));
        assert_values(model.vectors[0], WIDTH, wanted);
        assert_values(model.vectors[1], WIDTH, wanted + WIDTH);
        assert_values(model.vectors[2], WIDTH, (const float[]){0, 0}); /* it had no gradient */
        cadre_variable *updates = NULL;
        assert_public_ok(
            cadre_optimizer_slot(model.optimizer, model.vectors[2], "updates", &updates));
        assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, updates), 0);
        close_model(&model);
    }
}

static void test_gradients_are_clipped(void **state)
{
    (void)state;
    const float values[] = {3, 4, 0.3f, -12};
    run_clipped((cadre_optimizer_options){.clip_norm = 1}, values,
        (const float[]){-0.6f, -0.8f, -0.0249922f, 0.9996877f});
    run_clipped((cadre_optimizer_options){.clip_value = 3.5}, values,
        (const float[]){-3, -3.5f, -0.3f, 3.5f});
    /* sqrt(9 + 16 + 0.09 + 144) = 13.003461 */
    run_clipped((cadre_optimizer_options){.clip_global_norm = 13.003461}, values,
        (const float[]){-3, -4, -0.3f, 12});
    run_clipped((cadre_optimizer_options){.clip_global_norm = 1.3003461}, values,
        (const float[]){-0.3f, -0.4f, -0.03f, 1.2f});
    run_clipped((cadre_optimizer_options){.clip_norm = 100}, values, /* shorter ones stay */
        (const float[]){-3, -4, -0.3f, 12});
}

/* As tf.clip_by_global_norm: what has an infinite norm has no direction. */
static void test_an_infinite_norm_is_no_number(void **state)
{
    (void)state;
    const float values[] = {INFINITY, 1, 1, 1};
    struct model model = open_model(1,
        (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD, .rate = 1, .clip_global_norm = 1});
    model.values = values;
    assert_public_ok(cadre_run(model.strategy, train_vectors, &model, NULL, 0, NULL));
    const float *b = cadre_variable_read(NULL, model.vectors[1]);
    assert_true(isnan(b[0]) && isnan(b[1]));
    close_model(&model);
}

/* Through several buckets, or all at once. */
static void test_buckets_of_any_size_give_the_same(void **state)
{
    (void)state;
    const float values[] = {1, 2, 3, 4};
    struct model model =
        open_model(2, (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD, .rate = 1});
    model.values = values;
    for (size_t bytes = 0; bytes <= 16; bytes += 4) {
        model.options.buckets = (cadre_bucket_options){.first_bytes = bytes, .bucket_bytes = bytes};
        assert_public_ok(cadre_run(model.strategy, train_vectors, &model, NULL, 0, NULL));
    }
    assert_values(model.vectors[0], WIDTH, (const float[]){-5, -10});
    assert_values(model.vectors[1], WIDTH, (const float[]){-15, -20});
    close_model(&model);
}

/* ---- what is refused ---- */

struct mistake {
    struct model *model;
    cadre_tensor *gradient;
    cadre_variable *variable;
    cadre_sparse sparse;
};

static cadre_status make_mistake(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct mistake *mistake = user;
    const cadre_apply_options options = {.sparse = &mistake->sparse};
    (void)cadre_optimizer_apply(replica, mistake->model->optimizer, &mistake->gradient,
        &mistake->variable, 1, &options); /* it fails the step all the same */
    return CADRE_OK;
}

static void assert_mistake(struct mistake mistake, cadre_status wanted, const char *part)
{
    assert_public_error(
        cadre_run(mistake.model->strategy, make_mistake, &mistake, NULL, 0, NULL), wanted, part);
}

static void test_gradients_that_do_not_fit_fail_the_step(void **state)
{
    (void)state;
    struct model model =
        open_model(1, (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD, .rate = 1});
    const int64_t dims[1] = {WIDTH};
    cadre_variable *other = NULL;
    assert_public_ok(
        cadre_variable_create(model.strategy, "other", CADRE_I32, 1, dims, NULL, &other));
    cadre_tensor *two = training_f32(2, (const float[]){1, 2});
    cadre_tensor *three = training_f32(3, (const float[]){1, 2, 3});
    cadre_tensor *whole = training_i32(2, (const int32_t[]){1, 2});
    cadre_variable *a = model.vectors[0];
    assert_mistake((struct mistake){&model, NULL, a, {0}}, CADRE_INVALID_ARGUMENT,
        "no gradient for any of 1 variables");
    assert_mistake((struct mistake){&model, three, a, {0}}, CADRE_INVALID_ARGUMENT,
        "variable 'a' is f32 [2], and its gradient is f32 [3]");
    assert_mistake((struct mistake){&model, whole, a, {0}}, CADRE_INVALID_ARGUMENT, "i32 [2]");
    assert_mistake((struct mistake){&model, two, other, {0}}, CADRE_INVALID_ARGUMENT,
        "'other' is i32, and optimizers need f32 or f64");
    assert_mistake((struct mistake){&model, two, a, {.values = two, .indices = two}},
        CADRE_INVALID_ARGUMENT, "a dense and a sparse gradient");
    assert_mistake((struct mistake){&model, NULL, model.table, {.values = two, .indices = two}},
        CADRE_INVALID_ARGUMENT, "'table' is f32 [5, 2]");
    assert_values(a, WIDTH, (const float[]){0, 0});
    cadre_tensor_release(two);
    cadre_tensor_release(three);
    cadre_tensor_release(whole);
    close_model(&model);
}

static void test_options_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const struct {
        cadre_optimizer_options options;
        const char *part;
    } mistakes[] = {
        {{.rate = 1}, "of no kind"},
        {{.kind = (cadre_optimizer_kind)9, .rate = 1}, "9 is no kind"},
        {{.kind = CADRE_OPTIMIZER_SGD}, "rate is 0"},
        {{.kind = CADRE_OPTIMIZER_ADAM, .rate = 1, .beta1 = 1}, "beta1 is 1"},
        {{.kind = CADRE_OPTIMIZER_SGD, .rate = 1, .clip_norm = -1}, "to clip gradients to -1"},
        {{.kind = CADRE_OPTIMIZER_SGD, .rate = 1, .clip_norm = 1, .clip_value = 1}, "in 2 ways"},
        {{.kind = CADRE_OPTIMIZER_SGD, .rate = 1, .schedule = {.kind = (cadre_rate_kind)7}},
            "7 is no schedule"},
        {{.kind = CADRE_OPTIMIZER_SGD, .rate = 1, .schedule = {.pieces = 17}}, "17 pieces"},
        {{.kind = CADRE_OPTIMIZER_SGD, .rate = 1, .name = ""}, "name"},
    };
    cadre_strategy *strategy = training_strategy(1);
    cadre_optimizer *optimizer = NULL;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        assert_public_error(cadre_optimizer_create(strategy, &mistakes[i].options, &optimizer),
            CADRE_INVALID_ARGUMENT, mistakes[i].part);
        assert_null(optimizer);
    }
    assert_public_error(
        cadre_optimizer_create(strategy, NULL, &optimizer), CADRE_INVALID_ARGUMENT, "options");
    cadre_strategy_release(strategy);
}

static void test_variables_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct model model =
        open_model(1, (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_ADAM, .rate = 1});
    cadre_variable *whole = NULL;
    cadre_variable *counted = NULL;
    cadre_variable *slot = NULL;
    assert_public_ok(cadre_variable_create(model.strategy, "i", CADRE_I32, 0, NULL, NULL, &whole));
    assert_public_ok(cadre_variable_create(model.strategy, "n", CADRE_F32, 0, NULL,
        &(cadre_variable_options){.synchronization = CADRE_SYNC_ON_READ}, &counted));
    assert_public_error(cadre_optimizer_build(model.optimizer, &whole, 1), CADRE_INVALID_ARGUMENT,
        "'i' is i32, and optimizers need f32 or f64");
    assert_public_error(cadre_optimizer_build(model.optimizer, &counted, 1), CADRE_INVALID_ARGUMENT,
        "'n' is combined when read");
    assert_public_error(cadre_optimizer_build(model.optimizer, (cadre_variable *[]){NULL}, 1),
        CADRE_INVALID_ARGUMENT, "no variable at index 0");
    assert_public_error(cadre_optimizer_slot(model.optimizer, model.table, "momentum", &slot),
        CADRE_NOT_FOUND, "there are 'm', 'v', 'updates'");
    assert_public_error(cadre_optimizer_slot(model.optimizer, whole, "m", &slot), CADRE_NOT_FOUND,
        "no slots of that variable");
    assert_public_error(cadre_optimizer_slot(model.optimizer, NULL, "m", &slot), CADRE_NOT_FOUND,
        "there is 'learning_rate'");
    assert_public_ok(cadre_optimizer_build(model.optimizer, &model.table, 1)); /* once more */
    cadre_strategy_release(model.strategy);
    assert_public_error(cadre_optimizer_build(model.optimizer, &model.table, 1),
        CADRE_FAILED_PRECONDITION, "has ended");
    assert_int_equal(cadre_optimizer_iterations(model.optimizer), 0);
    cadre_optimizer_release(model.optimizer);
}

/* Each place that needs memory says so once, and the next attempt goes on from there. */
static void test_memory_may_run_out(void **state)
{
    (void)state;
    const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 1};
    struct model model = {.strategy = training_strategy(1)};
    const int64_t dims[2] = {ROWS, WIDTH};
    assert_public_ok(
        cadre_variable_create(model.strategy, "table", CADRE_F32, 2, dims, NULL, &model.table));
    fault_arm("optimizer", 1);
    assert_public_error(cadre_optimizer_create(model.strategy, &sgd, &model.optimizer),
        CADRE_RESOURCE_EXHAUSTED, "no memory for an optimizer");
    assert_public_ok(cadre_optimizer_create(model.strategy, &sgd, &model.optimizer));
    fault_arm("optimizer.slots", 1);
    assert_public_error(cadre_optimizer_build(model.optimizer, &model.table, 1),
        CADRE_RESOURCE_EXHAUSTED, "the slots of 1 variables");
    assert_public_ok(cadre_optimizer_build(model.optimizer, &model.table, 1));
    fault_arm("optimizer.turn", 1);
    assert_public_error(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL),
        CADRE_RESOURCE_EXHAUSTED, "no memory for 1 gradients");
    fault_arm("optimizer.rows", 1);
    assert_public_error(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL),
        CADRE_RESOURCE_EXHAUSTED, "the 3 rows of a sparse gradient");
    assert_public_ok(cadre_run(model.strategy, train_rows, &model, NULL, 0, NULL));
    assert_values(
        model.table, ROWS * WIDTH, (const float[]){-10, -10, 0, 0, 0, 0, -101, -101, 0, 0});
    close_model(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_joined_and_summed),
        cmocka_unit_test(test_slots_of_other_rows_stay),
        cmocka_unit_test(test_gradients_are_clipped),
        cmocka_unit_test(test_an_infinite_norm_is_no_number),
        cmocka_unit_test(test_buckets_of_any_size_give_the_same),
        cmocka_unit_test(test_gradients_that_do_not_fit_fail_the_step),
        cmocka_unit_test(test_options_that_do_not_fit_are_refused),
        cmocka_unit_test(test_variables_that_do_not_fit_are_refused),
        cmocka_unit_test(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
