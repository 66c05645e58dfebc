/* SPDX-License-Identifier: Apache-2.0
 * Variables, and how they are changed: cadre/variable.h, cadre/assign.h, cadre/scatter.h. */
#include "documents.h"

static cadre_variable *create(cadre_strategy *strategy, const char *name, double value)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value},
        .aggregation = CADRE_AGGREGATION_SUM};
    cadre_variable *variable;
    OK(cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options, &variable));
    return variable;
}

static float read(const cadre_variable *variable)
{
    return *(const float *)cadre_variable_read(NULL, variable);
}

/* --- what it is --- */

/* A variable has a name and a type, and on each replica a component with a device of its own. */
static void a_variable_has_components(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = create(strategy, "v", 1);
    cadre_variable *plain = create(NULL, "plain", 1);
    assert_string_equal(cadre_variable_name(variable), "v");
    assert_int_equal(cadre_variable_dtype(variable), CADRE_F32);
    assert_int_equal(cadre_variable_components(variable), 2);
    assert_string_equal(
        cadre_variable_device(variable, 1), "/job:localhost/replica:0/task:0/device:CPU:1");
    assert_true(cadre_variable_created_in_scope(strategy, variable));
    assert_false(cadre_variable_created_in_scope(strategy, plain)); /* the caller's own */
    cadre_variable_release(plain);
    cadre_strategy_release(strategy);
}

/* Printed, and as the values that its components have now. */
static void a_variable_is_looked_at(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = create(strategy, "v", 1);
    cadre_per_replica *components;
    assert_printed(cadre_variable_print(variable, file),
        "MirroredVariable:{\n"
        "  0: <cadre_variable 'v:0' shape=() dtype=float32, numpy=1.0>,\n"
        "  1: <cadre_variable 'v/replica_1:0' shape=() dtype=float32, numpy=1.0>\n"
        "}\n");
    OK(cadre_variable_local_results(variable, &components));
    assert_replicas(components, 0, "1 1");
    cadre_per_replica_release(components);
    cadre_strategy_release(strategy);
}

/* What belongs to a variable, such as an optimizer's memory of it, lies where that does. */
static void variables_lie_together(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *weight = create(strategy, "weight", 1);
    const cadre_variable_options options = {.colocate_with = weight};
    cadre_variable *slot;
    OK(cadre_variable_create(strategy, "slot", CADRE_F32, 0, NULL, &options, &slot));
    assert_string_equal(cadre_variable_device(slot, 1), cadre_variable_device(weight, 1));
    cadre_strategy_release(strategy);
}

/* What a model creates when it is first used: the function calls it in each run, and finds it from
 * the second on. `user`: what it is to be now. */
static cadre_status use_model(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3}};
    cadre_variable *kernel;
    cadre_variable *second;
    (void)inputs;
    (void)outputs;
    CADRE_TRY(cadre_variable_create(NULL, "kernel", CADRE_F32, 0, NULL, &options, &kernel));
    CADRE_TRY(cadre_variable_create(NULL, "kernel", CADRE_F32, 0, NULL, &options, &second));
    *(float *)cadre_variable_write(replica, kernel) += 1;
    assert_string_equal(cadre_variable_name(second), "kernel_1");
    assert_true(*(const float *)cadre_variable_read(replica, kernel) == *(const float *)user);
    return CADRE_OK;
}

static void variables_come_late(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    for (float wanted = 4; wanted < 7; wanted++) {
        OK(cadre_run(strategy, use_model, &wanted, NULL, 0, NULL));
    }
    assert_true(read(training_find(strategy, "kernel")) == 6);
    /* Between steps it is a step, and equal names are made unique. */
    assert_string_equal(cadre_variable_name(create(strategy, "rate", 1)), "rate");
    assert_string_equal(cadre_variable_name(create(strategy, "rate", 1)), "rate_1");
    assert_int_equal(cadre_strategy_position(strategy), 5);
    cadre_strategy_release(strategy);
}

/* Where variables are held once, in one place, a scope keeps what the first read gave. */
static void reads_are_kept(void **state)
{
    (void)state;
    const char *const compute[] = {"CPU:0", "CPU:1"};
    cadre_strategy *strategy;
    OK(cadre_strategy_central_storage(compute, 2, NULL, &strategy));
    cadre_variable *variable = create(strategy, "v", 1);
    OK(cadre_caching_scope_enter());
    assert_true(read(variable) == 1);
    OK(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 5));
    assert_true(read(variable) == 1);
    OK(cadre_caching_scope_leave());
    assert_true(read(variable) == 5);
    cadre_strategy_release(strategy);
}

/* --- how it is changed --- */

static cadre_status add_own_number(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_tensor *value;
    (void)inputs;
    (void)outputs;
    CADRE_TRY(cadre_tensor_from_f32((float)cadre_replica_id(replica) + 1, &value));
    cadre_status status = cadre_variable_assign(replica, user, CADRE_ASSIGN_ADD, value);
    cadre_tensor_release(value);
    return status;
}

/* Between steps a variable gets a tensor or a number. In a step each replica gives its own, and the
 * variable's aggregation says what becomes of them: here their sum. */
static void assignments(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = create(strategy, "v", 1);
    cadre_tensor *ten;
    OK(cadre_tensor_from_f32(10, &ten));
    OK(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, ten));
    assert_true(read(variable) == 10);
    OK(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN_SUB, 4));
    assert_true(read(variable) == 6);
    on_each_replica(strategy, add_own_number, variable);
    assert_true(read(variable) == 9); /* 6 + (1 + 2), on both */
    cadre_tensor_release(ten);
    cadre_strategy_release(strategy);
}

/* What replicas are to have each for themselves is combined when it is read: each component gets
 * its own. */
static void a_value_for_each_component(void **state)
{
    (void)state;
    const cadre_variable_options options = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_MEAN};
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensors[2];
    cadre_per_replica *values;
    cadre_variable *variable;
    OK(cadre_variable_create(strategy, "mean", CADRE_F32, 0, NULL, &options, &variable));
    OK(cadre_tensor_from_f32(2, &tensors[0]));
    OK(cadre_tensor_from_f32(6, &tensors[1]));
    OK(cadre_values_from_tensors(strategy, tensors, 2, &values));
    OK(cadre_variable_assign_values(variable, CADRE_ASSIGN, values));
    assert_true(read(variable) == 4);
    cadre_per_replica_release(values);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    cadre_strategy_release(strategy);
}

static cadre_status twice(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)inputs;
    (void)ret_output;
    (void)user;
    *(float *)cadre_variable_write(NULL, variable) *= 2;
    return CADRE_OK;
}

/* A function of the program changes each component where it is. */
static void an_update_by_a_function(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = create(strategy, "v", 3);
    cadre_per_replica *components;
    OK(cadre_variable_update(strategy, variable, twice, NULL, NULL, NULL));
    OK(cadre_variable_local_results(variable, &components));
    assert_replicas(components, 0, "6 6");
    cadre_per_replica_release(components);
    cadre_strategy_release(strategy);
}

static cadre_status count_step(
    const char *device, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)device;
    (void)inputs;
    (void)ret_output;
    return cadre_variable_assign_literal(NULL, user, CADRE_ASSIGN_ADD, 1);
}

/* What belongs to no one variable, such as the count of an optimizer's steps, is updated once on
 * each device that variables are on. */
static void an_update_without_a_variable(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *steps = create(strategy, "steps", 0);
    cadre_per_replica *components;
    OK(cadre_update_non_slot(strategy, count_step, steps, NULL, NULL));
    OK(cadre_variable_local_results(steps, &components));
    assert_replicas(components, 0, "1 1");
    cadre_per_replica_release(components);
    cadre_strategy_release(strategy);
}

/* Some rows of a table are changed, as the gradient of a look-up names them. */
static void rows_are_changed(void **state)
{
    (void)state;
    const int64_t dims[] = {3, 2};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *table;
    OK(cadre_variable_create(strategy, "table", CADRE_F32, 2, dims, NULL, &table));
    cadre_sparse change = {
        .values = rows(2, floats(1, 2, 3, 4)), .indices = integers(2, 0), .rows = 3};
    OK(cadre_variable_scatter(NULL, table, CADRE_SCATTER_ADD, &change));
    const float *is = cadre_variable_read(NULL, table);
    const float wanted[6] = {3, 4, 0, 0, 1, 2};
    assert_memory_equal(is, wanted, sizeof wanted);
    cadre_sparse_release(&change);
    assert_null(change.values);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_variable_has_components),
        cmocka_unit_test(a_variable_is_looked_at),
        cmocka_unit_test(variables_lie_together),
        cmocka_unit_test(variables_come_late),
        cmocka_unit_test(reads_are_kept),
        cmocka_unit_test(assignments),
        cmocka_unit_test(a_value_for_each_component),
        cmocka_unit_test(an_update_by_a_function),
        cmocka_unit_test(an_update_without_a_variable),
        cmocka_unit_test(rows_are_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
