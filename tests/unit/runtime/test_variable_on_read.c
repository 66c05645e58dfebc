/* SPDX-License-Identifier: Apache-2.0
 * Variables that are combined when read, and those of strings: their components, their total, what
 * a failed step leaves, and what is left of them when a replica is lost. */
#include <stdio.h>
#include <string.h>

#include "training.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/arithmetic/numbers.h"

static cadre_variable *counter(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    double value, cadre_aggregation aggregation)
{
    cadre_variable *variable;
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value},
        .synchronization = CADRE_SYNC_ON_READ,
        .aggregation = aggregation};
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 0, NULL, &options, &variable));
    return variable;
}

static float total_of(cadre_variable *variable)
{
    return *(const float *)cadre_variable_read(NULL, variable);
}

struct change {
    cadre_variable *variable;
    cadre_assignment how;
    const double *values; /* by replica; NULL: it leaves the variable alone */
    bool then_fail;
};

static cadre_status change_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct change *change = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_tensor *value;
    if (change->values == NULL) {
        return CADRE_OK;
    }
    if (cadre_variable_dtype(change->variable) == CADRE_I64) {
        CADRE_TRY(cadre_tensor_from_i64((int64_t)change->values[id], &value));
    } else {
        CADRE_TRY(cadre_tensor_from_f32((float)change->values[id], &value));
    }
    cadre_status status = cadre_variable_assign(replica, change->variable, change->how, value);
    cadre_tensor_release(value);
    CADRE_TRY(status);
    return change->then_fail && id == 1 ? cadre_fail(CADRE_CANCELLED, "on purpose") : CADRE_OK;
}

static void run_change(
    cadre_strategy *strategy, cadre_variable *variable, cadre_assignment how, const double *values)
{
    struct change change = {variable, how, values, false};
    assert_public_ok(cadre_run(strategy, change_step, &change, NULL, 0, NULL));
}

static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const float *value = cadre_variable_read(replica, user);
    return cadre_tensor_from_f32(*value, &outputs[0]);
}

static void assert_own(cadre_strategy *strategy, cadre_variable *variable, const float *values)
{
    cadre_per_replica *own;
    assert_public_ok(cadre_run(strategy, read_own, variable, NULL, 1, &own));
    for (uint32_t i = 0; i < cadre_per_replica_count(own); i++) {
        training_assert_f32(cadre_local_results(own, 0)[i], 1, &values[i]);
    }
}

/* Without aggregation each replica has its own, also behind steps that fail or do not touch it; the
 * first one's is what is saved and compared. */
static void without_aggregation_each_has_its_own(void **state)
{
    (void)state;
    cadre_tensor *five = NULL;
    cadre_strategy *strategy = training_strategy(3);
    cadre_variable *v = counter(strategy, "v", CADRE_F32, 1, CADRE_AGGREGATION_NONE);
    assert_int_equal(cadre_variable_kind(v), CADRE_VARIABLE_SYNC_ON_READ);
    assert_own(strategy, v, (const float[]){1, 1, 1});
    run_change(strategy, v, CADRE_ASSIGN, (const double[]){2, 4, 6});
    run_change(strategy, v, CADRE_ASSIGN, NULL);
    assert_own(strategy, v, (const float[]){2, 4, 6});
    assert_true(*(const float *)v->total.value == 2);
    struct change change = {v, CADRE_ASSIGN, (const double[]){7, 8, 9}, true};
    assert_public_error(
        cadre_run(strategy, change_step, &change, NULL, 0, NULL), CADRE_CANCELLED, "on purpose");
    assert_own(strategy, v, (const float[]){2, 4, 6});
    assert_null(cadre_variable_read(NULL, v));
    assert_non_null(strstr(cadre_error_message(), "each replica its own"));
    assert_public_ok(cadre_tensor_from_f32(5, &five));
    assert_public_error(cadre_variable_assign(NULL, v, CADRE_ASSIGN, five), CADRE_INVALID_ARGUMENT,
        "is not assigned as a whole");
    assert_public_error(cadre_variable_assign_literal(NULL, v, CADRE_ASSIGN, 5),
        CADRE_INVALID_ARGUMENT, "is not assigned as a whole");
    assert_public_ok(
        cadre_variable_assign(NULL, v, CADRE_ASSIGN_ADD, five)); /* to each component */
    assert_own(strategy, v, (const float[]){7, 9, 11});
    assert_true(*(const float *)v->total.value == 7);
    cadre_tensor_release(five);
    cadre_strategy_release(strategy);
}

/* A checkpoint holds the first replica's, and all begin with it. */
static void without_aggregation_the_first_is_restored(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *v = counter(strategy, "v", CADRE_F32, 1, CADRE_AGGREGATION_NONE);
    run_change(strategy, v, CADRE_ASSIGN, (const double[]){3, 4});
    assert_memory_equal(v->total.value, v->components[0].value, v->bytes);
    on_read_spread(v);
    assert_own(strategy, v, (const float[]){3, 3});
    run_change(strategy, v, CADRE_ASSIGN, (const double[]){5, 6});
    on_read_reset_components(v);
    assert_own(strategy, v, (const float[]){5, 5});
    cadre_strategy_release(strategy);
}

/* variable/on_read_by_aggregation: what three replicas hold, and what reading makes of it. */
static void reading_combines(void **state)
{
    (void)state;
    static const double values[] = {2, 4, 6};
    static const struct {
        cadre_aggregation aggregation;
        float before; /* of the initial value 1 */
        float after;
    } cases[] = {
        {CADRE_AGGREGATION_SUM, 3, 12},
        {CADRE_AGGREGATION_MEAN, 1, 4},
        {CADRE_AGGREGATION_ONLY_FIRST_REPLICA, 1, 2},
    };
    for (size_t i = 0; i < 3; i++) {
        cadre_strategy *strategy = training_strategy(3);
        cadre_variable *v = counter(strategy, "v", CADRE_F32, 1, cases[i].aggregation);
        assert_true(total_of(v) == cases[i].before);
        run_change(strategy, v, CADRE_ASSIGN, values);
        assert_true(total_of(v) == cases[i].after);
        run_change(strategy, v, CADRE_ASSIGN, NULL); /* a step that does not touch it */
        assert_true(total_of(v) == cases[i].after);
        assert_own(strategy, v, (const float[]){2, 4, 6});
        run_change(strategy, v, CADRE_ASSIGN_ADD, (const double[]){1, 0, 0});
        static const float more[] = {1, 1.0f / 3, 1};
        assert_true(total_of(v) > cases[i].after + more[i] - 1e-5f);
        assert_true(total_of(v) < cases[i].after + more[i] + 1e-5f);
        cadre_strategy_release(strategy);
    }
}

/* variable/on_read_sum_cross_assign, before the first step and after it. */
static void assigning_in_cross_replica_context_sets_the_total(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *sum = counter(strategy, "sum", CADRE_F32, 1, CADRE_AGGREGATION_SUM);
    cadre_variable *mean = counter(strategy, "mean", CADRE_F32, 1, CADRE_AGGREGATION_MEAN);
    cadre_variable *whole = counter(strategy, "whole", CADRE_I64, 0, CADRE_AGGREGATION_SUM);
    cadre_tensor *six;
    cadre_tensor *seven;
    assert_public_ok(cadre_tensor_from_f32(6, &six));
    assert_public_ok(cadre_tensor_from_i64(7, &seven));
    for (int i = 0; i < 2; i++) { /* before the first step, after it */
        uint64_t position = cadre_strategy_position(strategy);
        assert_public_ok(cadre_variable_assign(NULL, sum, CADRE_ASSIGN, six));
        assert_public_ok(cadre_variable_assign(NULL, mean, CADRE_ASSIGN, six));
        assert_public_ok(cadre_variable_assign(NULL, whole, CADRE_ASSIGN, seven));
        assert_int_equal(cadre_strategy_position(strategy), position + (i == 0 ? 0 : 3));
        assert_true(total_of(sum) == 6);
        assert_true(total_of(mean) == 6);
        assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, whole), 7);
        assert_own(strategy, sum, (const float[]){3, 3});
        assert_own(strategy, mean, (const float[]){6, 6});
        run_change(strategy, whole, CADRE_ASSIGN_ADD, (const double[]){10, 20});
        assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, whole), 37);
    }
    assert_public_error(cadre_variable_assign(NULL, sum, CADRE_ASSIGN_ADD, six),
        CADRE_INVALID_ARGUMENT, "nothing can be added");
    assert_public_ok(cadre_variable_assign(NULL, mean, CADRE_ASSIGN_SUB, six));
    assert_true(total_of(mean) == 0);
    cadre_tensor_release(six);
    cadre_tensor_release(seven);
    cadre_strategy_release(strategy);
}

/* The collective of a change before the first step may be made again, when a peer is lost in it. */
static void a_fold_that_is_done_again_counts_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *sum = counter(strategy, "sum", CADRE_F32, 1, CADRE_AGGREGATION_SUM);
    for (uint32_t local = 0; local < 2; local++) {
        void *value;
        assert_ok(variable_open_write(sum, local, &value, &error), &error);
        *(float *)value += 10;
    }
    for (int i = 0; i < 3; i++) {
        assert_ok(on_read_fold_between_steps(sum, &error), &error);
        assert_true(total_of(sum) == 22);
    }
    variables_commit(strategy);
    assert_true(total_of(sum) == 22);
    assert_own(strategy, sum, (const float[]){11, 11});
    cadre_strategy_release(strategy);
}

static cadre_status add_to_other(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)variable;
    (void)inputs;
    (void)ret_output;
    return cadre_variable_assign_literal(NULL, user, CADRE_ASSIGN_ADD, 5);
}

static void an_update_before_the_first_step_may_add_to_other_variables(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *sum = counter(strategy, "sum", CADRE_F32, 0, CADRE_AGGREGATION_SUM);
    cadre_variable *mean = counter(strategy, "mean", CADRE_F32, 1, CADRE_AGGREGATION_MEAN);
    for (float times = 1; times <= 2; times++) {
        assert_public_ok(cadre_variable_update(strategy, mean, add_to_other, sum, NULL, NULL));
        assert_true(total_of(sum) == 10 * times);
        assert_true(total_of(mean) == 1);
    }
    cadre_strategy_release(strategy);
}

static void a_failed_step_adds_nothing(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *sum = counter(strategy, "sum", CADRE_I64, 5, CADRE_AGGREGATION_SUM);
    struct change change = {sum, CADRE_ASSIGN_ADD, (const double[]){1, 2}, true};
    assert_public_error(
        cadre_run(strategy, change_step, &change, NULL, 0, NULL), CADRE_CANCELLED, "on purpose");
    assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, sum), 10);
    change.then_fail = false;
    assert_public_ok(cadre_run(strategy, change_step, &change, NULL, 0, NULL));
    assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, sum), 13);
    cadre_strategy_release(strategy);
}

/* What this task added before it joined, or before its state was another one's, is in the total
 * that it is given: only what it adds from then on is new. */
static void a_total_survives_components(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *sum = counter(strategy, "sum", CADRE_I64, 0, CADRE_AGGREGATION_SUM);
    cadre_variable *mean = counter(strategy, "mean", CADRE_F32, 0, CADRE_AGGREGATION_MEAN);
    run_change(strategy, sum, CADRE_ASSIGN_ADD, (const double[]){100, 200});
    const int64_t others = 1000;
    const float theirs = 8;
    assert_ok(state_receive(strategy, true, true, &error), &error);
    assert_ok(
        state_write(strategy, 0, &theirs, sizeof theirs, &error), &error); /* in order of name */
    assert_ok(state_write(strategy, sizeof theirs, &others, sizeof others, &error), &error);
    state_commit(strategy);
    assert_int_equal(*(const int64_t *)sum->components[1].value, 0);
    assert_true(*(const float *)mean->components[1].value == 8);
    run_change(strategy, sum, CADRE_ASSIGN_ADD, (const double[]){1, 2});
    assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, sum), 1003);
    /* A task of the generation before keeps its components: what it adds is counted from there. */
    assert_ok(state_receive(strategy, true, false, &error), &error);
    assert_ok(state_write(strategy, sizeof theirs, &others, sizeof others, &error), &error);
    state_commit(strategy);
    assert_int_equal(*(const int64_t *)sum->components[1].value, 2);
    run_change(strategy, sum, CADRE_ASSIGN_ADD, (const double[]){1, 2});
    assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, sum), 1003);
    /* After a restart components are what adds up to the total. */
    assert_ok(state_receive(strategy, false, true, &error), &error);
    state_restored();
    state_commit(strategy);
    assert_int_equal(*(const int64_t *)sum->components[0].value, 502);
    assert_int_equal(*(const int64_t *)sum->components[1].value, 501);
    cadre_strategy_release(strategy);
}

/* A step that was interrupted here and applied by others: its end was a collective of all, so what
 * the components wrote in it is part of the total that comes. Nothing of it is lost. */
static void a_step_that_others_applied_is_in_the_components(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *mean = counter(strategy, "mean", CADRE_F32, 0, CADRE_AGGREGATION_MEAN);
    struct change change = {mean, CADRE_ASSIGN_ADD, (const double[]){1, 1}, false};
    assert_public_ok(cadre_run(strategy, change_step, &change, NULL, 0, NULL));
    change.then_fail = true;
    assert_public_error(
        cadre_run(strategy, change_step, &change, NULL, 0, NULL), CADRE_CANCELLED, "on purpose");
    assert_own(strategy, mean, (const float[]){1, 1});
    assert_public_error(
        cadre_run(strategy, change_step, &change, NULL, 0, NULL), CADRE_CANCELLED, "on purpose");
    const float theirs = 2;
    for (int i = 0; i < 2; i++) { /* the first time another task is lost meanwhile */
        assert_ok(state_receive(strategy, true, false, &error), &error);
        assert_ok(state_write(strategy, 0, &theirs, sizeof theirs, &error), &error);
        if (i == 0) {
            state_undo(strategy);
            assert_true(total_of(mean) == 1);
        }
    }
    state_commit(strategy);
    assert_true(total_of(mean) == 2);
    change.then_fail = false;
    assert_public_ok(cadre_run(strategy, change_step, &change, NULL, 0, NULL));
    assert_true(total_of(mean) == 3);
    assert_own(strategy, mean, (const float[]){3, 3});
    cadre_strategy_release(strategy);
}

/* Three replicas create it, one is lost at once: those that had completed the creation, and the one
 * that only receives its result, hold the same total. */
static void a_total_begins_as_it_was_created(void **state)
{
    (void)state;
    uint8_t created[1024];
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(3);
    counter(strategy, "first", CADRE_F32, 0, CADRE_AGGREGATION_SUM);
    assert_false(between_steps_known(
        strategy->regroup->between_steps)); /* a task that is alone keeps nothing */
    assert_int_equal(between_steps_bytes(strategy->regroup->between_steps), 0);
    strategy->roster.member_count = 2;
    cadre_variable *sum = counter(strategy, "sum", CADRE_F32, 1, CADRE_AGGREGATION_SUM);
    strategy->roster.member_count = 1;
    assert_true(total_of(sum) == 3);
    uint64_t bytes = between_steps_bytes(strategy->regroup->between_steps);
    assert_in_range(bytes, 1, sizeof created);
    assert_ok(
        between_steps_read(strategy->regroup->between_steps, 0, created, bytes, &error), &error);
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    counter(strategy, "first", CADRE_F32, 0, CADRE_AGGREGATION_SUM);
    assert_ok(
        between_steps_write(strategy->regroup->between_steps, bytes, 0, created, bytes, &error),
        &error);
    between_steps_replay(strategy->regroup->between_steps);
    sum = counter(strategy, "sum", CADRE_F32, 1, CADRE_AGGREGATION_SUM);
    assert_true(total_of(sum) == 3);
    cadre_strategy_release(strategy);
}

static void shares_of_integers_add_up(void **state)
{
    (void)state;
    static const int64_t values[] = {0, 1, -1, 7, -7, 120, -128, 127};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        for (uint32_t shares = 1; shares < 6; shares++) {
            int64_t sum[4] = {0};
            for (uint32_t index = 0; index < shares; index++) {
                int64_t i64 = values[i];
                int32_t i32 = (int32_t)values[i];
                int16_t i16 = (int16_t)values[i];
                int8_t i8 = (int8_t)values[i];
                numbers_share(&i64, 1, CADRE_I64, shares, index);
                numbers_share(&i32, 1, CADRE_I32, shares, index);
                numbers_share(&i16, 1, CADRE_I16, shares, index);
                numbers_share(&i8, 1, CADRE_I8, shares, index);
                sum[0] += i64;
                sum[1] += i32;
                sum[2] += i16;
                sum[3] += i8;
            }
            for (int k = 0; k < 4; k++) {
                assert_int_equal(sum[k], values[i]);
            }
        }
    }
}

/* --- strings --- */

static void assert_strings(cadre_variable *variable, const char *first, const char *second)
{
    const cadre_string *is = cadre_variable_read(NULL, variable);
    assert_int_equal(is[0].size, strlen(first));
    assert_memory_equal(is[0].bytes, first, strlen(first));
    assert_int_equal(is[1].size, strlen(second));
    assert_memory_equal(is[1].bytes, second, strlen(second));
}

static cadre_status assign_in_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_variable *words = training_find(cadre_replica_strategy(replica), "words");
    return cadre_variable_assign(replica, words, CADRE_ASSIGN, user);
}

static void strings_are_assigned_between_steps(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *words;
    cadre_tensor *values[2];
    const int64_t two = 2;
    const cadre_string first[] = {{"red", 3}, {"", 0}};
    const cadre_string second[] = {{"green", 5}, {"blue", 4}};
    assert_public_ok(cadre_variable_create(strategy, "words", CADRE_STRING, 1, &two, NULL, &words));
    assert_strings(words, "", "");
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &two, first, &values[0]));
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, &two, second, &values[1]));
    assert_public_ok(cadre_variable_assign(NULL, words, CADRE_ASSIGN, values[0]));
    assert_strings(words, "red", "");
    assert_int_equal(cadre_strategy_position(strategy), 0);
    run_change(strategy, words, CADRE_ASSIGN, NULL);
    assert_public_ok(cadre_variable_assign(NULL, words, CADRE_ASSIGN, values[1]));
    assert_strings(words, "green", "blue");
    assert_int_equal(cadre_strategy_position(strategy), 2);
    assert_public_error(cadre_variable_assign(NULL, words, CADRE_ASSIGN_ADD, values[1]),
        CADRE_INVALID_ARGUMENT, "holds strings");
    assert_public_error(cadre_run(strategy, assign_in_step, values[0], NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "between steps only");
    assert_strings(words, "green", "blue");
    cadre_tensor_release(values[0]);
    cadre_tensor_release(values[1]);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_aggregation_each_has_its_own),
        cmocka_unit_test(without_aggregation_the_first_is_restored),
        cmocka_unit_test(reading_combines),
        cmocka_unit_test(assigning_in_cross_replica_context_sets_the_total),
        cmocka_unit_test(a_fold_that_is_done_again_counts_once),
        cmocka_unit_test(an_update_before_the_first_step_may_add_to_other_variables),
        cmocka_unit_test(a_failed_step_adds_nothing),
        cmocka_unit_test(a_total_survives_components),
        cmocka_unit_test(a_step_that_others_applied_is_in_the_components),
        cmocka_unit_test(a_total_begins_as_it_was_created),
        cmocka_unit_test(shares_of_integers_add_up),
        cmocka_unit_test(strings_are_assigned_between_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
