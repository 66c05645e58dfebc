/* SPDX-License-Identifier: Apache-2.0
 * Metrics: the examples of the Keras reference, however their rows are spread over replicas and
 * tasks; and that every sample counts once when a task dies. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "job.h"
#include "stage.h"
#include "training.h"

static const char *self;

struct example {
    cadre_metric_kind kind;
    cadre_metric_options options;
    uint32_t width; /* of a row of values; 0: values are a vector */
    float values[12];
    bool targeted;
    uint32_t target_width; /* of a row of targets; 0: they are a vector */
    float targets[8];
    float weights[4]; /* of the rows */
    uint32_t rows;
    double result;
    double weighted;
};

/* tf.keras.metrics: the values in the documentation of each class. */
static const struct example examples[] = {
    {.kind = CADRE_METRIC_SUM,
        .values = {1, 3, 5, 7},
        .weights = {1, 1, 0, 0},
        .rows = 4,
        .result = 16,
        .weighted = 4},
    {.kind = CADRE_METRIC_MEAN,
        .values = {1, 3, 5, 7},
        .weights = {1, 1, 0, 0},
        .rows = 4,
        .result = 4,
        .weighted = 2},
    {.kind = CADRE_METRIC_MEAN_SQUARED_ERROR,
        .width = 2,
        .values = {1, 1, 0, 0},
        .targeted = true,
        .target_width = 2,
        .targets = {0, 1, 0, 0},
        .weights = {1, 0},
        .rows = 2,
        .result = 0.25,
        .weighted = 0.5},
    {.kind = CADRE_METRIC_BINARY_ACCURACY,
        .width = 1,
        .values = {0.98f, 1, 0, 0.6f},
        .targeted = true,
        .target_width = 1,
        .targets = {1, 1, 0, 0},
        .weights = {1, 0, 0, 1},
        .rows = 4,
        .result = 0.75,
        .weighted = 0.5},
    {.kind = CADRE_METRIC_SPARSE_CATEGORICAL_ACCURACY,
        .width = 3,
        .values = {0.1f, 0.6f, 0.3f, 0.05f, 0.95f, 0},
        .targeted = true,
        .target_width = 1,
        .targets = {2, 1},
        .weights = {0.7f, 0.3f},
        .rows = 2,
        .result = 0.5,
        .weighted = 0.3},
    {.kind = CADRE_METRIC_SPARSE_TOP_K_ACCURACY,
        .options = {.k = 1},
        .width = 3,
        .values = {0.1f, 0.9f, 0.8f, 0.05f, 0.95f, 0},
        .targeted = true,
        .targets = {2, 1},
        .weights = {0.7f, 0.3f},
        .rows = 2,
        .result = 0.5,
        .weighted = 0.3},
    {.kind = CADRE_METRIC_SPARSE_TOP_K_ACCURACY,
        .options = {.k = 2},
        .width = 3,
        .values = {0.1f, 0.9f, 0.8f, 0.05f, 0.95f, 0},
        .targeted = true,
        .targets = {2, 2},
        .weights = {0.5f, 1.5f},
        .rows = 2,
        .result = 0.5,
        .weighted = 0.25},
    {.kind = CADRE_METRIC_AUC,
        .options = {.thresholds = 3},
        .values = {0, 0.5f, 0.3f, 0.9f},
        .targeted = true,
        .targets = {0, 0, 1, 1},
        .weights = {1, 0, 0, 1},
        .rows = 4,
        .result = 0.75,
        .weighted = 1},
};

#define EXAMPLES (sizeof examples / sizeof examples[0])

/* --- rows of an example --- */

static bool is_by_class(const struct example *example)
{
    return example->kind == CADRE_METRIC_SPARSE_CATEGORICAL_ACCURACY ||
           example->kind == CADRE_METRIC_SPARSE_TOP_K_ACCURACY;
}

static cadre_status rows_of(const float *from, uint32_t width, uint32_t first, uint32_t rows,
    bool integers, cadre_tensor **ret_tensor)
{
    const int64_t dims[] = {rows, width};
    uint32_t step = width == 0 ? 1 : width;
    CADRE_TRY(cadre_tensor_create(
        integers ? CADRE_I64 : CADRE_F32, width == 0 ? 1 : 2, dims, ret_tensor));
    for (uint32_t i = 0; i < rows * step; i++) {
        if (integers) {
            ((int64_t *)cadre_tensor_data(*ret_tensor))[i] = (int64_t)from[first * step + i];
        } else {
            ((float *)cadre_tensor_data(*ret_tensor))[i] = from[first * step + i];
        }
    }
    return CADRE_OK;
}

static cadre_status update(cadre_replica *replica, cadre_metric *metric,
    const struct example *example, uint32_t first, uint32_t rows, bool weighted)
{
    cadre_tensor *values = NULL;
    cadre_tensor *targets = NULL;
    cadre_tensor *weights = NULL;
    CADRE_TRY(rows_of(example->values, example->width, first, rows, false, &values));
    if (example->targeted) {
        CADRE_TRY(rows_of(
            example->targets, example->target_width, first, rows, is_by_class(example), &targets));
    }
    if (weighted) {
        CADRE_TRY(rows_of(example->weights, 0, first, rows, false, &weights));
    }
    cadre_status status = cadre_metric_update(replica, metric, values, targets, weights);
    cadre_tensor_release(values);
    cadre_tensor_release(targets);
    cadre_tensor_release(weights);
    return status;
}

struct counting {
    cadre_metric *metrics[EXAMPLES];
    bool weighted;
};

/* Row i is that of replica i modulo n; a replica without one counts 0 rows. */
static cadre_status count(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct counting *counting = user;
    for (size_t k = 0; k < EXAMPLES; k++) {
        for (uint32_t row = 0; row < 4; row++) {
            bool own = row < examples[k].rows &&
                       row % cadre_replica_count(replica) == cadre_replica_id(replica);
            CADRE_TRY(update(replica, counting->metrics[k], &examples[k], own ? row : 0,
                own ? 1 : 0, counting->weighted));
        }
    }
    return CADRE_OK;
}

static cadre_status check_results(const struct counting *counting)
{
    for (size_t k = 0; k < EXAMPLES; k++) {
        double result = -1;
        double wanted = counting->weighted ? examples[k].weighted : examples[k].result;
        CADRE_TRY(cadre_metric_result(NULL, counting->metrics[k], &result));
        if (fabs(result - wanted) > 1e-6) {
            return cadre_fail(CADRE_INTERNAL, "metric %zu is %g, not %g", k, result, wanted);
        }
    }
    return CADRE_OK;
}

/* All examples, then all with weights; a metric that has no update is 0. */
static cadre_status all_examples(cadre_strategy *strategy)
{
    struct counting counting = {{NULL}, false};
    cadre_status status = CADRE_OK;
    for (size_t k = 0; status == CADRE_OK && k < EXAMPLES; k++) {
        char name[32];
        double nothing = -1;
        snprintf(name, sizeof name, "metric%zu", k);
        CADRE_TRY(cadre_metric_create(
            strategy, examples[k].kind, name, &examples[k].options, &counting.metrics[k]));
        CADRE_TRY(cadre_metric_result(NULL, counting.metrics[k], &nothing));
        status = nothing == 0 ? CADRE_OK : cadre_fail(CADRE_INTERNAL, "it begins at %g", nothing);
    }
    for (int weighted = 0; status == CADRE_OK && weighted < 2; weighted++) {
        counting.weighted = weighted == 1;
        for (size_t k = 0; status == CADRE_OK && weighted == 1 && k < EXAMPLES; k++) {
            status = cadre_metric_reset(counting.metrics[k]);
        }
        if (status == CADRE_OK) {
            status = cadre_run(strategy, count, &counting, NULL, 0, NULL);
        }
        if (status == CADRE_OK) {
            status = check_results(&counting);
        }
        if (status == CADRE_OK && cadre_strategy_position(strategy) != (uint64_t)weighted + 1) {
            status = cadre_fail(CADRE_INTERNAL, "a reset was a step");
        }
    }
    for (size_t k = 0; k < EXAMPLES; k++) {
        cadre_metric_release(counting.metrics[k]);
    }
    return status;
}

/* --- tests --- */

static void examples_are_as_documented(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        cadre_strategy *strategy = training_strategy(n);
        assert_public_ok(all_examples(strategy));
        cadre_strategy_release(strategy);
    }
}

static void one_storage_counts_as_well(void **state)
{
    (void)state;
    static const char *const devices[] = {"CPU:0", "CPU:1", "CPU:2"};
    cadre_strategy *strategy;
    assert_public_ok(cadre_strategy_central_storage(devices, 3, NULL, &strategy));
    cadre_show_progress(strategy, false);
    assert_public_ok(all_examples(strategy));
    cadre_strategy_release(strategy);
}

static void tasks_count_together(void **state)
{
    (void)state;
    job_must_succeed(self, "examples", 2, 1);
    job_must_succeed(self, "examples", 2, 2);
}

static void without_a_strategy_it_is_updated_at_once(void **state)
{
    (void)state;
    for (size_t k = 0; k < EXAMPLES; k++) {
        cadre_metric *metric;
        double result;
        assert_public_ok(
            cadre_metric_create(NULL, examples[k].kind, "m", &examples[k].options, &metric));
        assert_public_ok(update(NULL, metric, &examples[k], 0, examples[k].rows, false));
        assert_public_ok(cadre_metric_result(NULL, metric, &result));
        assert_true(fabs(result - examples[k].result) < 1e-6);
        assert_public_ok(cadre_metric_reset(metric));
        assert_public_ok(update(NULL, metric, &examples[k], 0, examples[k].rows, true));
        assert_public_ok(cadre_metric_result(NULL, metric, &result));
        assert_true(fabs(result - examples[k].weighted) < 1e-6);
        cadre_metric_release(metric);
    }
}

/* Against the exact area of a few thousand samples: the share of pairs in the right order. */
static void the_area_is_that_of_all_pairs(void **state)
{
    (void)state;
    enum { SAMPLES = 500 };
    float values[SAMPLES];
    float targets[SAMPLES];
    const int64_t dims = SAMPLES;
    double right = 0;
    double pairs = 0;
    uint32_t random = 12345;
    for (int i = 0; i < SAMPLES; i++) {
        random = random * 1664525 + 1013904223;
        targets[i] = (float)(random >> 31);
        random = random * 1664525 + 1013904223;
        values[i] = ((float)(random >> 8) / 16777216 + 0.5f * targets[i]) / 1.5f;
    }
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < SAMPLES; k++) {
            if (targets[i] > targets[k]) {
                pairs++;
                right += values[i] > values[k] ? 1 : values[i] == values[k] ? 0.5 : 0;
            }
        }
    }
    cadre_metric *metric;
    cadre_tensor *tensors[2];
    double result;
    const cadre_metric_options options = {.thresholds = 10000};
    assert_public_ok(cadre_metric_create(NULL, CADRE_METRIC_AUC, "auc", &options, &metric));
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 1, &dims, values, &tensors[0]));
    assert_public_ok(cadre_tensor_from_data(CADRE_F32, 1, &dims, targets, &tensors[1]));
    assert_public_ok(cadre_metric_update(NULL, metric, tensors[0], tensors[1], NULL));
    assert_public_ok(cadre_metric_result(NULL, metric, &result));
    assert_true(fabs(result - right / pairs) < 1e-3);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    cadre_metric_release(metric);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    cadre_metric *metric = NULL;
    cadre_metric *auc = NULL;
    double result;
    assert_public_error(cadre_metric_create(NULL, (cadre_metric_kind)99, "m", NULL, &metric),
        CADRE_INVALID_ARGUMENT, "99");
    assert_null(metric);
    assert_public_error(cadre_metric_create(NULL, CADRE_METRIC_AUC, "m",
                            &(cadre_metric_options){.thresholds = 1}, &metric),
        CADRE_INVALID_ARGUMENT, "1 thresholds");
    assert_public_error(cadre_metric_create(NULL, CADRE_METRIC_SUM, "", NULL, &metric),
        CADRE_INVALID_ARGUMENT, "empty");
    assert_public_ok(cadre_metric_create(
        NULL, CADRE_METRIC_SPARSE_CATEGORICAL_ACCURACY, "accuracy", NULL, &metric));
    assert_public_ok(cadre_metric_create(NULL, CADRE_METRIC_AUC, "auc", NULL, &auc));
    const int64_t dims[] = {2, 3};
    const int64_t beyond[] = {0, 3};
    cadre_tensor *scores;
    cadre_tensor *classes;
    cadre_tensor *pair = training_f32(2, (const float[]){0.5f, 1.5f});
    cadre_tensor *triple = training_f32(3, (const float[]){1, 1, 1});
    assert_public_ok(cadre_tensor_create(CADRE_F32, 2, dims, &scores));
    assert_public_ok(cadre_tensor_from_data(CADRE_I64, 1, dims, beyond, &classes));
    assert_public_error(cadre_metric_update(NULL, metric, scores, classes, NULL),
        CADRE_INVALID_ARGUMENT, "the class of row 1 is 3");
    assert_public_error(cadre_metric_update(NULL, metric, scores, NULL, NULL),
        CADRE_INVALID_ARGUMENT, "targets are NULL");
    assert_public_error(cadre_metric_update(NULL, metric, scores, pair, NULL),
        CADRE_INVALID_ARGUMENT, "one integer for each row");
    assert_public_error(cadre_metric_update(NULL, metric, scores, classes, triple),
        CADRE_INVALID_ARGUMENT, "weights are f32 [3]");
    assert_public_error(
        cadre_metric_update(NULL, metric, NULL, classes, NULL), CADRE_INVALID_ARGUMENT, "'values'");
    assert_public_error(
        cadre_metric_update(NULL, auc, pair, pair, NULL), CADRE_INVALID_ARGUMENT, "[0, 1]");
    assert_public_error(
        cadre_metric_update(NULL, NULL, pair, pair, NULL), CADRE_INVALID_ARGUMENT, "'metric'");
    assert_public_ok(cadre_metric_result(NULL, metric, &result)); /* nothing was counted */
    assert_true(result == 0);
    cadre_tensor_release(scores);
    cadre_tensor_release(classes);
    cadre_tensor_release(pair);
    cadre_tensor_release(triple);
    cadre_metric_release(metric);
    cadre_metric_release(auc);
}

static cadre_status reset_on_replica(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    return cadre_metric_reset(user);
}

static void contexts_are_kept_apart(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_metric *metric;
    double result;
    cadre_tensor *one;
    assert_public_ok(cadre_tensor_from_f32(1, &one));
    assert_public_ok(cadre_metric_create(strategy, CADRE_METRIC_MEAN, "m", NULL, &metric));
    assert_int_equal(cadre_variable_dtype(training_find(strategy, "m")), CADRE_F64);
    assert_public_error(cadre_metric_update(NULL, metric, one, NULL, NULL),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    assert_public_error(cadre_run(strategy, reset_on_replica, metric, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "cadre_metric_reset");
    cadre_strategy_release(strategy);
    assert_public_error(
        cadre_metric_result(NULL, metric, &result), CADRE_FAILED_PRECONDITION, "has ended");
    assert_public_error(cadre_metric_reset(metric), CADRE_FAILED_PRECONDITION, "has ended");
    cadre_metric_release(metric);
    cadre_tensor_release(one);
}

static cadre_status read_foreign(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    double result;
    return cadre_metric_result(replica, user, &result);
}

static void a_metric_of_another_strategy_is_refused_in_a_step(void **state)
{
    (void)state;
    cadre_strategy *one = training_strategy(1);
    cadre_strategy *other = training_strategy(1);
    cadre_metric *metric;
    assert_public_ok(cadre_metric_create(one, CADRE_METRIC_MEAN, "m", NULL, &metric));
    assert_public_error(cadre_run(other, read_foreign, metric, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "variable 'm' is of another strategy");
    cadre_metric_release(metric);
    cadre_strategy_release(other);
    cadre_strategy_release(one);
}

/* A variable is at the address of the metric's, whose strategy has ended. */
static void a_metric_that_is_released_late_ends_no_variable(void **state)
{
    (void)state;
    cadre_variable *variables[64];
    cadre_metric *metric;
    cadre_strategy *strategy = training_strategy(1);
    assert_public_ok(cadre_metric_create(strategy, CADRE_METRIC_SUM, "m", NULL, &metric));
    cadre_strategy_release(strategy);
    for (int i = 0; i < 64; i++) {
        assert_public_ok(cadre_variable_create(NULL, "v", CADRE_F64, 0, NULL, NULL, &variables[i]));
    }
    cadre_metric_release(metric);
    for (int i = 0; i < 64; i++) {
        assert_public_ok(cadre_variable_assign_literal(NULL, variables[i], CADRE_ASSIGN, 1));
        cadre_variable_release(variables[i]);
    }
}

/* Samples 0 to 103 in steps of 8; one task dies in a step, before or after its collective, and the
 * second time another takes its place: their sum, and how many they are. */
static void every_sample_counts_once_when_a_task_dies(void **state)
{
    (void)state;
    static const char *const faults[] = {"DIE_BEFORE=1:3", "DIE_AFTER=0:5"};
    for (int i = 0; i < 2; i++) {
        struct stage_end end;
        const char *const environment[] = {faults[i], NULL};
        const struct stage_job job = {.self = self,
            .what = "elastic",
            .tasks = 3,
            .replicas = 1,
            .replaces = i == 1,
            .waits_at = i == 1 ? 9 : 0,
            .environment = environment};
        stage_run(&job, &end);
        bool good = end.done;
        for (uint32_t attempt = 0; attempt < end.started; attempt++) {
            good = good && (attempt == (i == 0 ? 1U : 0U) ||
                               strstr(end.printed[attempt],
                                   "sum 5356 mean 51.5 reset 5356 then 0\n") != NULL);
        }
        if (!good) {
            for (uint32_t attempt = 0; attempt < end.started; attempt++) {
                print_error(
                    "attempt %u: %s%s\n", attempt, end.printed[attempt], end.erred[attempt]);
            }
        }
        assert_true(good);
        stage_end_free(&end);
    }
}

/* --- as a task --- */

static cadre_metric *elastic[3]; /* the last one is reset behind each step */

static cadre_status count_samples(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    (void)user;
    uint64_t position = cadre_strategy_position(cadre_replica_strategy(replica));
    fault_die("DIE_BEFORE", position);
    for (int i = 0; i < 3; i++) {
        CADRE_TRY(cadre_metric_update(replica, elastic[i], inputs[0], NULL, NULL));
    }
    CADRE_TRY(cadre_barrier());
    fault_die("DIE_AFTER", position);
    return CADRE_OK;
}

static int elastic_task(void)
{
    cadre_strategy *strategy = job_strategy();
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    double results[3];
    double before = 0; /* of the metric that is reset */
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_SUM, "sum", NULL, &elastic[0]));
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_MEAN, "mean", NULL, &elastic[1]));
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_SUM, "reset", NULL, &elastic[2]));
    CADRE_CHECK(cadre_state_register(strategy, "before", &before, sizeof before));
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 104, 1), 8, false), NULL, &data));
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, count_samples, NULL, batch, 0, NULL));
            CADRE_CHECK(cadre_metric_result(NULL, elastic[2], &results[2]));
            before += results[2];
            CADRE_CHECK(cadre_metric_reset(elastic[2]));
        }
    }
    for (int i = 0; i < 3; i++) {
        CADRE_CHECK(cadre_metric_result(NULL, elastic[i], &results[i]));
        cadre_metric_release(elastic[i]);
    }
    printf("sum %g mean %g reset %g then %g\n", results[0], results[1], before, results[2]);
    fflush(stdout);
    return cadre_finish(strategy);
}

static int examples_task(void)
{
    cadre_strategy *strategy = job_strategy();
    CADRE_CHECK(all_examples(strategy));
    return cadre_finish(strategy);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples_are_as_documented),
        cmocka_unit_test(one_storage_counts_as_well),
        cmocka_unit_test(tasks_count_together),
        cmocka_unit_test(without_a_strategy_it_is_updated_at_once),
        cmocka_unit_test(the_area_is_that_of_all_pairs),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(contexts_are_kept_apart),
        cmocka_unit_test(a_metric_of_another_strategy_is_refused_in_a_step),
        cmocka_unit_test(a_metric_that_is_released_late_ends_no_variable),
        cmocka_unit_test(every_sample_counts_once_when_a_task_dies),
    };
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], "examples") == 0) {
        return examples_task();
    }
    if (argc > 1 && strcmp(argv[1], "elastic") == 0) {
        return elastic_task();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
