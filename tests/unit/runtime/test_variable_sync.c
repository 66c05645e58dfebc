/* SPDX-License-Identifier: Apache-2.0
 * Variables are matched by name: a task that joins and creates them in another order gets the right
 * values; one that creates others gets an error that names one; and checkpoints do not depend on
 * the order either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "stage.h"
#include "training.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/layout/state.h"

static const char *self;

#define VARIABLES 5

static const char *const names[VARIABLES] = {"m", "a", "z", "metric", "b"};

/* Of different sizes, so that none can be taken for another. */
static cadre_status create(cadre_strategy *strategy, int which, bool other)
{
    const int64_t dims = which + 1 + (other && which == 2 ? 1 : 0);
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = which},
        .synchronization = which == 3 ? CADRE_SYNC_ON_READ : CADRE_SYNC_AUTO,
        .aggregation = which == 3 ? CADRE_AGGREGATION_SUM : CADRE_AGGREGATION_NONE};
    cadre_variable *variable;
    return cadre_variable_create(strategy, names[which], CADRE_I64, 1, &dims, &options, &variable);
}

static cadre_status create_all(cadre_strategy *strategy, bool backwards, bool other)
{
    for (int i = 0; i < VARIABLES; i++) {
        CADRE_TRY(create(strategy, backwards ? VARIABLES - 1 - i : i, other));
    }
    return CADRE_OK;
}

static cadre_status count(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    for (int i = 0; i < VARIABLES; i++) {
        cadre_variable *variable = training_find(cadre_replica_strategy(replica), names[i]);
        int64_t *values = cadre_variable_write(replica, variable);
        for (int64_t k = 0; k < cadre_variable_count(variable); k++) {
            values[k] += (i + 1) * (k + 1);
        }
    }
    return CADRE_OK;
}

static void print_all(cadre_strategy *strategy)
{
    printf("held");
    for (int i = 0; i < VARIABLES; i++) {
        const cadre_variable *variable = training_find(strategy, names[i]);
        const int64_t *values = cadre_variable_read(NULL, variable);
        bool metric = i == 3; /* its total depends on how many replicas there were */
        printf(" %s %lld", names[i],
            (long long)(metric ? 0 : values[cadre_variable_count(variable) - 1]));
    }
    printf("\n");
    fflush(stdout);
}

/* --- tests --- */

static void a_joiner_with_another_order_has_the_right_values(void **state)
{
    (void)state;
    struct stage_end end;
    const struct stage_job job = {.self = self,
        .what = "orders",
        .tasks = 2,
        .replicas = 2,
        .grows = 1,
        .grows_at = 4,
        .waits_at = 8};
    stage_run(&job, &end);
    if (!end.done) {
        print_error("%s\n", end.text);
    }
    assert_true(end.done);
    assert_int_equal(end.roster, 3);
    for (uint32_t attempt = 0; attempt < end.started; attempt++) {
        assert_non_null(strstr(end.printed[attempt], "held m 12 a 49 z 110 metric 0 b 304"));
    }
    stage_end_free(&end);
}

static void a_joiner_with_other_variables_is_reported_which(void **state)
{
    (void)state;
    struct stage_end end;
    static const char *const environment[] = {"OTHER=1", NULL};
    const struct stage_job job = {.self = self,
        .what = "orders",
        .tasks = 2,
        .replicas = 2,
        .grows = 1,
        .grows_at = 4,
        .waits_at = 8,
        .environment = environment};
    stage_run(&job, &end);
    assert_false(end.done);
    assert_non_null(strstr(end.text, "the first difference is variable 'z': i64 [4]"));
    assert_non_null(strstr(end.text, "variable 'z': i64 [3]"));
    stage_end_free(&end);
}

static void the_first_line_that_differs_is_named(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    static const char *const texts[][3] = {
        {"a\nb\n", "a\nc\n", "is b here, c there"},
        {"a\n", "a\nc\n", "is nothing here, c there"},
        {"ab\nx\n", "ac\nx\n", "is ab here, ac there"},
        {"a\nbc\n", "a\nb\n", "is bc here, b there"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_error(state_layout_difference(3, texts[i][0], 1, texts[i][1], &error),
            CADRE_INVALID_ARGUMENT, &error, texts[i][2]);
    }
}

static void variables_may_be_missing(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    static const char *const fits[][2] = {
        {"", "variable 'a': f32 []\n"},
        {"variable 'b': f32 []\n", "variable 'a': f32 []\nvariable 'b': f32 []\n"},
        {"variable 'b': f32 []\ndataset 'd'\n",
            "variable 'b': f32 []\nvariable 'c': f32 []\ndataset 'd'\n"},
    };
    static const char *const other[][3] = {
        {"variable 'b': f32 []\n", "variable 'b': f64 []\n",
            "is variable 'b': f32 [] here, variable 'b': f64 [] there"},
        {"variable 'b': f32 []\n", "variable 'a': f32 []\n",
            "is variable 'b': f32 [] here, nothing there"},
        {"", "variable 'a': f32 []\ndataset 'd'\n", "is nothing here, dataset 'd' there"},
    };
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        assert_ok(state_layout_difference(3, fits[i][0], 1, fits[i][1], &error), &error);
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
        assert_error(state_layout_difference(3, other[i][0], 1, other[i][1], &error),
            CADRE_INVALID_ARGUMENT, &error, other[i][2]);
    }
}

static void a_checkpoint_is_matched_by_name(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_ok(create_all(strategy, false, false));
    assert_public_ok(cadre_run(strategy, count, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_save(strategy, true));
    uint64_t position = cadre_checkpoint_latest(strategy);
    snprintf(path, sizeof path, "%s/checkpoint-%llu.json", training_folder(),
        (unsigned long long)position);
    cadre_strategy_release(strategy);
    strategy = training_strategy(1);
    assert_public_ok(create_all(strategy, true, false));
    assert_ok(checkpoint_load(strategy, path, &position, &error), &error);
    for (int i = 0; i < VARIABLES; i++) {
        const cadre_variable *variable = training_find(strategy, names[i]);
        const int64_t *values = cadre_variable_read(NULL, variable);
        int64_t last = cadre_variable_count(variable);
        int64_t times = i == 3 ? 2 : 1; /* the total of two replicas */
        assert_int_equal(values[last - 1], times * (i + (i + 1) * last));
    }
    cadre_strategy_release(strategy);
}

/* --- as a task --- */

static int task(void)
{
    cadre_strategy *strategy = job_strategy();
    bool joiner = strtoul(getenv("STAGE_ATTEMPT"), NULL, 10) >= 2;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(create_all(strategy, joiner, joiner && getenv("OTHER") != NULL));
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 48, 1), 4, false), NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, count, NULL, batch, 0, NULL));
        }
    }
    print_all(strategy);
    return cadre_finish(strategy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_joiner_with_another_order_has_the_right_values),
        cmocka_unit_test(a_joiner_with_other_variables_is_reported_which),
        cmocka_unit_test(the_first_line_that_differs_is_named),
        cmocka_unit_test(variables_may_be_missing),
        cmocka_unit_test(a_checkpoint_is_matched_by_name),
    };
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "orders") == 0) {
        return task();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
