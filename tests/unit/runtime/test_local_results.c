/* SPDX-License-Identifier: Apache-2.0
 * Local results of variables and of single values: all components of this task at once. */
#include <stdlib.h>
#include <string.h>

#include "training.h"

static cadre_variable *made(
    cadre_strategy *strategy, const char *name, cadre_synchronization synchronization)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 1},
        .synchronization = synchronization,
        .aggregation =
            synchronization == CADRE_SYNC_ON_READ ? CADRE_AGGREGATION_SUM : CADRE_AGGREGATION_NONE};
    cadre_variable *variable;
    const int64_t dims[1] = {2};
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 1, dims, &options, &variable));
    return variable;
}

/* Both elements of component i are `first` + i * `step`. */
static void assert_results(const cadre_variable *variable, uint32_t count, float first, float step)
{
    cadre_per_replica *results;
    assert_public_ok(cadre_variable_local_results(variable, &results));
    assert_int_equal(cadre_per_replica_count(results), count);
    assert_int_equal(cadre_per_replica_components(results), 1);
    for (uint32_t i = 0; i < count; i++) {
        const float wanted = first + (float)i * step;
        training_assert_f32(cadre_local_results(results, 0)[i], 2, (const float[]){wanted, wanted});
    }
    cadre_per_replica_release(results);
}

struct model {
    cadre_variable *mirrored;
    cadre_variable *counted;
    cadre_variable *regular;
};

static cadre_status merged(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)strategy;
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    assert_results(model->mirrored, 2, 3, 1);
    return CADRE_OK;
}

/* Adds 1 + its id, and looks at all of it in a merge call. */
static cadre_status add_ids(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct model *model = user;
    double more = 1 + (double)cadre_replica_id(replica);
    CADRE_TRY(cadre_variable_assign_literal(replica, model->mirrored, CADRE_ASSIGN_ADD, more));
    CADRE_TRY(cadre_variable_assign_literal(replica, model->counted, CADRE_ASSIGN_ADD, 2 * more));
    return cadre_merge_call(replica, merged, user, NULL, 0, 0, NULL);
}

/* Before the first step, in one, and after it; what was given once stays what it was. */
static void all_components_are_given_at_once(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct model model = {.mirrored = made(strategy, "m", CADRE_SYNC_AUTO),
        .counted = made(strategy, "c", CADRE_SYNC_ON_READ),
        .regular = made(NULL, "r", CADRE_SYNC_AUTO)};
    cadre_per_replica *old;
    assert_results(model.mirrored, 2, 1, 0);
    assert_public_ok(cadre_variable_assign_literal(NULL, model.mirrored, CADRE_ASSIGN, 2));
    assert_results(model.mirrored, 2, 2, 0);
    assert_public_ok(cadre_variable_local_results(model.mirrored, &old));
    assert_public_ok(cadre_run(strategy, add_ids, &model, NULL, 0, NULL));
    assert_results(model.mirrored, 2, 3, 1);
    assert_results(model.counted, 2, 3, 2);
    assert_results(model.regular, 1, 1, 0);
    assert_public_ok(cadre_variable_assign_literal(NULL, model.mirrored, CADRE_ASSIGN, 5));
    assert_results(model.mirrored, 2, 5, 0); /* between steps */
    training_assert_f32(cadre_local_results(old, 0)[1], 2, (const float[]){2, 2});
    cadre_strategy_release(strategy);
    training_assert_f32(cadre_local_results(old, 0)[0], 2, (const float[]){2, 2});
    cadre_per_replica_release(old);
    cadre_variable_release(model.regular);
}

static void components_are_on_their_replicas_devices(void **state)
{
    (void)state;
    cadre_strategy_release(training_strategy(1)); /* initialises */
    cadre_strategy *strategy;
    cadre_per_replica *results;
    assert_public_ok(
        cadre_strategy_mirrored_devices((const char *const[]){"CPU:2", "CPU:1"}, 2, &strategy));
    cadre_variable *variable = made(strategy, "v", CADRE_SYNC_AUTO);
    assert_public_ok(cadre_variable_local_results(variable, &results));
    for (uint32_t i = 0; i < 2; i++) {
        assert_string_equal(cadre_tensor_device(cadre_local_results(results, 0)[i]),
            cadre_variable_device(variable, i));
    }
    cadre_per_replica_release(results);
    cadre_strategy_release(strategy);
}

static void one_component_is_one_result(void **state)
{
    (void)state;
    cadre_strategy_release(training_strategy(1)); /* initialises */
    cadre_strategy *strategy;
    cadre_variable *text;
    cadre_per_replica *old;
    cadre_per_replica *results;
    cadre_tensor *word;
    const cadre_string hello = {.bytes = "hello", .size = 5};
    assert_public_ok(cadre_strategy_central_storage(
        (const char *const[]){"CPU:0", "CPU:1"}, 2, NULL, &strategy));
    assert_results(made(strategy, "v", CADRE_SYNC_AUTO), 1, 1, 0);
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    assert_public_ok(cadre_variable_create(strategy, "t", CADRE_STRING, 0, NULL, NULL, &text));
    assert_public_ok(cadre_variable_local_results(text, &old));
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &hello, &word));
    assert_public_ok(cadre_variable_assign(NULL, text, CADRE_ASSIGN, word));
    assert_public_ok(cadre_variable_local_results(text, &results));
    assert_int_equal(cadre_per_replica_count(results), 1);
    const cadre_string *is = cadre_tensor_const_data(cadre_local_results(results, 0)[0]);
    assert_int_equal(is->size, 5);
    assert_memory_equal(is->bytes, "hello", 5);
    is = cadre_tensor_const_data(cadre_local_results(old, 0)[0]);
    assert_int_equal(is->size, 0);
    cadre_per_replica_release(results);
    cadre_per_replica_release(old);
    cadre_tensor_release(word);
    cadre_strategy_release(strategy);
}

/* --- what is refused --- */

static cadre_status results_in_a_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    cadre_per_replica *results;
    struct model *model = user;
    CADRE_TRY(cadre_variable_local_results(model->regular, &results));
    cadre_per_replica_release(results);
    return cadre_variable_local_results(model->mirrored, &results);
}

static cadre_status results_in_an_update(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)inputs;
    (void)ret_output;
    (void)user;
    cadre_per_replica *results;
    return cadre_variable_local_results(variable, &results);
}

static void results_are_refused_where_others_write(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct model model = {.mirrored = made(strategy, "m", CADRE_SYNC_AUTO),
        .regular = made(NULL, "r", CADRE_SYNC_AUTO)};
    cadre_per_replica *results;
    const cadre_status early = CADRE_FAILED_PRECONDITION;
    assert_public_error(cadre_run(strategy, results_in_a_replica, &model, NULL, 0, NULL), early,
        "cadre_variable_local_results");
    assert_public_error(
        cadre_variable_update(strategy, model.mirrored, results_in_an_update, NULL, NULL, NULL),
        early, "use cadre_variable_read there");
    assert_public_error(
        cadre_variable_local_results(NULL, &results), CADRE_INVALID_ARGUMENT, "'variable'");
    assert_null(results);
    assert_public_error(
        cadre_variable_local_results(model.mirrored, NULL), CADRE_INVALID_ARGUMENT, "'ret_values'");
    cadre_variable_release(model.regular);
    cadre_strategy_release(strategy);
    assert_public_error(cadre_variable_local_results(model.mirrored, &results), early, "has ended");
}

/* --- single values --- */

static void a_single_value_is_its_only_result(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensor = training_f32(1, (const float[]){3});
    cadre_per_replica *value;
    cadre_tensor *sum;
    assert_public_ok(cadre_values_from_tensors(strategy, &tensor, 1, &value));
    assert_int_equal(cadre_per_replica_count(value), 1);
    assert_ptr_equal(cadre_local_results(value, 0)[0], tensor);
    assert_true(cadre_per_replica_is_plain(value, 0));
    assert_public_error(cadre_run(strategy, training_nothing, NULL, value, 0, NULL),
        CADRE_INVALID_ARGUMENT, "1 replica");
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, value, CADRE_AXIS_NONE, &sum),
        CADRE_INVALID_ARGUMENT, "this task has 2 replicas");
    cadre_per_replica_release(value);
    cadre_tensor_release(tensor);
    cadre_strategy_release(strategy);
}

int main(void)
{
    setenv("CADRE_VERIFY_STATE", "off", 1); /* components are meant to differ here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_components_are_given_at_once),
        cmocka_unit_test(components_are_on_their_replicas_devices),
        cmocka_unit_test(one_component_is_one_result),
        cmocka_unit_test(results_are_refused_where_others_write),
        cmocka_unit_test(a_single_value_is_its_only_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
