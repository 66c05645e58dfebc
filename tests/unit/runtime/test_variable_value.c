/* SPDX-License-Identifier: Apache-2.0
 * Values of variables as tensors: of each kind in this process, the whole, rows and slices. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "training.h"
#include "worker/library/runtime/strategy/strategy.h"

#define N CADRE_SLICE_DEFAULT

static cadre_status count_up(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)dtype;
    (void)user;
    for (int64_t i = 0; i < count; i++) {
        ((float *)values)[i] = (float)i;
    }
    return CADRE_OK;
}

/* [4, 2]: 0 1 | 2 3 | 4 5 | 6 7. */
static cadre_variable *counted(cadre_strategy *strategy, const char *name,
    cadre_synchronization synchronization, cadre_aggregation aggregation)
{
    static const int64_t dims[] = {4, 2};
    const cadre_variable_options options = {.synchronization = synchronization,
        .aggregation = aggregation,
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = count_up}};
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 2, dims, &options, &variable));
    return variable;
}

static void check(cadre_tensor *tensor, size_t count, const float *wanted)
{
    const float *is = cadre_tensor_const_data(tensor);
    assert_int_equal(cadre_tensor_count(tensor), count);
    for (size_t i = 0; i < count; i++) {
        assert_true(is[i] >= wanted[i] && is[i] <= wanted[i]);
    }
    cadre_tensor_release(tensor);
}

static void check_all(cadre_replica *replica, cadre_variable *variable, float factor)
{
    const float all[] = {
        0, factor, 2 * factor, 3 * factor, 4 * factor, 5 * factor, 6 * factor, 7 * factor};
    const float some[] = {6 * factor, 7 * factor, 0, factor};
    const float last[] = {6 * factor, 7 * factor};
    cadre_tensor *ids = training_i32(2, (const int32_t[]){3, 0});
    cadre_tensor *value;
    assert_public_ok(cadre_variable_value(replica, variable, NULL, &value));
    check(value, 8, all);
    assert_public_ok(cadre_variable_gather(replica, variable, ids, NULL, &value));
    check(value, 4, some);
    assert_public_ok(cadre_variable_slice(replica, variable, N, N, -3, &value));
    check(value, 4, some);
    assert_public_ok(cadre_variable_slice(replica, variable, 1, 3, N, &value));
    check(value, 4, all + 2);
    assert_public_ok(cadre_variable_slice(replica, variable, 3, 3, 1, &value));
    assert_int_equal(cadre_tensor_dim(value, 0), 0);
    cadre_tensor_release(value);
    assert_public_ok(cadre_variable_slice(replica, variable, -1, CADRE_SLICE_ROW, 1, &value));
    assert_int_equal(cadre_tensor_rank(value), 1);
    check(value, 2, last);
    cadre_tensor_release(ids);
}

static void all_kinds_are_read_alike(void **state)
{
    (void)state;
    const char *const devices[] = {"CPU:0", "CPU:1"};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *regular = counted(NULL, "regular", 0, 0);
    check_all(NULL, counted(strategy, "mirrored", 0, 0), 1);
    check_all(NULL, counted(strategy, "mean", CADRE_SYNC_ON_READ, CADRE_AGGREGATION_MEAN), 1);
    check_all(NULL, counted(strategy, "sum", CADRE_SYNC_ON_READ, CADRE_AGGREGATION_SUM), 2);
    cadre_strategy_release(strategy);
    check_all(NULL, regular, 1);
    cadre_variable_release(regular);
    assert_public_ok(cadre_strategy_central_storage(devices, 2, NULL, &strategy));
    check_all(NULL, counted(strategy, "central", 0, 0), 1);
    cadre_strategy_release(strategy);
}

/* Each replica sees its own component, also of one that it has just written. */
static cadre_status read_own(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_variable *const *variables = user;
    float id = (float)cadre_replica_id(replica);
    (void)inputs;
    (void)outputs;
    check_all(replica, variables[0], 1);
    CADRE_TRY(cadre_variable_assign_literal(replica, variables[1], CADRE_ASSIGN, (double)id));
    cadre_tensor *value;
    CADRE_TRY(cadre_variable_value(NULL, variables[1], NULL, &value));
    assert_true(((const float *)cadre_tensor_const_data(value))[7] >= id &&
                ((const float *)cadre_tensor_const_data(value))[7] <= id);
    cadre_tensor_release(value);
    return CADRE_OK;
}

static void replicas_read_their_own(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_variable *variables[] = {counted(strategy, "v", 0, 0),
        counted(strategy, "own", CADRE_SYNC_ON_READ, CADRE_AGGREGATION_SUM)};
    cadre_tensor *value;
    assert_public_ok(cadre_run(strategy, read_own, variables, NULL, 0, NULL));
    assert_public_ok(cadre_variable_value(NULL, variables[1], NULL, &value));
    check(value, 8, (const float[]){3, 3, 3, 3, 3, 3, 3, 3});
    cadre_strategy_release(strategy);
}

/* Without a copy, but into the program's own memory. */
static void a_value_is_the_variables_memory(void **state)
{
    (void)state;
    const int64_t dims[] = {4, 2};
    float memory[8] = {0};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = counted(strategy, "v", 0, 0);
    cadre_read_options options = {0};
    cadre_tensor *value;
    assert_public_ok(cadre_variable_value(NULL, variable, NULL, &value));
    assert_ptr_equal(cadre_tensor_const_data(value), cadre_variable_read(NULL, variable));
    assert_public_ok(cadre_tensor_over(CADRE_F32, 2, dims, memory, NULL, NULL, &options.into));
    assert_public_ok(cadre_variable_value(NULL, variable, &options, NULL));
    assert_memory_equal(memory, cadre_tensor_const_data(value), sizeof memory);
    assert_public_ok(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, 9));
    assert_true(((const float *)cadre_tensor_const_data(value))[0] > 8 && memory[0] < 1);
    cadre_tensor_release(options.into);
    cadre_tensor_release(value);
    cadre_strategy_release(strategy);
}

static void strings_are_read_as_a_whole(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    const int64_t two = 2;
    cadre_variable *words;
    cadre_tensor *ids = training_i32(1, (const int32_t[]){0});
    cadre_tensor *value;
    assert_public_ok(cadre_variable_create(strategy, "words", CADRE_STRING, 1, &two, NULL, &words));
    assert_public_ok(cadre_variable_value(NULL, words, NULL, &value));
    assert_int_equal(cadre_tensor_dtype(value), CADRE_STRING);
    assert_public_error(cadre_variable_value(NULL, words, &(cadre_read_options){.into = ids}, NULL),
        CADRE_INVALID_ARGUMENT, "without options->into");
    cadre_tensor_release(value);
    assert_public_error(cadre_variable_gather(NULL, words, ids, NULL, &value),
        CADRE_INVALID_ARGUMENT, "cadre_variable_gather: variable 'words' holds strings");
    assert_public_error(
        cadre_variable_slice(NULL, words, 0, 1, 1, &value), CADRE_INVALID_ARGUMENT, "strings");
    cadre_tensor_release(ids);
    cadre_strategy_release(strategy);
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *variable = counted(strategy, "v", 0, 0);
    cadre_variable *own = counted(strategy, "own", CADRE_SYNC_ON_READ, 0);
    cadre_variable *scalar;
    cadre_tensor *ids = training_i32(2, (const int32_t[]){0, 4});
    cadre_tensor *value;
    assert_public_ok(cadre_variable_create(strategy, "s", CADRE_F32, 0, NULL, NULL, &scalar));
    assert_public_error(cadre_variable_gather(NULL, variable, ids, NULL, &value),
        CADRE_OUT_OF_RANGE, "no row 4 in variable 'v': it has rows 0 to 3");
    assert_null(value);
    assert_public_error(cadre_variable_slice(NULL, variable, 4, CADRE_SLICE_ROW, 1, &value),
        CADRE_OUT_OF_RANGE, "no row 4");
    assert_public_error(
        cadre_variable_slice(NULL, variable, N, N, 0, &value), CADRE_INVALID_ARGUMENT, "step 0");
    assert_public_error(
        cadre_variable_gather(NULL, scalar, ids, NULL, &value), CADRE_INVALID_ARGUMENT, "scalar");
    assert_public_error(
        cadre_variable_value(NULL, own, NULL, &value), CADRE_INVALID_ARGUMENT, "no one value");
    assert_public_error(
        cadre_variable_value(NULL, variable, &(cadre_read_options){.into = ids}, NULL),
        CADRE_INVALID_ARGUMENT, "i32 [2]");
    assert_public_error(cadre_variable_value(NULL, NULL, NULL, &value), CADRE_INVALID_ARGUMENT,
        "cadre_variable_value was given NULL");
    assert_public_error(cadre_variable_find(strategy, "w", &scalar), CADRE_NOT_FOUND,
        "no variable 'w' in this strategy; there are 'own', 's', 'v'");
    assert_public_error(
        cadre_variable_create(strategy, "w", CADRE_F32, 0, NULL,
            &(cadre_variable_options){.placement = CADRE_PLACEMENT_SERVERS}, &scalar),
        CADRE_FAILED_PRECONDITION, "its strategy has no parameter servers");
    cadre_strategy_release(strategy);
    assert_public_error(
        cadre_variable_value(NULL, variable, NULL, &value), CADRE_FAILED_PRECONDITION, "has ended");
    assert_public_error(
        cadre_variable_find(strategy, "v", &scalar), CADRE_FAILED_PRECONDITION, "has ended");
    assert_public_error(
        cadre_variable_find(NULL, "v", &scalar), CADRE_FAILED_PRECONDITION, "outside of any");
    cadre_tensor_release(ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kinds_are_read_alike),
        cmocka_unit_test(replicas_read_their_own),
        cmocka_unit_test(a_value_is_the_variables_memory),
        cmocka_unit_test(strings_are_read_as_a_whole),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
