/* SPDX-License-Identifier: Apache-2.0
 * Variables that are created in a job that is under way: in replica functions and between steps;
 * the names that they get, and what a step that fails leaves of them. */
#include <stdio.h>
#include <string.h>

#include "creating.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* --- in a replica function --- */

static void a_function_creates_once(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct creating creating = {.names = {"m", "n"},
        .dtype = CADRE_F64,
        .options = {.initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3}},
        .add = 1};
    for (int i = 0; i < 4; i++) {
        assert_public_ok(creating_run(strategy, &creating));
        cadre_variable *m = training_find(strategy, "m");
        assert_non_null(m);
        assert_ptr_equal(creating.got[0][0], m);
        assert_ptr_equal(creating.got[1][0], m);
        assert_ptr_equal(creating.got[0][1], training_find(strategy, "n"));
        assert_true(creating_value(m) == 4 + i);
        assert_true(creating_value(creating.got[0][1]) == 3);
    }
    cadre_strategy_release(strategy);
}

static void names_in_a_function_are_a_row(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *outside = creating_one(strategy, "w", 1);
    struct creating creating = {.names = {"w", "x", "w", "w"}, .dtype = CADRE_F64};
    for (int i = 0; i < 3; i++) {
        assert_public_ok(creating_run(strategy, &creating));
        assert_string_equal(cadre_variable_name(creating.got[0][0]), "w_1");
        assert_string_equal(cadre_variable_name(creating.got[1][1]), "x");
        assert_string_equal(cadre_variable_name(creating.got[0][2]), "w_2");
        assert_string_equal(cadre_variable_name(creating.got[1][3]), "w_3");
    }
    assert_ptr_equal(training_find(strategy, "w"), outside);
    assert_string_equal(cadre_variable_name(creating_one(strategy, "w", 0)), "w_4");
    creating.names[0] = "x"; /* other calls: those that are the same give the same */
    assert_public_ok(creating_run(strategy, &creating));
    assert_string_equal(cadre_variable_name(creating.got[0][0]), "x");
    assert_string_equal(cadre_variable_name(creating.got[0][1]), "x_1");
    assert_string_equal(cadre_variable_name(creating.got[0][2]), "w_1");
    assert_string_equal(cadre_variable_name(creating.got[0][3]), "w_2");
    cadre_strategy_release(strategy);
}

static void a_step_that_fails_creates_nothing(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    creating_one(strategy, "w", 1);
    struct creating creating = {.names = {"m"}, .dtype = CADRE_F64, .fails = true, .add = 5};
    uint64_t layout = strategy->variables->count;
    assert_public_error(creating_run(strategy, &creating), CADRE_DATA_LOSS, "the step is to fail");
    cadre_variable *undone = creating.got[0][0];
    assert_null(training_find(strategy, "m"));
    assert_int_equal(strategy->variables->count, layout);
    assert_string_equal(cadre_variable_name(undone), "");
    assert_null(cadre_variable_read(NULL, undone));
    assert_non_null(strstr(cadre_error_message(), "the step that created it was undone"));
    creating.fails = false;
    assert_public_ok(creating_run(strategy, &creating));
    assert_ptr_equal(creating.got[0][0], undone); /* the same again, from its initial value */
    assert_string_equal(cadre_variable_name(undone), "m");
    assert_true(creating_value(undone) == 5);
    cadre_strategy_release(strategy);
}

static cadre_status read_undone(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_read(replica, user) == NULL ? CADRE_FAILED_PRECONDITION : CADRE_OK;
}

static void what_was_undone_is_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct creating creating = {.names = {"m"}, .dtype = CADRE_F64, .fails = true};
    assert_public_error(creating_run(strategy, &creating), CADRE_DATA_LOSS, "to fail");
    assert_public_error(cadre_run(strategy, read_undone, creating.got[0][0], NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "create it in each run");
    creating.rank = 1; /* the name, as another variable */
    creating.dims[0] = 2;
    creating.fails = false;
    assert_public_ok(creating_run(strategy, &creating));
    assert_int_equal(cadre_variable_count(creating.got[1][0]), 2);
    cadre_strategy_release(strategy);
}

static cadre_status refuse(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)values;
    (void)count;
    (void)dtype;
    (void)user;
    return cadre_fail(CADRE_DATA_LOSS, "no value today");
}

static void an_initial_value_that_fails_fails_the_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct creating creating = {.names = {"m", "n"},
        .dtype = CADRE_F64,
        .options = {.initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = refuse}}};
    assert_public_error(creating_run(strategy, &creating), CADRE_DATA_LOSS, "no value today");
    creating.forgives = true;
    assert_public_error(creating_run(strategy, &creating), CADRE_DATA_LOSS, "no value today");
    assert_null(training_find(strategy, "m"));
    assert_null(training_find(strategy, "n"));
    cadre_strategy_release(strategy);
}

static cadre_status nested(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    cadre_variable *variable;
    (void)values;
    (void)count;
    (void)dtype;
    (void)user;
    return cadre_variable_create(NULL, "inner", CADRE_F64, 0, NULL, NULL, &variable);
}

static void an_initializer_creates_no_variable(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct creating creating = {.names = {"m"},
        .dtype = CADRE_F64,
        .options = {.initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = nested}}};
    assert_public_error(creating_run(strategy, &creating), CADRE_FAILED_PRECONDITION,
        "cadre_variable_create was called outside of a replica function");
    cadre_strategy_release(strategy);
}

static void what_is_there_must_be_the_same(void **state)
{
    (void)state;
    static const struct {
        struct creating other;
        const char *part;
    } rows[] = {
        {{.dtype = CADRE_F32}, "'m' was created f64 [2] before, and now f32 [2]"},
        {{.dtype = CADRE_F64, .dims = {3}}, "and now f64 [3]"},
        {{.dtype = CADRE_F64, .options = {.aggregation = CADRE_AGGREGATION_SUM}}, "and now SUM"},
        {{.dtype = CADRE_F64, .options = {.synchronization = CADRE_SYNC_ON_READ}},
            "and now combined when read"},
        {{.dtype = CADRE_F64, .options = {.keep_on_host = true}}, "and now on the host"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cadre_strategy *strategy = training_strategy(2);
        struct creating first = {.names = {"m"}, .dtype = CADRE_F64, .rank = 1, .dims = {2}};
        struct creating other = rows[i].other;
        other.names[0] = "m";
        other.rank = 1;
        other.dims[0] = other.dims[0] == 0 ? 2 : other.dims[0];
        assert_public_ok(creating_run(strategy, &first));
        assert_public_error(creating_run(strategy, &other), CADRE_INVALID_ARGUMENT, rows[i].part);
        assert_public_ok(creating_run(strategy, &first)); /* as before */
        cadre_strategy_release(strategy);
    }
}

static cadre_status one_creates(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_variable *variable;
    (void)inputs;
    (void)outputs;
    const char *const *names = user;
    const char *name = names[cadre_replica_id(replica)];
    return name == NULL ? CADRE_OK
                        : cadre_variable_create(NULL, name, CADRE_F64, 0, NULL, NULL, &variable);
}

static void replicas_create_the_same(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const char *names[2] = {"m", "n"};
    assert_public_error(cadre_run(strategy, one_creates, names, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "cadre_variable_create('n', f64 [], NONE)");
    names[1] = NULL;
    assert_public_error(cadre_run(strategy, one_creates, names, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "the replicas disagree");
    names[1] = "m";
    assert_public_ok(cadre_run(strategy, one_creates, names, NULL, 0, NULL));
    assert_null(training_find(strategy, "n"));
    cadre_strategy_release(strategy);
}

/* --- kinds --- */

static cadre_status count_twice(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const cadre_variable_options summed = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 10},
        .synchronization = CADRE_SYNC_ON_READ,
        .aggregation = CADRE_AGGREGATION_SUM};
    cadre_variable *variable;
    cadre_tensor *two;
    CADRE_TRY(cadre_variable_create(NULL, "seen", CADRE_I64, 0, NULL, &summed, &variable));
    CADRE_TRY(cadre_tensor_from_i64(2, &two));
    cadre_status status = cadre_variable_assign(replica, variable, CADRE_ASSIGN_ADD, two);
    cadre_tensor_release(two);
    if (status == CADRE_OK &&
        *(const int64_t *)cadre_variable_read(replica, variable) != *(const int64_t *)user) {
        return cadre_fail(CADRE_INTERNAL, "it is another number");
    }
    return status;
}

static void combined_when_read(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    for (int64_t steps = 1; steps < 4; steps++) {
        int64_t own = 10 + 2 * steps;
        assert_public_ok(cadre_run(strategy, count_twice, &own, NULL, 0, NULL));
        cadre_variable *seen = training_find(strategy, "seen");
        assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, seen), 2 * own);
    }
    cadre_strategy_release(strategy);
}

static void central_storage_creates_late(void **state)
{
    (void)state;
    cadre_strategy *strategy;
    static const char *const devices[] = {"CPU:0", "CPU:1"};
    cadre_strategy_release(training_strategy(1));
    assert_public_ok(cadre_strategy_central_storage(devices, 2, "CPU:0", &strategy));
    struct creating creating = {.names = {"m"},
        .dtype = CADRE_F64,
        .options = {.initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3},
            .aggregation = CADRE_AGGREGATION_SUM}};
    for (int i = 0; i < 2; i++) {
        assert_public_ok(creating_run(strategy, &creating));
        assert_int_equal(cadre_variable_kind(creating.got[1][0]), CADRE_VARIABLE_AGGREGATING);
        assert_int_equal(cadre_variable_components(creating.got[0][0]), 1);
        assert_true(creating_value(creating.got[1][0]) == 3);
    }
    assert_true(creating_value(creating_one(strategy, "c", 4)) == 4);
    cadre_strategy_release(strategy);
}

static void strings_are_created_late(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct creating creating = {.names = {"words"}, .dtype = CADRE_STRING, .rank = 1, .dims = {2}};
    assert_public_ok(creating_run(strategy, &creating));
    const cadre_string *words = cadre_variable_read(NULL, creating.got[0][0]);
    assert_int_equal(words[1].size, 0);
    creating.fails = true;
    creating.names[0] = "more";
    assert_public_error(creating_run(strategy, &creating), CADRE_DATA_LOSS, "to fail");
    creating.fails = false;
    assert_public_ok(creating_run(strategy, &creating));
    assert_int_equal(cadre_variable_components(creating.got[1][0]), 1);
    cadre_strategy_release(strategy);
}

static void metrics_are_created_late(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_metric *metric;
    double result = -1;
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_metric_create(strategy, CADRE_METRIC_MEAN, "loss", NULL, &metric));
    assert_int_equal(cadre_strategy_position(strategy), 2);
    assert_public_ok(cadre_metric_reset(metric)); /* a step, too */
    assert_int_equal(cadre_strategy_position(strategy), 3);
    assert_public_ok(cadre_metric_result(NULL, metric, &result));
    assert_true(result == 0);
    cadre_metric_release(metric);
    cadre_strategy_release(strategy);
}

static cadre_status count_in_metric(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_metric *metric = NULL;
    cadre_tensor *values = NULL;
    (void)inputs;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_metric_create(NULL, CADRE_METRIC_SUM, "rows", NULL, &metric));
    CADRE_TRY(cadre_tensor_from_f32(2, &values));
    cadre_status status = cadre_metric_update(replica, metric, values, NULL, NULL);
    cadre_tensor_release(values);
    cadre_metric_release(metric);
    return status;
}

static void functions_create_metrics(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    for (int steps = 1; steps < 4; steps++) {
        assert_public_ok(cadre_run(strategy, count_in_metric, NULL, NULL, 0, NULL));
        assert_true(creating_value(training_find(strategy, "rows")) == 4 * steps);
    }
    cadre_strategy_release(strategy);
}

/* --- between steps --- */

static void a_creation_between_steps_is_a_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    creating_one(strategy, "w", 1);
    assert_int_equal(cadre_strategy_position(strategy), 0);
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    cadre_variable *late = creating_one(strategy, "late", 7);
    assert_int_equal(cadre_strategy_position(strategy), 2);
    assert_true(creating_value(late) == 7);
    assert_int_equal(cadre_variable_components(late), 2);
    assert_string_equal(cadre_variable_name(creating_one(strategy, "late", 8)), "late_1");
    assert_string_equal(cadre_variable_name(creating_one(strategy, "w", 8)), "w_1");
    assert_int_equal(cadre_strategy_position(strategy), 4);
    assert_true(creating_value(late) == 7);
    cadre_strategy_release(strategy);
}

static void one_that_fails_between_steps_is_none(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable;
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = refuse}};
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_public_error(
        cadre_variable_create(strategy, "v", CADRE_F64, 0, NULL, &options, &variable),
        CADRE_DATA_LOSS, "'v' was not created: ");
    assert_null(variable);
    assert_int_equal(cadre_strategy_position(strategy), 1);
    assert_string_equal(cadre_variable_name(creating_one(strategy, "v", 8)), "v");
    cadre_strategy_release(strategy);
}

static void equal_names_are_made_unique(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *other;
    char name[128];
    uint8_t mine = 0;
    assert_string_equal(cadre_variable_name(creating_one(strategy, "v", 1)), "v");
    assert_string_equal(cadre_variable_name(creating_one(strategy, "v_1", 1)), "v_1");
    assert_string_equal(cadre_variable_name(creating_one(strategy, "v", 1)), "v_2");
    assert_string_equal(cadre_variable_name(creating_one(strategy, "v_1", 1)), "v_1_1");
    assert_public_ok(cadre_state_register(strategy, "s", &mine, 1));
    assert_public_error(
        cadre_variable_create(strategy, "state/s", CADRE_F64, 0, NULL, NULL, &other),
        CADRE_ALREADY_EXISTS, "registered state");
    memset(name, 'n', 127);
    name[127] = '\0';
    assert_string_equal(cadre_variable_name(creating_one(strategy, name, 1)), name);
    assert_public_error(cadre_variable_create(strategy, name, CADRE_F64, 0, NULL, NULL, &other),
        CADRE_INVALID_ARGUMENT, "more than 127 bytes");
    cadre_strategy_release(strategy);
}

static cadre_status create_in_merge(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    cadre_variable *variable;
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_variable_create(strategy, "m", CADRE_F64, 0, NULL, NULL, &variable);
}

static cadre_status merge(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_merge_call(replica, create_in_merge, user, NULL, 0, 0, NULL);
}

static void merge_calls_create_none(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_error(cadre_run(strategy, merge, NULL, NULL, 0, NULL), CADRE_FAILED_PRECONDITION,
        "inside the function of cadre_merge_call");
    assert_null(training_find(strategy, "m"));
    cadre_strategy_release(strategy);
}

static void many_are_created(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    char names[100][16];
    for (int i = 0; i < 100; i++) {
        snprintf(names[i], sizeof names[i], "m%d", (i * 37) % 100);
        struct creating creating = {.names = {names[i], "same", names[i]}, .dtype = CADRE_F64};
        creating.fails = i % 3 == 0;
        assert_int_equal(
            creating_run(strategy, &creating), creating.fails ? CADRE_DATA_LOSS : CADRE_OK);
        creating.fails = false;
        assert_public_ok(creating_run(strategy, &creating));
    }
    assert_int_equal(strategy->variables->count, 201);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_creates_once),
        cmocka_unit_test(names_in_a_function_are_a_row),
        cmocka_unit_test(a_step_that_fails_creates_nothing),
        cmocka_unit_test(what_was_undone_is_refused),
        cmocka_unit_test(an_initial_value_that_fails_fails_the_step),
        cmocka_unit_test(an_initializer_creates_no_variable),
        cmocka_unit_test(what_is_there_must_be_the_same),
        cmocka_unit_test(replicas_create_the_same),
        cmocka_unit_test(combined_when_read),
        cmocka_unit_test(central_storage_creates_late),
        cmocka_unit_test(strings_are_created_late),
        cmocka_unit_test(metrics_are_created_late),
        cmocka_unit_test(functions_create_metrics),
        cmocka_unit_test(a_creation_between_steps_is_a_step),
        cmocka_unit_test(one_that_fails_between_steps_is_none),
        cmocka_unit_test(equal_names_are_made_unique),
        cmocka_unit_test(merge_calls_create_none),
        cmocka_unit_test(many_are_created),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
