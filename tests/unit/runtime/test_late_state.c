/* SPDX-License-Identifier: Apache-2.0
 * Variables that are created late as a part of the state: compared, with values of files, and as a
 * manifest describes them. */
#include <stdio.h>
#include <string.h>

#include "creating.h"
#include "worker/library/runtime/state/checkpoint/manifest_variables.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static cadre_status differ_in_it(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_variable *variable;
    (void)inputs;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_variable_create(NULL, "late", CADRE_F64, 0, NULL, NULL, &variable));
    if (cadre_strategy_position(cadre_replica_strategy(replica)) > 0) {
        *(double *)cadre_variable_write(replica, variable) = cadre_replica_id(replica);
    }
    return CADRE_OK;
}

static void what_was_created_late_is_compared(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    creating_one(strategy, "early", 1);
    cadre_status status = CADRE_OK;
    for (int i = 0; status == CADRE_OK && i < 1000; i++) {
        status = cadre_run(strategy, differ_in_it, NULL, NULL, 0, NULL);
    }
    assert_int_equal(status, CADRE_DATA_LOSS);
    assert_non_null(strstr(cadre_error_message(), "variable 'late'"));
    cadre_strategy_release(strategy);
}

static void a_restored_value_comes_first(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    cadre_strategy *strategy = training_strategy(2);
    creating_one(strategy, "m", 8);
    creating_one(strategy, "seen", 6);
    test_path(path, training_folder(), "values.safetensors");
    assert_public_ok(cadre_export(strategy, path, NULL, 0));
    cadre_strategy_release(strategy);
    strategy = training_strategy(2);
    assert_public_ok(cadre_restore(strategy, path, NULL));
    struct creating creating = {.names = {"m", "fresh"}, .dtype = CADRE_F64, .add = 1};
    struct creating summed = {.names = {"seen"},
        .dtype = CADRE_F64,
        .options = {.synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM},
        .add = 1};
    assert_public_ok(creating_run(strategy, &creating));
    assert_true(creating_value(creating.got[0][0]) == 9);
    assert_true(creating_value(creating.got[0][1]) == 0);
    assert_public_ok(creating_run(strategy, &summed));
    assert_true(creating_value(summed.got[1][0]) == 8); /* its total, and what both have added */
    cadre_strategy_release(strategy);

    strategy = training_strategy(2); /* of another shape there */
    assert_public_ok(cadre_restore(strategy, path, NULL));
    creating = (struct creating){.names = {"m"}, .dtype = CADRE_F64, .rank = 1, .dims = {2}};
    assert_public_error(creating_run(strategy, &creating), CADRE_INVALID_ARGUMENT, "'m'");
    cadre_strategy_release(strategy);
}

static void what_a_manifest_says_is_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"7", "\"\"", "\"f32\"", "\"f32 -\"", "\"f31 - NONE\"",
        "\"f32 -1 NONE\"", "\"f32 2x NONE\"", "\"f32 2xx3 NONE\"", "\"f32 2y NONE\"",
        "\"f32 99999999999999999999 NONE\"", "\"f32 1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1 NONE\"",
        "\"f32 - ALL\"", "\"f32 - NONE later\"", "\"string 2 NONE on_read\""};
    char text[256];
    bool made = false;
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(2);
    creating_one(strategy, "there", 1);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "{\"variables\": {\"v\": %s}}", wrong[i]);
        assert_error(manifest_make_variables(strategy, text, strlen(text), &made, &error),
            CADRE_INVALID_ARGUMENT, &error, "'v' is not whole");
        assert_false(made);
    }
    snprintf(text, sizeof text,
        "{\"variables\": {\"there\": \"f32 - NONE\", \"v\": \"i64 2x3 SUM on_read\", "
        "\"w\": \"f32 - NONE keep_on_host in_function\"}}");
    assert_ok(manifest_make_variables(strategy, text, strlen(text), &made, &error), &error);
    assert_true(made);
    const cadre_variable *v = training_find(strategy, "v");
    assert_int_equal(v->kind, CADRE_VARIABLE_SYNC_ON_READ);
    assert_int_equal(v->dims[1], 3);
    assert_true(training_find(strategy, "w")->origin.in_function);
    variables_restore(strategy); /* nothing came */
    assert_null(training_find(strategy, "v"));
    assert_int_equal(strategy->variables->count, 1);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_created_late_is_compared),
        cmocka_unit_test(a_restored_value_comes_first),
        cmocka_unit_test(what_a_manifest_says_is_checked),
    };
    return cmocka_run_group_tests_name("late state", tests, NULL, NULL);
}
