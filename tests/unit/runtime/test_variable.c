/* SPDX-License-Identifier: Apache-2.0
 * Variables: creation, initial values, assignments, and what a failed step leaves behind. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "training.h"

static cadre_variable *scalar_variable(
    cadre_strategy *strategy, const char *name, double value, cadre_aggregation aggregation)
{
    cadre_variable *variable;
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value},
        .aggregation = aggregation};
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options, &variable));
    return variable;
}

static cadre_status read_component(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const float *value = cadre_variable_read(replica, user);
    return cadre_tensor_from_f32(*value, &outputs[0]);
}

static void assert_components(cadre_strategy *strategy, cadre_variable *variable, float value)
{
    cadre_per_replica *components;
    assert_public_ok(cadre_run(strategy, read_component, variable, NULL, 1, &components));
    for (uint32_t i = 0; i < cadre_per_replica_count(components); i++) {
        const cadre_tensor *component = cadre_local_results(components, 0)[i];
        training_assert_f32(component, 1, &value);
    }
    assert_true(*(const float *)cadre_variable_read(NULL, variable) == value);
}

static void creation_is_checked(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *w = scalar_variable(strategy, "w", 1, CADRE_AGGREGATION_NONE);
    cadre_variable *other;
    assert_string_equal(cadre_variable_name(w), "w");
    assert_int_equal(cadre_variable_dtype(w), CADRE_F32);
    assert_int_equal(cadre_variable_rank(w), 0);
    assert_int_equal(cadre_variable_count(w), 1);
    assert_ptr_equal(training_find(strategy, "w"), w);
    assert_null(training_find(strategy, "v"));
    assert_public_error(cadre_variable_create(strategy, "", CADRE_F32, 0, NULL, NULL, &other),
        CADRE_INVALID_ARGUMENT, "empty");
    int64_t negative = -1;
    assert_public_error(cadre_variable_create(strategy, "n", CADRE_F32, 1, &negative, NULL, &other),
        CADRE_INVALID_ARGUMENT, "variable 'n'");
    cadre_variable_options options = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    assert_public_error(cadre_variable_create(strategy, "r", CADRE_BOOL, 0, NULL, &options, &other),
        CADRE_INVALID_ARGUMENT, "truth values");
    assert_public_error(
        cadre_variable_create(strategy, "s", CADRE_STRING, 0, NULL, &options, &other),
        CADRE_INVALID_ARGUMENT, "strings are mirrored");
    options.synchronization = CADRE_SYNC_NONE;
    assert_public_error(cadre_variable_create(strategy, "r", CADRE_F32, 0, NULL, &options, &other),
        CADRE_INVALID_ARGUMENT, "synchronization");
    options = (cadre_variable_options){.aggregation = CADRE_AGGREGATION_MEAN};
    assert_public_error(cadre_variable_create(strategy, "m", CADRE_I32, 0, NULL, &options, &other),
        CADRE_INVALID_ARGUMENT, "floating type");
    assert_components(strategy, w, 1);
    cadre_strategy_release(strategy);
}

static cadre_status count_up(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    for (int64_t i = 0; i < count && dtype == CADRE_I16; i++) {
        ((int16_t *)values)[i] = (int16_t)(i + *(int *)user);
    }
    return *(int *)user < 0 ? CADRE_DATA_LOSS : CADRE_OK;
}

static void initial_values_are_as_described(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const int64_t dims[2] = {100, 100};
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_UNIFORM, .low = -2, .high = 6, .seed = 7}};
    cadre_variable *u;
    cadre_variable *v;
    assert_public_ok(cadre_variable_create(strategy, "u", CADRE_F64, 2, dims, &options, &u));
    assert_public_ok(cadre_variable_create(strategy, "v", CADRE_F64, 2, dims, &options, &v));
    assert_memory_not_equal(cadre_variable_read(NULL, u), cadre_variable_read(NULL, v), 80000);
    const double *drawn = cadre_variable_read(NULL, u);
    double sum = 0;
    for (int i = 0; i < 10000; i++) {
        assert_true(drawn[i] >= -2 && drawn[i] < 6);
        sum += drawn[i];
    }
    assert_true(fabs(sum / 10000 - 2) < 0.1);
    options.initializer =
        (cadre_initializer){.kind = CADRE_INITIALIZER_NORMAL, .mean = 1, .stddev = 3, .seed = 7};
    cadre_variable *n;
    assert_public_ok(cadre_variable_create(strategy, "n", CADRE_F32, 2, dims, &options, &n));
    const float *normal = cadre_variable_read(NULL, n);
    double squares = 0;
    for (int i = 0; i < 10000; i++) {
        squares += (double)((normal[i] - 1) * (normal[i] - 1));
    }
    assert_true(fabs(squares / 10000 - 9) < 0.5);
    assert_public_error(cadre_variable_create(strategy, "i", CADRE_I32, 2, dims, &options, &v),
        CADRE_INVALID_ARGUMENT, "floating type");
    options.initializer = (cadre_initializer){.kind = CADRE_INITIALIZER_CONSTANT, .value = 300};
    assert_public_error(cadre_variable_create(strategy, "b", CADRE_U8, 2, dims, &options, &v),
        CADRE_INVALID_ARGUMENT, "does not fit");
    int first = 5;
    options.initializer = (cadre_initializer){
        .kind = CADRE_INITIALIZER_FUNCTION, .function = count_up, .user = &first};
    assert_public_ok(cadre_variable_create(strategy, "f", CADRE_I16, 2, dims, &options, &v));
    assert_int_equal(((const int16_t *)cadre_variable_read(NULL, v))[9999], 10004);
    first = -1;
    assert_public_error(cadre_variable_create(strategy, "g", CADRE_I16, 2, dims, &options, &v),
        CADRE_DATA_LOSS, "initializer failed");
    cadre_strategy_release(strategy);
}

struct assignment {
    cadre_variable *variable;
    cadre_assignment how;
    bool then_fail;
};

/* Assigns the replica's id. */
static cadre_status assign_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct assignment *assignment = user;
    cadre_tensor *id;
    CADRE_TRY(cadre_tensor_from_f32((float)cadre_replica_id(replica), &id));
    cadre_status status = cadre_variable_assign(replica, assignment->variable, assignment->how, id);
    cadre_tensor_release(id);
    CADRE_TRY(status);
    return assignment->then_fail && cadre_replica_id(replica) == 1 ? CADRE_CANCELLED : CADRE_OK;
}

/* variable/mirrored_mean_assign_ids and its like. */
static void assignments_are_aggregated(void **state)
{
    (void)state;
    static const struct {
        cadre_aggregation aggregation;
        float assigned;
        float added;
        float subtracted;
    } cases[] = {
        {CADRE_AGGREGATION_SUM, 1, 16, 14},
        {CADRE_AGGREGATION_MEAN, 0.5f, 15.5f, 14.5f},
        {CADRE_AGGREGATION_ONLY_FIRST_REPLICA, 0, 15, 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_strategy *strategy = training_strategy(2);
        cadre_variable *a = scalar_variable(strategy, "a", 15, cases[i].aggregation);
        cadre_variable *b = scalar_variable(strategy, "b", 15, cases[i].aggregation);
        cadre_variable *c = scalar_variable(strategy, "c", 15, cases[i].aggregation);
        struct assignment assignments[] = {
            {a, CADRE_ASSIGN, false}, {b, CADRE_ASSIGN_ADD, false}, {c, CADRE_ASSIGN_SUB, false}};
        for (int k = 0; k < 3; k++) {
            assert_public_ok(cadre_run(strategy, assign_step, &assignments[k], NULL, 0, NULL));
        }
        assert_components(strategy, a, cases[i].assigned);
        assert_components(strategy, b, cases[i].added);
        assert_components(strategy, c, cases[i].subtracted);
        cadre_strategy_release(strategy);
    }
}

static void a_failed_step_changes_no_variable(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *w = scalar_variable(strategy, "w", 15, CADRE_AGGREGATION_SUM);
    struct assignment assignment = {w, CADRE_ASSIGN_ADD, true};
    assert_public_error(
        cadre_run(strategy, assign_step, &assignment, NULL, 0, NULL), CADRE_CANCELLED, "replica 1");
    assert_int_equal(cadre_strategy_position(strategy), 0);
    assert_components(strategy, w, 15);
    assignment.then_fail = false;
    assert_public_ok(cadre_run(strategy, assign_step, &assignment, NULL, 0, NULL));
    assert_components(strategy, w, 16);
    cadre_strategy_release(strategy);
}

static cadre_status write_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    float *value = cadre_variable_write(replica, user);
    float *again = cadre_variable_write(replica, user);
    if (value == NULL || again != value) {
        return CADRE_INTERNAL;
    }
    *value += 1;
    return CADRE_OK;
}

static void writing_is_for_steps(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_variable *w = scalar_variable(strategy, "w", 1, CADRE_AGGREGATION_NONE);
    assert_null(cadre_variable_write(NULL, w));
    assert_non_null(strstr(cadre_error_message(), "outside of a replica function"));
    cadre_tensor *five;
    assert_public_ok(cadre_tensor_from_f32(5, &five));
    assert_public_ok(cadre_variable_assign(NULL, w, CADRE_ASSIGN, five));
    assert_public_ok(cadre_variable_assign(NULL, w, CADRE_ASSIGN_ADD, five));
    for (int i = 0; i < 3; i++) {
        assert_public_ok(cadre_run(strategy, write_step, w, NULL, 0, NULL));
    }
    assert_components(strategy, w, 13);
    assert_int_equal(cadre_strategy_position(strategy), 4);
    assert_public_ok(cadre_variable_assign(NULL, w, CADRE_ASSIGN, five)); /* a step of its own */
    assert_public_ok(cadre_variable_assign(NULL, w, CADRE_ASSIGN_SUB, five));
    assert_public_ok(cadre_variable_assign(NULL, w, CADRE_ASSIGN_ADD, five));
    assert_int_equal(cadre_strategy_position(strategy), 7);
    assert_components(strategy, w, 5);
    cadre_tensor *pair = training_f32(2, (const float[]){1, 2});
    assert_public_error(
        cadre_variable_assign(NULL, w, CADRE_ASSIGN, pair), CADRE_INVALID_ARGUMENT, "f32 [2]");
    cadre_tensor_release(five);
    cadre_tensor_release(pair);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_is_checked),
        cmocka_unit_test(initial_values_are_as_described),
        cmocka_unit_test(assignments_are_aggregated),
        cmocka_unit_test(a_failed_step_changes_no_variable),
        cmocka_unit_test(writing_is_for_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
