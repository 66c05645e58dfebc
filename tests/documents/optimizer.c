/* SPDX-License-Identifier: Apache-2.0
 * What makes new values of gradients: cadre/optimizer.h. */
#include "documents.h"

struct model {
    cadre_optimizer *optimizer;
    cadre_variable *w;
};

/* Replica r's gradient is r + 1: of two replicas they come to 3. */
static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    CADRE_RELEASE_AT_EXIT(tensor) gradient = floats((float)cadre_replica_id(replica) + 1);
    return cadre_optimizer_apply(replica, model->optimizer, &gradient, &model->w, 1, NULL);
}

static double number(const cadre_variable *variable)
{
    return (double)*(const float *)cadre_variable_read(NULL, variable);
}

/* It is made for a strategy, and builds what it remembers of each variable before the first step:
 * variables beside it. In a step gradients are summed, and the variable is written when the step
 * counts. */
static void gradients_are_summed_and_applied(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct model model;
    const int64_t dims[1] = {1};
    OK(cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &model.w));
    OK(cadre_optimizer_create(strategy,
        &(cadre_optimizer_options){.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 1, .momentum = 0.5},
        &model.optimizer));
    OK(cadre_optimizer_build(model.optimizer, &model.w, 1));

    cadre_variable *momentum;
    OK(cadre_optimizer_slot(model.optimizer, model.w, "momentum", &momentum));
    cadre_variable *found;
    OK(cadre_variable_find(strategy, "w/momentum", &found));
    assert_ptr_equal(momentum, found);

    on_each_replica(strategy, train, &model);
    assert_true(number(momentum) == -3);
    assert_true(number(model.w) == -3);
    on_each_replica(strategy, train, &model);
    assert_true(number(momentum) == -4.5); /* 0.5 * -3 - 3 */
    assert_true(number(model.w) == -7.5);
    assert_int_equal(cadre_optimizer_iterations(model.optimizer), 2);

    cadre_optimizer_release(model.optimizer); /* what it remembers is the strategy's */
    OK(cadre_variable_find(strategy, "w/momentum", &found));
    cadre_strategy_release(strategy);
}

/* The rate is a variable, and assigned as one between steps. Where it follows a schedule there is
 * none to be assigned. */
static void the_rate_is_assigned_or_follows_a_schedule(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct model model;
    cadre_variable *rate;
    OK(cadre_variable_create(strategy, "w", CADRE_F32, 1, (const int64_t[]){1}, NULL, &model.w));
    OK(cadre_optimizer_create(strategy,
        &(cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD, .rate = 1}, &model.optimizer));
    OK(cadre_optimizer_build(model.optimizer, &model.w, 1));
    OK(cadre_optimizer_slot(model.optimizer, NULL, "learning_rate", &rate));
    OK(cadre_variable_assign_literal(NULL, rate, CADRE_ASSIGN, 0.5));
    assert_true(cadre_optimizer_learning_rate(model.optimizer) == 0.5);
    on_each_replica(strategy, train, &model);
    assert_true(number(model.w) == -1.5);
    cadre_optimizer_release(model.optimizer);
    cadre_strategy_release(strategy);

    strategy = training_strategy(1);
    OK(cadre_variable_create(strategy, "w", CADRE_F32, 1, (const int64_t[]){1}, NULL, &model.w));
    OK(cadre_optimizer_create(strategy,
        &(cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD,
            .rate = 1,
            .schedule =
                {.kind = CADRE_RATE_PIECEWISE, .pieces = 1, .boundaries = {1}, .rates = {0.25}}},
        &model.optimizer));
    OK(cadre_optimizer_build(model.optimizer, &model.w, 1));
    const double wanted[] = {-1, -2, -2.25};
    for (int step = 0; step < 3; step++) {
        on_each_replica(strategy, train, &model);
        assert_true(number(model.w) == wanted[step]);
    }
    assert_true(cadre_optimizer_learning_rate(model.optimizer) == 0.25);
    REFUSED(cadre_optimizer_slot(model.optimizer, NULL, "learning_rate", &rate), CADRE_NOT_FOUND,
        "follows its schedule");
    cadre_optimizer_release(model.optimizer);
    cadre_strategy_release(strategy);
}

/* Outside of any strategy's scope an optimizer updates regular variables, at once. */
static void regular_variables_are_updated_at_once(void **state)
{
    (void)state;
    cadre_variable *w;
    CADRE_RELEASE_AT_EXIT(optimizer) optimizer = NULL;
    CADRE_RELEASE_AT_EXIT(tensor) gradient = floats(4);
    OK(cadre_variable_create(NULL, "w", CADRE_F32, 1, (const int64_t[]){1}, NULL, &w));
    OK(cadre_optimizer_create(
        NULL, &(cadre_optimizer_options){.kind = CADRE_OPTIMIZER_SGD, .rate = 0.25}, &optimizer));
    OK(cadre_optimizer_build(optimizer, &w, 1));
    OK(cadre_optimizer_apply(NULL, optimizer, &gradient, &w, 1, NULL));
    assert_true(number(w) == -1);
    cadre_variable_release(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_summed_and_applied),
        cmocka_unit_test(the_rate_is_assigned_or_follows_a_schedule),
        cmocka_unit_test(regular_variables_are_updated_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
