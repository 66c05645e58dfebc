/* SPDX-License-Identifier: Apache-2.0
 * Jobs of two tasks whose programs do not take the same steps: each ends, soon, with a message that
 * names the fault. Task 0 always does less than task 1. And jobs whose tasks take the same steps in
 * unusual orders: they succeed. The tasks are this test, run again. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/job.h"
#include "training.h"

/* ---- the program ---- */

static cadre_status collect(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const int *collectives = user;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = CADRE_OK;
    for (int i = 0; status == CADRE_OK && i < *collectives; i++) {
        status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    }
    cadre_tensor_release(one);
    return status;
}

static void run_steps(cadre_strategy *strategy, int steps)
{
    int collectives = 1;
    for (int i = 0; i < steps; i++) {
        CADRE_CHECK(cadre_run(strategy, collect, &collectives, NULL, 0, NULL));
    }
}

static void run_epochs(
    cadre_strategy *strategy, uint64_t epochs, uint64_t steps_max, int collectives)
{
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 80, 1), 8, false), NULL, &data));
    while (cadre_next_epoch(data, epochs, NULL)) {
        while (cadre_step(data) < steps_max && cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, collect, &collectives, batch, 0, NULL));
        }
    }
}

/* Programs that are allowed, and do not step through one epoch after the other. */
static void run_in_turns(cadre_strategy *strategy, const char *what)
{
    cadre_distributed_dataset *data[2];
    cadre_per_replica *batch;
    int collectives = 1;
    for (int i = 0; i < 2; i++) {
        CADRE_CHECK(cadre_distribute_dataset(strategy,
            cadre_dataset_batch(cadre_dataset_range(0, 80, 1), 8, false), NULL, &data[i]));
        cadre_next_epoch(data[i], 2, NULL);
    }
    if (strcmp(what, "begun-twice") == 0) {
        cadre_next_epoch(data[0], 2, NULL);
    }
    for (int step = 0; cadre_next(data[0], &batch) == CADRE_OK; step++) {
        CADRE_CHECK(cadre_run(strategy, collect, &collectives, batch, 0, NULL));
        if (strcmp(what, "turns") == 0 && cadre_next(data[1], &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, collect, &collectives, batch, 0, NULL));
        }
        if (strcmp(what, "midst") == 0 && step % 4 == 2) {
            run_steps(strategy, 2);
        }
    }
}

/* ---- one collective that is not the same everywhere ---- */

struct difference {
    const char *what;
    bool less;
};

static cadre_status call_differently(cadre_replica *replica, const struct difference *difference)
{
    const char *what = difference->what;
    bool less = difference->less;
    cadre_tensor *tensor;
    cadre_tensor *gathered = NULL;
    cadre_collective *started = NULL;
    const int64_t dims[2] = {less && strcmp(what, "as-shape") == 0 ? 3 : 2,
        less && strcmp(what, "as-gather") == 0 ? 5 : 6};
    bool whole = less && strcmp(what, "as-type") == 0;
    CADRE_TRY(cadre_tensor_create(whole ? CADRE_I32 : CADRE_F32, 2, dims, &tensor));
    cadre_status status;
    if (strcmp(what, "as-gather") == 0) {
        status = cadre_all_gather(replica, &tensor, 1, 0, NULL, &gathered);
    } else if (strcmp(what, "as-scatter") == 0 && less) {
        status = cadre_reduce_scatter(replica, CADRE_SUM, tensor, NULL, &gathered);
    } else if (strcmp(what, "as-root") == 0) {
        status = cadre_broadcast(replica, less ? 0 : 1, &tensor, 1);
    } else if (strcmp(what, "as-started") == 0 && less) {
        status = cadre_all_reduce_start(replica, CADRE_MAX, &tensor, 1, NULL, &started);
        status = status == CADRE_OK ? cadre_collective_wait(started) : status;
    } else {
        status = cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    }
    cadre_tensor_release(gathered);
    cadre_tensor_release(tensor);
    return status;
}

/* Neither ends before both have printed the error: after it the mesh is as good as new. */
static cadre_status differ(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct difference *difference = user;
    cadre_status status = call_differently(replica, difference);
    printf("%s: %s: %s\n", difference->less ? "chief" : "other", cadre_status_name(status),
        cadre_error_message());
    fflush(stdout);
    CADRE_TRY(cadre_barrier());
    return status;
}

/* ---- what one of them could not ---- */

static cadre_status refuse(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)values;
    (void)dtype;
    (void)count;
    (void)user;
    return cadre_fail(CADRE_DATA_LOSS, "the embedding is damaged");
}

static cadre_variable *create(cadre_strategy *strategy)
{
    cadre_variable *variable;
    CADRE_CHECK(cadre_variable_create(strategy, "weight", CADRE_F32, 0, NULL, NULL, &variable));
    return variable;
}

/* Before the first step each sets its own variables up; later it is a step of all. */
static void assign_differently(cadre_strategy *strategy, const char *what, bool less)
{
    const float numbers[2] = {1, less ? 3 : 4};
    const bool pair = strcmp(what, "assign-pair") == 0;
    cadre_variable *variable = create(strategy);
    cadre_variable *other;
    cadre_tensor *value;
    CADRE_CHECK(
        cadre_variable_create(strategy, "pair", CADRE_F32, 1, (const int64_t[]){2}, NULL, &other));
    run_steps(strategy, 3);
    if (strcmp(what, "assign-literal") == 0) {
        CADRE_CHECK(cadre_variable_assign_literal(NULL, variable, CADRE_ASSIGN, less ? 0.5 : 0.25));
    } else if (strcmp(what, "assign-name") == 0) {
        CADRE_CHECK(
            cadre_variable_assign_literal(NULL, less ? variable : other, CADRE_ASSIGN, 0.5));
    }
    CADRE_CHECK(cadre_tensor_from_data(
        CADRE_F32, pair ? 1 : 0, (const int64_t[]){2}, pair ? numbers : &numbers[1], &value));
    CADRE_CHECK(cadre_variable_assign(NULL, pair ? other : variable, CADRE_ASSIGN, value));
    cadre_tensor_release(value);
}

/* One task resets a metric between two steps, the other one does not. */
static void reset_differently(cadre_strategy *strategy, bool less)
{
    cadre_metric *metric;
    CADRE_CHECK(cadre_metric_create(strategy, CADRE_METRIC_SUM, "loss", NULL, &metric));
    run_steps(strategy, 1);
    if (less) {
        CADRE_CHECK(cadre_metric_reset(metric));
    }
    run_steps(strategy, 1);
}

/* Beside its value nothing of its size is held. (A sanitizer's allocator does not count.) */
static void create_large(cadre_strategy *strategy)
{
    const int64_t dims[1] = {16 << 20};
    const size_t bytes = (size_t)dims[0] * sizeof(float);
    cadre_variable *variable;
    create(strategy);
    size_t before = mallinfo2().hblkhd;
    CADRE_CHECK(cadre_variable_create(strategy, "large", CADRE_F32, 1, dims, NULL, &variable));
    size_t grown = mallinfo2().hblkhd - before;
    if (grown > bytes + bytes / 2) {
        printf("%zu bytes are held for a variable of %zu\n", grown, bytes);
        exit(1);
    }
}

/* Neither ends before both have printed the error. */
static void send_down(bool less, cadre_status status)
{
    printf(
        "%s: %s: %s\n", less ? "chief" : "other", cadre_status_name(status), cadre_error_message());
    fflush(stdout);
    CADRE_CHECK(cadre_barrier());
}

/* --- outside of steps --- */

static cadre_status reduce_differently(cadre_strategy *strategy, const char *what, bool less)
{
    const int64_t dims[2] = {2, less && strcmp(what, "out-shape") == 0 ? 4 : 3};
    bool other = less && strcmp(what, "out-op") == 0;
    bool along = less && strcmp(what, "out-axis") == 0;
    cadre_tensor *tensor;
    cadre_tensor *result = NULL;
    cadre_per_replica *value;
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &tensor));
    CADRE_TRY(cadre_values_from_tensors(strategy, &tensor, 1, &value));
    cadre_status status = cadre_reduce(
        strategy, other ? CADRE_MEAN : CADRE_SUM, value, along ? 0 : CADRE_AXIS_NONE, &result);
    cadre_tensor_release(result);
    cadre_per_replica_release(value);
    cadre_tensor_release(tensor);
    return status;
}

static cadre_status gather_one(cadre_strategy *strategy)
{
    cadre_tensor *tensor;
    cadre_tensor *result = NULL;
    cadre_per_replica *value;
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, (const int64_t[]){4}, &tensor));
    CADRE_TRY(cadre_values_from_tensors(strategy, &tensor, 1, &value));
    cadre_status status = cadre_gather(strategy, value, 0, &result);
    cadre_tensor_release(result);
    cadre_per_replica_release(value);
    cadre_tensor_release(tensor);
    return status;
}

static void meet_differently(cadre_strategy *strategy, const char *what, bool less)
{
    cadre_variable *variable;
    if (strcmp(what, "out-finish") == 0 && less) {
        return;
    }
    if (strcmp(what, "out-gather") == 0 && less) {
        send_down(less, gather_one(strategy));
    } else if (strcmp(what, "out-barrier") == 0 && less) {
        send_down(less, cadre_barrier());
    } else if (strcmp(what, "out-variable") == 0 && less) {
        send_down(
            less, cadre_variable_create(strategy, "weight", CADRE_F32, 0, NULL, NULL, &variable));
    } else {
        send_down(less, reduce_differently(strategy, what, less));
    }
}

static void create_in_vain(cadre_strategy *strategy, bool less)
{
    cadre_variable *variable;
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = refuse}};
    send_down(
        less, cadre_variable_create(strategy, "weight", CADRE_F32, 0, NULL, &options, &variable));
}

static void save_in_vain(cadre_strategy *strategy, bool less)
{
    create(strategy);
    run_steps(strategy, 3);
    if (less) {
        fault_arm("checkpoint.", 1);
    }
    cadre_status status = cadre_save(strategy, true);
    fault_disarm();
    send_down(less, status);
}

static int program(const char *what)
{
    cadre_strategy *strategy;
    if (strcmp(what, "folders") == 0 && strcmp(getenv("CADRE_SLOT"), "1") == 0) {
        setenv("CADRE_CHECKPOINT_DIR", getenv("CADRE_OUTPUT_DIR"), 1);
    }
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    bool less = cadre_rank() == 0;
    if (strcmp(what, "no-steps") == 0) {
        run_steps(strategy, less ? 0 : 1);
    } else if (strcmp(what, "steps") == 0) {
        run_steps(strategy, less ? 11 : 12);
    } else if (strcmp(what, "epochs") == 0) {
        run_epochs(strategy, less ? 1 : 2, UINT64_MAX, 1);
    } else if (strcmp(what, "leave") == 0) {
        run_epochs(strategy, 1, less ? 3 : UINT64_MAX, 1);
    } else if (strcmp(what, "collectives") == 0) {
        run_epochs(strategy, 1, UINT64_MAX, less ? 1 : 2);
    } else if (strcmp(what, "last-collective") == 0) {
        int collectives = less ? 1 : 2;
        CADRE_CHECK(cadre_run(strategy, collect, &collectives, NULL, 0, NULL));
        run_steps(strategy, 1);
    } else if (strncmp(what, "assign", 6) == 0) {
        assign_differently(strategy, what, less);
    } else if (strcmp(what, "reset") == 0) {
        reset_differently(strategy, less);
    } else if (strcmp(what, "initializer") == 0) {
        create_in_vain(strategy, less);
    } else if (strcmp(what, "folders") == 0) {
        create(strategy);
    } else if (strcmp(what, "large") == 0) {
        create_large(strategy);
    } else if (strcmp(what, "save") == 0) {
        save_in_vain(strategy, less);
    } else if (strncmp(what, "out-", 4) == 0) {
        meet_differently(strategy, what, less);
    } else if (strncmp(what, "as-", 3) == 0) {
        struct difference difference = {.what = what, .less = less};
        run_steps(strategy, 1);
        CADRE_CHECK(cadre_run(strategy, differ, &difference, NULL, 0, NULL));
    } else if (strcmp(what, "equal") == 0) {
        run_epochs(strategy, 2, UINT64_MAX, 1);
    } else {
        run_in_turns(strategy, what);
    }
    return cadre_finish(strategy);
}

/* ---- the tests ---- */

static const char *self;

static void run_job(const char *what, struct job_end *ret_end)
{
    const struct local_options options = {.program = self,
        .arguments = &what,
        .argument_count = 1,
        .tasks = 2,
        .replicas = 1,
        .output = test_temp_dir(),
        .checkpoint_folder = strcmp(what, "folders") == 0 ? test_temp_dir() : NULL,
        .grace_us = 1000000};
    job_run(&options, ret_end);
}

static void check(const char *what, const char *part)
{
    struct job_end end;
    run_job(what, &end);
    if (end.exit_code == 0 || !job_reported(&end, part)) {
        job_wrong(what, &end);
    }
}

static void equal_programs_succeed(void **state)
{
    (void)state;
    static const char *const whats[] = {"equal", "turns", "midst", "begun-twice", "large"};
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        struct job_end end;
        run_job(whats[i], &end);
        if (end.exit_code != 0) {
            job_wrong(whats[i], &end);
        }
    }
}

/* A step that is left out may be released already: the mesh finds it, or the coordinator. */
static void other_numbers_of_steps_are_reported(void **state)
{
    (void)state;
    check("no-steps", "called cadre_finish after 0 steps: all tasks must take the same steps");
    check("steps", "cadre_finish after 11 steps");
    check("epochs", "cadre_finish after 10 steps");
}

static void an_epoch_that_one_leaves_is_reported(void **state)
{
    (void)state;
    check("leave", "cadre_finish");
}

static void other_numbers_of_collectives_are_reported(void **state)
{
    (void)state;
    check("collectives", "the replicas disagree in a collective");
    setenv("CADRE_VERIFY_STATE", "off", 1); /* or the states would be compared first */
    check("reset", "calls nothing more, since its function has returned, after a reset of 'loss'");
    unsetenv("CADRE_VERIFY_STATE");
}

/* Both get the error, with names: the mesh stays usable, and none hangs. */
static void other_calls_are_reported_on_all(void **state)
{
    (void)state;
    static const char *const whats[] = {
        "as-shape", "as-type", "as-gather", "as-scatter", "as-root", "as-started"};
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        struct job_end end;
        run_job(whats[i], &end);
        const char *const reported[] = {
            "chief: INVALID_ARGUMENT: the replicas disagree in a collective: ",
            "other: INVALID_ARGUMENT: the replicas disagree in a collective: "};
        if (end.exit_code == 0 || strstr(end.printed, reported[0]) == NULL ||
            strstr(end.printed, reported[1]) == NULL) {
            job_wrong(whats[i], &end);
        }
    }
}

/* Outside of steps, too: each side reads what the other calls. */
static void other_calls_between_steps_are_reported(void **state)
{
    (void)state;
    static const char *const usual = "replica 1 calls cadre_reduce(CADRE_SUM) of f32 [2, 3]";
    static const char *const whats[][2] = {
        {"out-op", "replica 0 calls cadre_reduce(CADRE_MEAN) of f32 [2, 3], "},
        {"out-axis", "replica 0 calls cadre_reduce(CADRE_SUM, axis 0) of f32 [2, 3], "},
        {"out-shape", "replica 0 calls cadre_reduce(CADRE_SUM) of f32 [2, 4], "},
        {"out-gather", "replica 0 calls cadre_gather(axis 0) of i64 [4], "},
        {"out-barrier", "replica 0 calls cadre_barrier, "},
        {"out-variable", "replica 0 calls cadre_variable_create for the first time, "}};
    for (size_t i = 0; i < sizeof whats / sizeof whats[0]; i++) {
        struct job_end end;
        char both[512];
        run_job(whats[i][0], &end);
        snprintf(both, sizeof both, "%s%s", whats[i][1], usual);
        const char *first = strstr(end.printed, both);
        if (end.exit_code != 0 || first == NULL || strstr(first + 1, both) == NULL) {
            job_wrong(whats[i][0], &end);
        }
    }
    check("out-finish",
        "replica 0 calls cadre_finish after 0 steps, replica 1 calls cadre_reduce(CADRE_SUM) of "
        "f32 [2, 3]");
}

/* The next step is admitted already, so its first collective meets the one that is too much. */
static void a_collective_more_in_a_step_is_reported(void **state)
{
    (void)state;
    check("last-collective", "(collective 1 of step 1)");
    check("last-collective", "(collective 2 of step 0)");
}

static void other_values_are_reported(void **state)
{
    (void)state;
    check("assign", "replica 0 calls cadre_variable_assign('weight', 3) (collective 1 of step 3), "
                    "replica 1 calls cadre_variable_assign('weight', 4) (collective 1 of step 3)");
    check("assign-pair", "replica 1 calls cadre_variable_assign('pair', a value of digest ");
    check("assign-literal",
        "replica 0 calls cadre_variable_assign_literal('weight', 0.5) (collective 1 of step 3), "
        "replica 1 calls cadre_variable_assign_literal('weight', 0.25) (collective 1 of step 3)");
    check("assign-name",
        "replica 0 calls cadre_variable_assign_literal('weight', 0.5) (collective 1 of step 3), "
        "replica 1 calls cadre_variable_assign_literal('pair', 0.5) (collective 1 of step 3)");
}

static void other_folders_are_reported(void **state)
{
    (void)state;
    check("folders", "is not that of the chief");
}

/* The first report is the job's reason, whichever task sends it. */
static void why_the_chief_could_not_is_reported_by_all(void **state)
{
    (void)state;
    static const char *const whats[][2] = {
        {"initializer", "other: ABORTED: task 0 could not: variable 'weight': its initializer "
                        "failed: the embedding is damaged"},
        {"save", "other: ABORTED: task 0 could not: the checkpoint after 3 steps is missing: "}};
    for (size_t i = 0; i < 2; i++) {
        struct job_end end;
        run_job(whats[i][0], &end);
        if (end.exit_code != 0 || strstr(end.printed, whats[i][1]) == NULL) {
            job_wrong(whats[i][0], &end);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return program(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_programs_succeed),
        cmocka_unit_test(other_numbers_of_steps_are_reported),
        cmocka_unit_test(an_epoch_that_one_leaves_is_reported),
        cmocka_unit_test(other_numbers_of_collectives_are_reported),
        cmocka_unit_test(other_calls_are_reported_on_all),
        cmocka_unit_test(other_calls_between_steps_are_reported),
        cmocka_unit_test(a_collective_more_in_a_step_is_reported),
        cmocka_unit_test(other_values_are_reported),
        cmocka_unit_test(other_folders_are_reported),
        cmocka_unit_test(why_the_chief_could_not_is_reported_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
