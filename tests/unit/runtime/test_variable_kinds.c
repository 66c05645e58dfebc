/* SPDX-License-Identifier: Apache-2.0
 * What a variable is: its kind, components, names and devices; regular ones; caching scopes; and
 * what each kind refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "training.h"

static cadre_variable *scalar(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    cadre_synchronization synchronization, cadre_aggregation aggregation)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1},
        .synchronization = synchronization,
        .aggregation = aggregation};
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 0, NULL, &options, &variable));
    return variable;
}

static cadre_variable *plain(cadre_strategy *strategy, const char *name)
{
    return scalar(strategy, name, CADRE_F32, CADRE_SYNC_AUTO, CADRE_AGGREGATION_NONE);
}

static cadre_strategy *central(size_t count)
{
    static const char *const devices[] = {"CPU:0", "CPU:1", "CPU:2", "CPU:3"};
    cadre_strategy_release(training_strategy(1)); /* initialises */
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_central_storage(devices, count, "CPU:0", &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

static float value_of(const cadre_variable *variable)
{
    return *(const float *)cadre_variable_read(NULL, variable);
}

static void assert_component_name(
    const cadre_variable *variable, uint32_t component, const char *wanted)
{
    char name[128] = "?";
    assert_int_equal(
        cadre_variable_component_name(variable, component, name, sizeof name), strlen(wanted));
    assert_string_equal(name, wanted);
}

/* --- kinds --- */

/* variable/seed_mirrored_in_scope, seed_created_in_traced_function, seed_regular_outside_scope. */
static void the_scope_decides_the_kind(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(cadre_scope_enter(strategy));
    cadre_variable *inside = plain(NULL, "Variable");
    assert_public_ok(cadre_scope_leave(strategy));
    cadre_variable *outside = plain(NULL, "Variable");
    assert_int_equal(cadre_variable_kind(inside), CADRE_VARIABLE_MIRRORED);
    assert_int_equal(cadre_variable_components(inside), 2);
    assert_component_name(inside, 0, "Variable");
    assert_component_name(inside, 1, "Variable/replica_1");
    assert_component_name(inside, 2, "");
    assert_ptr_equal(training_find(strategy, "Variable"), inside);
    assert_int_equal(cadre_variable_kind(outside), CADRE_VARIABLE_REGULAR);
    assert_int_equal(cadre_variable_components(outside), 1);
    assert_component_name(outside, 0, "Variable");
    assert_true(value_of(inside) == 1);
    assert_true(value_of(outside) == 1);
    cadre_variable *read =
        scalar(strategy, "r", CADRE_F32, CADRE_SYNC_ON_READ, CADRE_AGGREGATION_SUM);
    assert_int_equal(cadre_variable_kind(read), CADRE_VARIABLE_SYNC_ON_READ);
    assert_true(cadre_variable_created_in_scope(strategy, inside));
    assert_true(cadre_variable_created_in_scope(strategy, read));
    assert_false(cadre_variable_created_in_scope(cadre_strategy_current(), inside));
    assert_false(cadre_variable_created_in_scope(strategy, outside));
    assert_true(cadre_variable_created_in_scope(cadre_strategy_current(), outside));
    assert_false(cadre_variable_created_in_scope(cadre_strategy_current(), NULL));
    assert_false(cadre_variable_created_in_scope(NULL, outside));
    assert_int_equal(cadre_variable_kind(NULL), CADRE_VARIABLE_REGULAR);
    assert_int_equal(cadre_variable_components(NULL), 0);
    assert_component_name(NULL, 0, "");
    cadre_variable_release(inside); /* the strategy's: nothing */
    assert_true(value_of(inside) == 1);
    cadre_variable_release(outside);
    cadre_strategy_release(strategy);
}

static void central_storage_has_one_component(void **state)
{
    (void)state;
    cadre_strategy *strategy = central(3);
    static const cadre_synchronization asked[] = {CADRE_SYNC_AUTO, CADRE_SYNC_ON_READ};
    for (int i = 0; i < 2; i++) {
        cadre_variable *variable =
            scalar(strategy, i == 0 ? "a" : "b", CADRE_F32, asked[i], CADRE_AGGREGATION_SUM);
        assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_AGGREGATING);
        assert_int_equal(cadre_variable_components(variable), 1);
        assert_component_name(variable, 0, i == 0 ? "a" : "b");
        assert_non_null(strstr(cadre_variable_device(variable, 0), "CPU:0"));
        assert_null(cadre_variable_device(variable, 1));
        assert_true(value_of(variable) == 1); /* also where n times the value could be meant */
    }
    cadre_strategy_release(strategy);
}

static cadre_status write_shared(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_write(replica, user) == NULL ? CADRE_OK : CADRE_INTERNAL;
}

static void a_shared_component_is_not_written_by_pointer(void **state)
{
    (void)state;
    cadre_strategy *strategy = central(2);
    cadre_variable *variable = plain(strategy, "v");
    assert_public_error(cadre_run(strategy, write_shared, variable, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "replicas share");
    assert_true(value_of(variable) == 1);
    cadre_strategy_release(strategy);
}

/* --- regular ones --- */

static cadre_status add_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    for (int i = 0; i < 100; i++) {
        CADRE_TRY(cadre_variable_assign_literal(replica, user, CADRE_ASSIGN_ADD, 1));
    }
    return CADRE_OK;
}

static void regular_variables_are_plain_memory(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(4);
    cadre_variable *first = plain(NULL, "v");
    cadre_variable *second = plain(NULL, "v"); /* names need not be unique */
    cadre_tensor *five;
    assert_public_ok(cadre_tensor_from_f32(5, &five));
    assert_public_ok(cadre_variable_assign(NULL, first, CADRE_ASSIGN, five));
    assert_public_ok(cadre_variable_assign(NULL, first, CADRE_ASSIGN_SUB, five));
    assert_public_ok(cadre_variable_assign_literal(NULL, first, CADRE_ASSIGN_ADD, 2.5));
    assert_true(value_of(first) == 2.5f);
    assert_true(value_of(second) == 1);
    assert_int_equal(cadre_strategy_position(strategy), 0);
    assert_null(training_find(strategy, "v"));
    assert_public_ok(cadre_run(strategy, add_one, second, NULL, 0, NULL));
    assert_true(value_of(second) == 401); /* each replica that calls it */
    *(float *)cadre_variable_write(NULL, second) = 7;
    assert_true(value_of(second) == 7);
    assert_public_error(cadre_variable_update(strategy, first, NULL, NULL, NULL, NULL),
        CADRE_INVALID_ARGUMENT, "'function'");
    cadre_strategy_release(strategy);
    assert_public_ok(
        cadre_variable_assign(NULL, second, CADRE_ASSIGN, five)); /* it outlives strategies */
    assert_true(value_of(second) == 5);
    assert_non_null(strstr(cadre_variable_device(first, 0), "CPU:0"));
    cadre_variable_release(first);
    cadre_variable_release(second);
    assert_public_error(cadre_variable_assign(NULL, second, CADRE_ASSIGN, five),
        CADRE_FAILED_PRECONDITION, "it was released");
    cadre_variable_release(second); /* again: nothing */
    cadre_variable_release(NULL);
    cadre_tensor_release(five);
}

static void regular_strings_are_assigned_at_once(void **state)
{
    (void)state;
    cadre_variable *words;
    cadre_tensor *value;
    const cadre_string text = {"seven", 5};
    assert_public_ok(cadre_variable_create(NULL, "words", CADRE_STRING, 0, NULL, NULL, &words));
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &text, &value));
    assert_public_ok(cadre_variable_assign(NULL, words, CADRE_ASSIGN, value));
    const cadre_string *is = cadre_variable_read(NULL, words);
    assert_int_equal(is->size, 5);
    assert_memory_equal(is->bytes, "seven", 5);
    assert_public_error(cadre_variable_assign_literal(NULL, words, CADRE_ASSIGN, 1),
        CADRE_INVALID_ARGUMENT, "string");
    cadre_tensor_release(value);
    cadre_variable_release(words);
}

static void a_variable_that_has_ended_is_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *variable = plain(strategy, "v");
    cadre_strategy_release(strategy);
    assert_public_error(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 1),
        CADRE_FAILED_PRECONDITION, "has ended");
    strategy = training_strategy(1);
    const cadre_variable_options options = {.colocate_with = variable};
    cadre_variable *other;
    assert_public_error(cadre_variable_create(strategy, "w", CADRE_F32, 0, NULL, &options, &other),
        CADRE_FAILED_PRECONDITION, "one whose strategy has ended");
    cadre_strategy_release(strategy);
    cadre_variable_release(variable);
}

/* --- types and numbers --- */

static void numbers_must_be_exact(void **state)
{
    (void)state;
    static const struct {
        cadre_dtype dtype;
        double good;
        double bad;
    } cases[] = {
        {CADRE_I64, -9007199254740992.0, 0.5},
        {CADRE_I64, -0x1p63, 0x1p63},
        {CADRE_I32, 2147483647, 2147483648.0},
        {CADRE_I16, -32768, -32769},
        {CADRE_I8, 127, 128},
        {CADRE_U32, 4294967295.0, 4294967296.0},
        {CADRE_U16, 65535, -1},
        {CADRE_U8, 255, -1},
        {CADRE_BOOL, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_variable *variable;
        const int64_t two = 2;
        assert_public_ok(
            cadre_variable_create(NULL, "v", cases[i].dtype, 1, &two, NULL, &variable));
        assert_public_ok(
            cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, cases[i].good));
        assert_public_error(
            cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, cases[i].bad),
            CADRE_INVALID_ARGUMENT, "exactly");
        size_t bytes = cadre_dtype_bytes(cases[i].dtype);
        const char *is = cadre_variable_read(NULL, variable); /* all elements */
        assert_memory_equal(is, is + bytes, bytes);
        cadre_variable_release(variable);
    }
    cadre_variable *third = plain(NULL, "third");
    assert_public_ok(
        cadre_variable_assign_literal(NULL, third, CADRE_ASSIGN, 1.0 / 3)); /* is rounded */
    assert_true(value_of(third) == 1.0f / 3);
    cadre_variable_release(third);
}

static void types_that_cannot_be_added_to_are_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *truth =
        scalar(strategy, "truth", CADRE_BOOL, CADRE_SYNC_AUTO, CADRE_AGGREGATION_NONE);
    assert_public_error(cadre_variable_assign_literal(NULL, truth, CADRE_ASSIGN_ADD, 1),
        CADRE_INVALID_ARGUMENT, "truth values");
    assert_public_ok(cadre_variable_assign_literal(NULL, truth, CADRE_ASSIGN, 0));
    assert_public_error(cadre_variable_assign_values(truth, (enum cadre_assignment)7, NULL),
        CADRE_INVALID_ARGUMENT, "'values'");
    cadre_strategy_release(strategy);
}

static cadre_status different_number(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_assign_literal(replica, user, CADRE_ASSIGN, cadre_replica_id(replica));
}

static void numbers_are_the_same_on_all_replicas(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_variable *mean =
        scalar(strategy, "mean", CADRE_F32, CADRE_SYNC_AUTO, CADRE_AGGREGATION_MEAN);
    assert_public_error(cadre_run(strategy, different_number, mean, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "disagree");
    assert_true(value_of(mean) == 1);
    cadre_strategy_release(strategy);
}

/* --- values and updates --- */

static cadre_status two_of_them(
    const cadre_value_context *context, cadre_element *value, void *user)
{
    (void)user;
    value->count = 2;
    for (uint32_t i = 0; i < 2; i++) {
        CADRE_TRY(
            cadre_tensor_from_f32((float)context->replica_id_in_sync_group, &value->tensors[i]));
    }
    return CADRE_OK;
}

static cadre_status fails(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)inputs;
    (void)ret_output;
    (void)user;
    *(float *)cadre_variable_write(NULL, variable) = 99;
    return cadre_fail(CADRE_DATA_LOSS, "on purpose");
}

static cadre_status leaves_no_output(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)variable;
    (void)inputs;
    (void)ret_output;
    (void)user;
    return CADRE_OK;
}

static cadre_status update_in_a_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_variable_update(
        cadre_replica_strategy(replica), user, leaves_no_output, NULL, NULL, NULL);
}

static void updates_are_checked(void **state)
{
    (void)state;
    for (int later = 0; later < 2; later++) {
        cadre_strategy *strategy = training_strategy(2);
        cadre_variable *variable = plain(strategy, "v");
        cadre_variable *other = plain(NULL, "other");
        cadre_per_replica *pairs;
        cadre_per_replica *outputs;
        assert_public_ok(cadre_values_from_function(strategy, two_of_them, NULL, &pairs));
        if (later == 1) {
            assert_public_ok(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 1));
            cadre_tensor *ones[2];
            assert_public_ok(cadre_tensor_from_f32(1, &ones[0]));
            assert_public_ok(cadre_tensor_from_f32(1, &ones[1]));
            training_values(strategy, ones); /* a step */
        }
        assert_public_error(cadre_variable_assign_values(variable, CADRE_ASSIGN, pairs),
            CADRE_INVALID_ARGUMENT, "2 tensors for each of 2 replicas");
        assert_public_error(cadre_variable_update(strategy, variable, fails, NULL, NULL, NULL),
            CADRE_DATA_LOSS, "on purpose");
        assert_true(value_of(variable) == 1);
        assert_public_error(
            cadre_variable_update(strategy, variable, leaves_no_output, NULL, NULL, &outputs),
            CADRE_INVALID_ARGUMENT, "no output");
        assert_null(outputs);
        assert_public_error(
            cadre_variable_update(strategy, other, leaves_no_output, NULL, NULL, NULL),
            CADRE_INVALID_ARGUMENT, "outside of any strategy");
        assert_public_error(cadre_run(strategy, update_in_a_replica, variable, NULL, 0, NULL),
            CADRE_FAILED_PRECONDITION, "cadre_merge_call");
        cadre_per_replica_release(pairs);
        cadre_variable_release(other);
        cadre_strategy_release(strategy);
    }
}

/* An optimizer's slot is updated with its variable, each component with its own. */
static cadre_status momentum(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)ret_output;
    cadre_variable *slot = user;
    CADRE_TRY(cadre_variable_assign(NULL, slot, CADRE_ASSIGN_ADD, inputs[0]));
    float *weight = cadre_variable_write(NULL, variable);
    *weight -= *(const float *)cadre_variable_read(NULL, slot);
    return CADRE_OK;
}

static cadre_status read_both(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_variable *const *variables = user;
    float id = (float)cadre_replica_id(replica);
    const float *weight = cadre_variable_read(replica, variables[0]);
    const float *slot = cadre_variable_read(replica, variables[1]);
    return *slot == 1 + id && *weight == -id
               ? CADRE_OK
               : cadre_fail(CADRE_INTERNAL, "%g and %g", (double)*weight, (double)*slot);
}

static void an_update_writes_other_variables_too(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_variable *variables[] = {plain(strategy, "weight"), plain(strategy, "slot")};
    cadre_per_replica *values;
    assert_public_ok(cadre_values_from_function(strategy, two_of_them, NULL, &values));
    assert_public_ok(
        cadre_variable_update(strategy, variables[0], momentum, variables[1], values, NULL));
    assert_public_ok(cadre_run(strategy, read_both, variables, NULL, 0, NULL));
    cadre_per_replica_release(values);
    cadre_strategy_release(strategy);
}

/* --- colocation --- */

static void variables_are_colocated(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *first = plain(strategy, "first");
    cadre_variable *regular = plain(NULL, "regular");
    cadre_variable *other = NULL;
    cadre_variable_options options = {.colocate_with = first};
    assert_public_ok(
        cadre_variable_create(strategy, "second", CADRE_F32, 0, NULL, &options, &other));
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(cadre_variable_device(other, i), cadre_variable_device(first, i));
    }
    assert_string_not_equal(cadre_variable_device(first, 0), cadre_variable_device(first, 1));
    options.colocate_with = regular;
    assert_public_error(
        cadre_variable_create(strategy, "third", CADRE_F32, 0, NULL, &options, &other),
        CADRE_INVALID_ARGUMENT, "'regular', which is of another strategy");
    cadre_variable_release(regular);
    cadre_strategy_release(strategy);
}

/* --- caching scopes --- */

static cadre_status add_three(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    const float *before = cadre_variable_read(replica, user);
    float first = *before;
    cadre_tensor *three;
    CADRE_TRY(cadre_tensor_from_f32(3, &three));
    cadre_status status = cadre_variable_assign(replica, user, CADRE_ASSIGN_ADD, three);
    cadre_tensor_release(three);
    CADRE_TRY(status);
    const float *after = cadre_variable_read(replica, user);
    return cadre_tensor_from_f32(*after - first, &outputs[0]);
}

static float grown(cadre_strategy *strategy, cadre_variable *variable)
{
    cadre_per_replica *outputs;
    assert_public_ok(cadre_run(strategy, add_three, variable, NULL, 1, &outputs));
    const float *own = cadre_tensor_const_data(cadre_local_results(outputs, 0)[1]);
    return *own;
}

static void reads_in_a_caching_scope_give_the_first(void **state)
{
    (void)state;
    cadre_strategy *strategy = central(2);
    cadre_variable *variable =
        scalar(strategy, "v", CADRE_F32, CADRE_SYNC_AUTO, CADRE_AGGREGATION_MEAN);
    assert_true(grown(strategy, variable) == 3); /* 1 -> 4 */
    assert_public_ok(cadre_caching_scope_enter());
    assert_true(value_of(variable) == 4);
    assert_public_ok(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 10));
    assert_true(value_of(variable) == 4);
    assert_true(grown(strategy, variable) == 0); /* 10 -> 13, which is not read */
    assert_public_error(cadre_caching_scope_enter(), CADRE_INVALID_ARGUMENT, "do not nest");
    assert_public_ok(cadre_caching_scope_leave());
    assert_true(value_of(variable) == 13);
    assert_public_error(
        cadre_caching_scope_leave(), CADRE_FAILED_PRECONDITION, "outside of a caching scope");
    cadre_strategy_release(strategy);
}

static cadre_status enter_and_fail(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    CADRE_TRY(add_three(replica, inputs, outputs, user));
    return cadre_fail(CADRE_CANCELLED, "on purpose");
}

static void what_an_undone_step_read_is_forgotten(void **state)
{
    (void)state;
    cadre_strategy *strategy = central(2);
    cadre_variable *variable =
        scalar(strategy, "v", CADRE_F32, CADRE_SYNC_AUTO, CADRE_AGGREGATION_MEAN);
    assert_public_ok(cadre_caching_scope_enter());
    assert_public_error(
        cadre_run(strategy, enter_and_fail, variable, NULL, 1, (cadre_per_replica *[]){NULL}),
        CADRE_CANCELLED, "on purpose");
    assert_true(value_of(variable) == 1);
    assert_public_ok(cadre_caching_scope_leave());
    cadre_strategy_release(strategy);
}

static cadre_status cache_in_a_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    CADRE_TRY(cadre_caching_scope_enter());
    if (cadre_caching_scope_enter() != CADRE_INVALID_ARGUMENT) {
        return cadre_fail(CADRE_INTERNAL, "they nest");
    }
    CADRE_TRY(add_three(replica, inputs, outputs, user));
    return *(const float *)cadre_tensor_const_data(outputs[0]) == 0
               ? CADRE_OK /* it ends with the function */
               : cadre_fail(CADRE_INTERNAL, "it grew");
}

static void a_replica_has_a_caching_scope_of_its_own(void **state)
{
    (void)state;
    cadre_strategy *strategy = central(2);
    cadre_variable *variable =
        scalar(strategy, "v", CADRE_F32, CADRE_SYNC_AUTO, CADRE_AGGREGATION_MEAN);
    cadre_per_replica *outputs;
    for (int i = 0; i < 2; i++) {
        assert_public_ok(cadre_run(strategy, cache_in_a_replica, variable, NULL, 1, &outputs));
        assert_true(value_of(variable) == (float)(4 + 3 * i));
    }
    assert_true(grown(strategy, variable) == 3);
    cadre_strategy_release(strategy);
}

/* --- memory --- */

static void creation_without_memory_is_an_error(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const cadre_variable_options options = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    cadre_variable *variable = NULL;
    uint64_t nth = 1;
    for (;; nth++) {
        fault_arm("tensor.memory", nth);
        cadre_status status =
            cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, &options, &variable);
        fault_disarm();
        if (status == CADRE_OK) {
            break;
        }
        assert_public_error(status, CADRE_RESOURCE_EXHAUSTED, "");
        assert_null(variable);
        assert_null(training_find(strategy, "v"));
    }
    assert_true(nth > 5); /* two components, what they add, the total */
    assert_ptr_equal(training_find(strategy, "v"), variable);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scope_decides_the_kind),
        cmocka_unit_test(central_storage_has_one_component),
        cmocka_unit_test(a_shared_component_is_not_written_by_pointer),
        cmocka_unit_test(regular_variables_are_plain_memory),
        cmocka_unit_test(regular_strings_are_assigned_at_once),
        cmocka_unit_test(a_variable_that_has_ended_is_reported),
        cmocka_unit_test(numbers_must_be_exact),
        cmocka_unit_test(types_that_cannot_be_added_to_are_named),
        cmocka_unit_test(numbers_are_the_same_on_all_replicas),
        cmocka_unit_test(updates_are_checked),
        cmocka_unit_test(an_update_writes_other_variables_too),
        cmocka_unit_test(variables_are_colocated),
        cmocka_unit_test(reads_in_a_caching_scope_give_the_first),
        cmocka_unit_test(what_an_undone_step_read_is_forgotten),
        cmocka_unit_test(a_replica_has_a_caching_scope_of_its_own),
        cmocka_unit_test(creation_without_memory_is_an_error),
    };
    setenv("CADRE_VERIFY_STATE", "off", 1); /* components are meant to differ here */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
