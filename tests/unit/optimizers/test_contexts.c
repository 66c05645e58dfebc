/* SPDX-License-Identifier: Apache-2.0
 * Where an optimizer may be applied, what is refused, and what a step that fails leaves. */
#include <math.h>
#include <string.h>

#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

enum { COUNT = 3 };

struct model {
    cadre_strategy *strategy;
    cadre_optimizer *optimizer;
    cadre_variable *w;
    uint32_t applies;            /* of a step */
    uint32_t failing;            /* local replica; UINT32_MAX: none */
    cadre_apply_options options; /* of each */
    cadre_status wanted;         /* of apply, with a message that has ... */
    const char *part;
    bool wrong;
};

static cadre_tensor *ones(float value)
{
    return training_f32(COUNT, (const float[]){value, value, value});
}

static struct model open_model(uint32_t replicas, cadre_optimizer_options options)
{
    struct model model = {
        .strategy = training_strategy(replicas), .applies = 1, .failing = UINT32_MAX};
    const int64_t dims[1] = {COUNT};
    assert_public_ok(
        cadre_variable_create(model.strategy, "w", CADRE_F32, 1, dims, NULL, &model.w));
    assert_public_ok(cadre_optimizer_create(model.strategy, &options, &model.optimizer));
    assert_public_ok(cadre_optimizer_build(model.optimizer, &model.w, 1));
    return model;
}

static void close_model(struct model *model)
{
    cadre_optimizer_release(model->optimizer);
    cadre_strategy_release(model->strategy);
}

static const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 1};

/* The gradient is 1 on each replica. */
static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    const float *before = cadre_variable_read(replica, model->w);
    const float first = *before;
    for (uint32_t i = 0; i < model->applies; i++) {
        cadre_tensor *gradient = ones(1);
        cadre_status status = cadre_optimizer_apply(
            replica, model->optimizer, &gradient, &model->w, 1, &model->options);
        cadre_tensor_release(gradient);
        CADRE_TRY(status);
    }
    if (*before != first) { /* not before the step counts */
        return cadre_fail(CADRE_INTERNAL, "it was written at once");
    }
    return cadre_replica_local_id(replica) == model->failing
               ? cadre_fail(CADRE_DATA_LOSS, "as requested")
               : CADRE_OK;
}

static void assert_all(const cadre_variable *variable, double wanted)
{
    for (uint32_t local = 0; local < variable->component_count; local++) {
        for (int i = 0; i < COUNT; i++) {
            double is = (double)((const float *)variable->components[local].value)[i];
            if (fabs(is - wanted) > 1e-6) {
                fail_msg("'%s' is %g on replica %u and not %g", variable->name, is, local, wanted);
            }
        }
    }
}

/* ---- slots that the first apply makes ---- */

static struct model open_unbuilt(uint32_t replicas, cadre_optimizer_options options)
{
    struct model model = {
        .strategy = training_strategy(replicas), .applies = 1, .failing = UINT32_MAX};
    const int64_t dims[1] = {COUNT};
    assert_public_ok(
        cadre_variable_create(model.strategy, "w", CADRE_F32, 1, dims, NULL, &model.w));
    assert_public_ok(cadre_optimizer_create(model.strategy, &options, &model.optimizer));
    return model;
}

static const cadre_optimizer_options halving = {
    .kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 1, .momentum = 0.5};

static void test_the_first_apply_makes_what_is_missing(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 4; replicas += 3) {
        struct model model = open_unbuilt(replicas, halving);
        cadre_variable *slot = NULL;
        model.options.gradients = CADRE_GRADIENTS_MEAN;
        model.applies = 2; /* the second finds what the first has made */
        assert_public_error(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &slot),
            CADRE_NOT_FOUND, "apply a gradient to it first");
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), 0);
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
        assert_all(model.w, -2.5);
        assert_public_ok(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &slot));
        assert_string_equal(cadre_variable_name(slot), "w/momentum");
        assert_all(slot, -1.5);
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), 2);
        model.applies = 1;
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
        assert_all(slot, -1.75);
        assert_public_ok(cadre_optimizer_build(model.optimizer, &model.w, 1)); /* they are there */
        assert_int_equal(model.strategy->variables->count, 4);                 /* the rate, too */
        close_model(&model);
    }
}

static void test_slots_are_undone_with_the_step_that_made_them(void **state)
{
    (void)state;
    struct model model = open_unbuilt(2, halving);
    cadre_variable *slot = NULL;
    for (model.failing = 0; model.failing < 2; model.failing++) {
        assert_public_error(cadre_run(model.strategy, train, &model, NULL, 0, NULL),
            CADRE_DATA_LOSS, "as requested");
        assert_all(model.w, 0);
        assert_int_equal(model.strategy->variables->count, 2);
        assert_public_error(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &slot),
            CADRE_NOT_FOUND, "has no slots of that variable");
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), 0);
    }
    model.failing = UINT32_MAX;
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_public_ok(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &slot));
    assert_all(slot, -2);
    assert_int_equal(cadre_optimizer_iterations(model.optimizer), 1);
    close_model(&model);
}

static void test_a_further_variable_gets_its_slots(void **state)
{
    (void)state;
    const int64_t dims[1] = {COUNT};
    struct model model = open_model(2, halving);
    cadre_variable *slot = NULL;
    cadre_variable *first = model.w;
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_public_ok(
        cadre_variable_create(model.strategy, "x", CADRE_F32, 1, dims, NULL, &model.w));
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_public_ok(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &slot));
    assert_all(slot, -2);
    assert_public_ok(cadre_optimizer_slot(model.optimizer, first, "momentum", &slot));
    assert_all(slot, -2);
    close_model(&model);
}

/* The owner of slots could not be known; made ahead they have names of their own. */
static void test_a_second_optimizer_of_a_variable_is_built_ahead(void **state)
{
    (void)state;
    struct model model = open_unbuilt(2, halving);
    cadre_optimizer *first = model.optimizer;
    cadre_optimizer *second = NULL;
    assert_public_ok(cadre_optimizer_create(model.strategy,
        &(cadre_optimizer_options){.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 1, .name = "second"},
        &second));
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    model.optimizer = second;
    assert_public_error(cadre_run(model.strategy, train, &model, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "which optimizer 'optimizer' updates");
    assert_all(model.w, -2);
    cadre_optimizer_release(first); /* then it goes on with what that one has left */
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_int_equal(cadre_optimizer_iterations(second), 2);
    close_model(&model);
}

/* ---- in a replica function ---- */

static void test_gradients_are_summed_averaged_or_taken(void **state)
{
    (void)state;
    static const double wanted[] = {
        [CADRE_GRADIENTS_SUM] = -4, [CADRE_GRADIENTS_MEAN] = -1, [CADRE_GRADIENTS_REDUCED] = -1};
    for (int how = CADRE_GRADIENTS_SUM; how <= CADRE_GRADIENTS_REDUCED; how++) {
        struct model model = open_model(4, sgd);
        model.options.gradients = (cadre_gradients)how;
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
        assert_all(model.w, wanted[how]);
        close_model(&model);
    }
}

static void test_a_step_that_fails_leaves_all_as_it_was(void **state)
{
    (void)state;
    struct model model = open_model(
        2, (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 1, .momentum = 0.5});
    cadre_variable *momentum = NULL;
    assert_public_ok(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &momentum));
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_all(model.w, -2);
    assert_all(momentum, -2);
    for (model.failing = 0; model.failing < 2; model.failing++) {
        assert_public_error(cadre_run(model.strategy, train, &model, NULL, 0, NULL),
            CADRE_DATA_LOSS, "as requested");
        assert_all(model.w, -2);
        assert_all(momentum, -2);
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), 1);
    }
    model.failing = UINT32_MAX;
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_all(model.w, -5);                  /* 0.5 * -2 - 2 = -3 */
    assert_null(model.w->components[0].kept); /* no copy of the old value was made */
    assert_null(momentum->components[0].kept);
    close_model(&model);
}

/* More than cadre_on_apply allows, each of them counted. */
static void test_several_applies_in_a_step_follow_each_other(void **state)
{
    (void)state;
    struct model model = open_model(2, sgd);
    model.applies = 20;
    for (int step = 1; step <= 3; step++) {
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
        assert_all(model.w, -40 * step);
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), 20 * step);
    }
    model.applies = 0;
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_all(model.w, -120);
    close_model(&model);
}

static void doubles(cadre_replica *replica, void *user)
{
    const struct model *model = user;
    float *values = cadre_variable_write(replica, model->w);
    for (int i = 0; i < COUNT; i++) {
        values[i] *= 2;
    }
}

static cadre_status between_functions(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    CADRE_TRY(cadre_on_apply(replica, doubles, user));
    CADRE_TRY(train(replica, inputs, outputs, user));
    return cadre_on_apply(replica, doubles, user);
}

static void test_it_keeps_its_place_among_functions_that_apply(void **state)
{
    (void)state;
    struct model model = open_model(2, sgd);
    assert_public_ok(cadre_run(model.strategy, between_functions, &model, NULL, 0, NULL));
    assert_all(model.w, -4); /* (0 * 2 - 2) * 2 */
    assert_public_ok(cadre_run(model.strategy, between_functions, &model, NULL, 0, NULL));
    assert_all(model.w, -20); /* (-4 * 2 - 2) * 2 */
    close_model(&model);
}

/* ---- elsewhere ---- */

static cadre_status update_one(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)ret_output;
    struct model *model = user;
    return cadre_optimizer_apply(NULL, model->optimizer, inputs, &variable, 1, &model->options);
}

static cadre_status merged(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)outputs;
    struct model *model = user;
    return cadre_variable_update(strategy, model->w, update_one, model, inputs[0], NULL);
}

static cadre_status merge(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    cadre_tensor *gradient = ones(3);
    cadre_status status =
        cadre_merge_call(replica, merged, model, (cadre_tensor *[]){gradient}, 1, 0, NULL);
    cadre_tensor_release(gradient);
    CADRE_TRY(status);
    return cadre_replica_local_id(replica) == model->failing
               ? cadre_fail(CADRE_DATA_LOSS, "as requested")
               : CADRE_OK;
}

static void test_an_update_writes_at_once_and_is_undone_with_the_step(void **state)
{
    (void)state;
    struct model model = open_model(2, sgd);
    model.options.gradients = CADRE_GRADIENTS_REDUCED;
    assert_public_ok(cadre_run(model.strategy, merge, &model, NULL, 0, NULL));
    assert_all(model.w, -3);
    assert_int_equal(cadre_optimizer_iterations(model.optimizer), 1);
    model.failing = 1;
    assert_public_error(
        cadre_run(model.strategy, merge, &model, NULL, 0, NULL), CADRE_DATA_LOSS, "as requested");
    assert_all(model.w, -3);
    assert_int_equal(cadre_optimizer_iterations(model.optimizer), 1);
    model.options.gradients = CADRE_GRADIENTS_SUM;
    assert_public_error(cadre_run(model.strategy, merge, &model, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "nothing can be reduced");
    close_model(&model);
}

static void test_cross_replica_context_is_refused(void **state)
{
    (void)state;
    struct model model = open_model(2, sgd);
    cadre_tensor *gradient = ones(1);
    assert_public_error(cadre_optimizer_apply(NULL, model.optimizer, &gradient, &model.w, 1, NULL),
        CADRE_FAILED_PRECONDITION, "in cross-replica context");
    cadre_tensor_release(gradient);
    assert_all(model.w, 0);
    close_model(&model);
}

static cadre_status build_late(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    return cadre_optimizer_build(model->optimizer, &model->w, 1);
}

static void test_a_replica_function_builds_none(void **state)
{
    (void)state;
    struct model model = open_model(2, sgd);
    assert_public_error(cadre_run(model.strategy, build_late, &model, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "cadre_optimizer_build");
    close_model(&model);
}

static void test_regular_variables_are_updated_at_once(void **state)
{
    (void)state;
    cadre_variable *w = NULL;
    cadre_optimizer *optimizer = NULL;
    const int64_t dims[1] = {COUNT};
    const cadre_optimizer_options options = {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.5};
    assert_public_ok(cadre_variable_create(NULL, "w", CADRE_F32, 1, dims, NULL, &w));
    assert_public_ok(cadre_optimizer_create(NULL, &options, &optimizer));
    assert_public_ok(cadre_optimizer_build(optimizer, &w, 1));
    cadre_tensor *gradient = ones(8);
    assert_public_ok(cadre_optimizer_apply(NULL, optimizer, &gradient, &w, 1, NULL));
    assert_all(w, -0.5); /* the first step of Adam is as long as the rate */
    assert_int_equal(cadre_optimizer_iterations(optimizer), 1);
    cadre_tensor_release(gradient);
    cadre_optimizer_release(optimizer);
    cadre_variable_release(w);
}

static void test_central_storage_is_updated_once(void **state)
{
    (void)state;
    struct model model = {.applies = 1, .failing = UINT32_MAX};
    const int64_t dims[1] = {COUNT};
    cadre_strategy_release(training_strategy(1)); /* initialises the library */
    assert_public_ok(cadre_strategy_central_storage(
        (const char *[]){"CPU:0", "CPU:1", "CPU:2"}, 3, NULL, &model.strategy));
    assert_public_ok(
        cadre_variable_create(model.strategy, "w", CADRE_F32, 1, dims, NULL, &model.w));
    assert_public_ok(cadre_optimizer_create(model.strategy, &sgd, &model.optimizer));
    assert_public_ok(cadre_optimizer_build(model.optimizer, &model.w, 1));
    assert_int_equal(cadre_variable_kind(model.w), CADRE_VARIABLE_AGGREGATING);
    for (int step = 1; step <= 3; step++) {
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
        assert_all(model.w, -3 * step);
        assert_int_equal(cadre_optimizer_iterations(model.optimizer), step);
    }
    close_model(&model);
}

/* ---- the rate ---- */

static void test_the_rate_is_a_variable(void **state)
{
    (void)state;
    struct model model = open_model(2, sgd);
    cadre_variable *rate = NULL;
    assert_public_ok(cadre_optimizer_slot(model.optimizer, NULL, "learning_rate", &rate));
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_public_ok(cadre_variable_assign_literal(NULL, rate, CADRE_ASSIGN, 0.25));
    assert_true(cadre_optimizer_learning_rate(model.optimizer) == 0.25);
    assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
    assert_all(model.w, -2.5);
    close_model(&model);
}

static void test_a_schedule_follows_the_updates(void **state)
{
    (void)state;
    struct model model = open_model(
        1, (cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD,
               .rate = 1,
               .schedule = {.kind = CADRE_RATE_EXPONENTIAL, .decay_steps = 1, .decay_rate = 0.5}});
    cadre_variable *rate = NULL;
    double wanted = 0;
    assert_public_error(cadre_optimizer_slot(model.optimizer, NULL, "learning_rate", &rate),
        CADRE_NOT_FOUND, "follows its schedule");
    for (int step = 0; step < 6; step++) {
        assert_true(cadre_optimizer_learning_rate(model.optimizer) == pow(0.5, step));
        assert_public_ok(cadre_run(model.strategy, train, &model, NULL, 0, NULL));
        wanted -= pow(0.5, step);
        assert_all(model.w, wanted);
    }
    close_model(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_apply_makes_what_is_missing),
        cmocka_unit_test(test_slots_are_undone_with_the_step_that_made_them),
        cmocka_unit_test(test_a_further_variable_gets_its_slots),
        cmocka_unit_test(test_a_second_optimizer_of_a_variable_is_built_ahead),
        cmocka_unit_test(test_gradients_are_summed_averaged_or_taken),
        cmocka_unit_test(test_a_step_that_fails_leaves_all_as_it_was),
        cmocka_unit_test(test_several_applies_in_a_step_follow_each_other),
        cmocka_unit_test(test_it_keeps_its_place_among_functions_that_apply),
        cmocka_unit_test(test_an_update_writes_at_once_and_is_undone_with_the_step),
        cmocka_unit_test(test_cross_replica_context_is_refused),
        cmocka_unit_test(test_a_replica_function_builds_none),
        cmocka_unit_test(test_regular_variables_are_updated_at_once),
        cmocka_unit_test(test_central_storage_is_updated_once),
        cmocka_unit_test(test_the_rate_is_a_variable),
        cmocka_unit_test(test_a_schedule_follows_the_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
