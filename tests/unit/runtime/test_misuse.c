/* SPDX-License-Identifier: Apache-2.0
 * Programs that use the library wrongly: each mistake is an error that names it, and nothing else
 * happens. Sanitizers watch that nothing is read, lost or raced over. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/log.h"
#include "training.h"

/* ---- NULL ---- */

static void null_arguments_are_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_tensor *tensor = NULL;
    cadre_variable *variable = NULL;
    cadre_distributed_dataset *data = NULL;
    cadre_per_replica *value = NULL;
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    assert_public_error(cadre_strategy_default(NULL), bad, "'ret_strategy'");
    assert_public_error(cadre_strategy_mirrored(1, NULL), bad, "cadre_strategy_mirrored");
    assert_public_error(
        cadre_strategy_devices(strategy, CADRE_WORKER_DEVICES, NULL, &(uint32_t){0}), bad,
        "'ret_devices'");
    assert_public_error(
        cadre_strategy_mirrored_devices(NULL, 3, &(cadre_strategy *){NULL}), bad, "empty list");
    assert_public_error(cadre_run(NULL, training_nothing, NULL, NULL, 0, NULL), bad, "'strategy'");
    assert_public_error(cadre_run(strategy, NULL, NULL, NULL, 0, NULL), bad, "'function'");
    assert_public_error(cadre_run(strategy, training_nothing, NULL, NULL, 1, NULL), bad, "array");
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, NULL, 0, &tensor), bad, "'value'");
    assert_public_error(cadre_reduce(NULL, CADRE_SUM, NULL, 0, &tensor), bad, "'strategy'");
    assert_public_error(cadre_reduce(strategy, CADRE_SUM, value, 0, NULL), bad, "'ret_tensor'");
    assert_public_error(cadre_variable_create(strategy, "x", CADRE_F32, 0, NULL, NULL, NULL), bad,
        "'ret_variable'");
    assert_public_error(
        cadre_variable_create(strategy, NULL, CADRE_F32, 0, NULL, NULL, &variable), bad, "NULL");
    assert_public_error(cadre_variable_assign(NULL, NULL, CADRE_ASSIGN, NULL), bad, "'variable'");
    assert_public_error(
        cadre_variable_assign(NULL, training_variable(strategy), CADRE_ASSIGN_ADD, NULL), bad,
        "'value'");
    assert_public_error(cadre_distribute_dataset(strategy, NULL, NULL, &data),
        CADRE_RESOURCE_EXHAUSTED, "none was given");
    assert_public_error(
        cadre_distribute_dataset(strategy, cadre_dataset_range(0, 1, 1), NULL, NULL), bad,
        "'ret_distributed'");
    assert_public_error(cadre_distribute_dataset(NULL, cadre_dataset_range(0, 1, 1), NULL, &data),
        bad, "'strategy'");
    assert_public_error(cadre_next(NULL, &value), bad, "'distributed'");
    assert_public_error(cadre_next(NULL, NULL), bad, "'ret_batch'");
    assert_false(cadre_next_epoch(NULL, 1, NULL));
    assert_public_error(cadre_distributed_status(NULL), bad, "'distributed'");
    assert_public_error(cadre_report(NULL, "x", 1), bad, "'strategy'");
    assert_public_error(cadre_report(strategy, NULL, 1), bad, "is NULL");
    cadre_strategy_release(strategy);
}

static void what_is_asked_of_null_is_nothing(void **state)
{
    (void)state;
    cadre_show_progress(NULL, true);
    assert_int_equal(cadre_strategy_num_replicas_in_sync(NULL), 0);
    assert_int_equal(cadre_strategy_local_replicas(NULL), 0);
    assert_int_equal(cadre_strategy_position(NULL), 0);
    assert_false(cadre_strategy_is_chief(NULL));
    assert_int_equal(cadre_replica_id(NULL), 0);
    assert_int_equal(cadre_replica_count(NULL), 0);
    assert_int_equal(cadre_replica_local_id(NULL), 0);
    assert_int_equal(cadre_replica_global_rows(NULL), 0);
    assert_int_equal(cadre_replica_input_count(NULL), 0);
    assert_null(cadre_replica_strategy(NULL));
    assert_string_equal(cadre_replica_device(NULL), "");
    assert_false(cadre_has_strategy());
    assert_int_equal(cadre_per_replica_count(NULL), 0);
    assert_int_equal(cadre_per_replica_components(NULL), 0);
    assert_null(cadre_local_results(NULL, 0));
    assert_null(training_find(NULL, "v"));
    assert_string_equal(cadre_variable_name(NULL), "");
    assert_int_equal(cadre_variable_dtype(NULL), CADRE_DTYPE_NONE);
    assert_int_equal(cadre_variable_rank(NULL), 0);
    assert_null(cadre_variable_dims(NULL));
    assert_int_equal(cadre_variable_count(NULL), 0);
    assert_null(cadre_variable_read(NULL, NULL));
    assert_null(cadre_variable_write(NULL, NULL));
    assert_int_equal(cadre_distributed_steps(NULL), CADRE_CARDINALITY_UNKNOWN);
    assert_int_equal(cadre_epoch(NULL), 0);
    assert_int_equal(cadre_step(NULL), 0);
}

/* ---- after the end ---- */

static void nothing_is_done_after_the_end(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false), NULL, &data));
    assert_int_equal(cadre_distributed_steps(data), 2);
    assert_true(cadre_next_epoch(data, 1, NULL));
    cadre_strategy_release(strategy);
    cadre_strategy_release(strategy);
    const cadre_status late = CADRE_FAILED_PRECONDITION;
    assert_public_error(
        cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL), late, "had ended");
    assert_public_error(cadre_report(strategy, "x", 1), late, "had ended");
    assert_public_error(cadre_next(data, &batch), late, "has ended");
    assert_false(cadre_next_epoch(data, 2, NULL));
    assert_public_error(cadre_barrier(), late, "make a strategy");
    assert_int_equal(cadre_strategy_num_replicas_in_sync(strategy), 0);
    assert_int_equal(cadre_finish(strategy), 1);
    assert_non_null(strstr(cadre_error_message(), "cadre_finish"));
}

static void batches_of_an_ended_strategy_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    assert_public_ok(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    cadre_per_replica_retain(batch);
    cadre_strategy_release(strategy);
    strategy = training_strategy(1);
    assert_public_error(cadre_run(strategy, training_nothing, NULL, batch, 0, NULL),
        CADRE_FAILED_PRECONDITION, "has ended");
    cadre_strategy_release(strategy);
    cadre_per_replica_release(batch);
}

static cadre_status print_why(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_fail(
        CADRE_OUT_OF_RANGE, "label %d is not one of 0 to 9", 17 + (int)cadre_replica_id(replica));
}

static void batches_of_another_strategy_are_refused(void **state)
{
    (void)state;
    cadre_strategy *one = training_strategy(1);
    cadre_strategy *other = training_strategy(8);
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    assert_public_ok(cadre_distribute_dataset(
        one, cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false), NULL, &data));
    assert_true(cadre_next_epoch(data, 1, NULL));
    assert_public_ok(cadre_next(data, &batch));
    assert_public_error(cadre_run(other, training_nothing, NULL, batch, 0, NULL),
        CADRE_FAILED_PRECONDITION, "of another");
    assert_int_equal(cadre_step(data), 0);
    assert_public_ok(cadre_run(one, training_nothing, NULL, batch, 0, NULL));
    assert_int_equal(cadre_step(data), 1);
    cadre_strategy_release(other);
    cadre_strategy_release(one);
}

static void nothing_is_known_of_an_ended_variable(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable;
    assert_public_ok(
        cadre_variable_create(strategy, "w", CADRE_F32, 1, (const int64_t[]){3}, NULL, &variable));
    assert_string_equal(cadre_variable_name(variable), "w");
    cadre_strategy_release(strategy);
    assert_string_equal(cadre_variable_name(variable), "");
    assert_int_equal(cadre_variable_dtype(variable), CADRE_DTYPE_NONE);
    assert_int_equal(cadre_variable_rank(variable), 0);
    assert_null(cadre_variable_dims(variable));
    assert_int_equal(cadre_variable_count(variable), 0);
    assert_int_equal(cadre_variable_components(variable), 0);
    assert_null(cadre_variable_read(NULL, variable));
    assert_non_null(strstr(cadre_error_message(), "has ended"));
}

/* By hand the end waits for nothing after a step that failed, and returns its error; one that was
 * followed by another step was looked at. */
static void a_failed_step_does_not_hold_up_the_end(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 2; replicas++) {
        cadre_strategy *strategy = training_strategy(replicas);
        assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
        assert_public_error(
            cadre_run(strategy, print_why, NULL, NULL, 0, NULL), CADRE_OUT_OF_RANGE, "label 17");
        assert_int_equal(cadre_finish(strategy), 1);
        assert_non_null(strstr(cadre_error_message(), "label 17"));
        strategy = training_strategy(replicas);
        assert_public_error(
            cadre_run(strategy, print_why, NULL, NULL, 0, NULL), CADRE_OUT_OF_RANGE, "label 17");
        assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
        assert_int_equal(cadre_finish(strategy), 0);
    }
}

/* ---- contexts ---- */

/* ---- statuses and messages of the program's functions ---- */

static cadre_status foreign(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    return (cadre_status) * (const int *)user;
}

static cadre_status odd_initializer(void *values, int64_t count, cadre_dtype dtype, void *user)
{
    (void)values;
    (void)dtype;
    (void)user;
    return cadre_fail((cadre_status)-1, "%lld elements are an odd number", (long long)count);
}

static void programs_say_why_they_fail(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    assert_public_error(cadre_run(strategy, print_why, NULL, NULL, 0, NULL), CADRE_OUT_OF_RANGE,
        "replica 0: label 17 is not one of 0 to 9");
    int numbers[] = {-1, 17, 1 << 20};
    for (int i = 0; i < 3; i++) {
        assert_public_error(cadre_run(strategy, foreign, &numbers[i], NULL, 0, NULL), CADRE_UNKNOWN,
            "returned UNKNOWN and left no message");
    }
    cadre_strategy_release(strategy);
    strategy = training_strategy(1);
    cadre_variable *variable;
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_FUNCTION, .function = odd_initializer}};
    assert_public_error(
        cadre_variable_create(strategy, "v", CADRE_F32, 1, (int64_t[]){3}, &options, &variable),
        CADRE_UNKNOWN, "its initializer failed: 3 elements are an odd number");
    assert_int_equal(cadre_fail(CADRE_OK, "nothing"), CADRE_OK);
    cadre_strategy_release(strategy);
}

/* ---- outputs ---- */

static cadre_status too_many(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)user;
    for (int i = 0; i < 3; i++) {
        CADRE_TRY(cadre_tensor_from_f32(1, &outputs[i]));
    }
    return CADRE_OK;
}

static void outputs_that_none_asked_for_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    cadre_per_replica *outputs[3] = {NULL};
    assert_public_error(cadre_run(strategy, too_many, NULL, NULL, 0, NULL), CADRE_INVALID_ARGUMENT,
        "its function made output 0, and 0 were requested of cadre_run");
    assert_public_error(cadre_run(strategy, too_many, NULL, NULL, 2, outputs),
        CADRE_INVALID_ARGUMENT, "its function made output 2, and 2 were requested of cadre_run");
    assert_null(outputs[0]);
    assert_public_ok(cadre_run(strategy, too_many, NULL, NULL, 3, outputs));
    assert_non_null(outputs[2]);
    cadre_strategy_release(strategy);
}

/* ---- replicas that disagree ---- */

struct difference {
    bool shape;
    bool op;
    bool root;
};

static cadre_status disagree(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct difference *difference = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_tensor *tensor;
    int64_t dims[2] = {difference->shape ? 2 + (int64_t)id : 6, 1};
    dims[1] = 6 / dims[0];
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &tensor));
    cadre_status status = difference->root ? cadre_broadcast(replica, id, &tensor, 1)
                                           : cadre_all_reduce(replica,
                                                 difference->op && id == 1 ? CADRE_MEAN : CADRE_SUM,
                                                 &tensor, 1, NULL);
    cadre_tensor_release(tensor);
    return status;
}

static void disagreements_are_reported_in_the_programs_words(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_error(
        cadre_run(strategy, disagree, &(struct difference){.shape = true}, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "replica 1 calls cadre_all_reduce(CADRE_SUM) with f32 [3, 2]");
    assert_public_error(
        cadre_run(strategy, disagree, &(struct difference){.op = true}, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "replica 1 calls cadre_all_reduce(CADRE_MEAN) with f32 [6, 1]");
    assert_public_error(
        cadre_run(strategy, disagree, &(struct difference){.root = true}, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "replica 1 calls cadre_broadcast from replica 1");
    assert_public_ok(cadre_run(strategy, disagree, &(struct difference){0}, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static cadre_status broadcast_shapes(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_create(
        cadre_replica_id(replica) == 0 ? CADRE_F32 : CADRE_I32, 1, (int64_t[]){2}, &tensor));
    cadre_status status = cadre_broadcast(replica, 0, &tensor, 1);
    cadre_tensor_release(tensor);
    return status;
}

static void broadcasts_compare_types(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    assert_public_error(cadre_run(strategy, broadcast_shapes, NULL, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "with i32 [2]");
    cadre_strategy_release(strategy);
}

static cadre_status do_not_look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_tensor *tensor;
    CADRE_TRY(cadre_tensor_create(CADRE_BOOL, 0, NULL, &tensor));
    if (user != NULL) {
        cadre_variable_assign(replica, user, CADRE_ASSIGN, tensor);
    } else {
        cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    }
    cadre_tensor_release(tensor);
    return CADRE_OK;
}

/* A program that goes on after such a call would have replicas that are not equal. */
static void refusals_that_none_looks_at_fail_the_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *variable = training_variable(strategy);
    assert_public_error(cadre_run(strategy, do_not_look, NULL, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "bool cannot be summed");
    assert_public_error(cadre_run(strategy, do_not_look, variable, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "cannot be assigned bool");
    assert_int_equal(cadre_strategy_position(strategy), 0);
    cadre_strategy_release(strategy);
}

/* ---- values that make no sense ---- */

static void initial_values_make_sense(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *variable;
    static const cadre_variable_options wrong[] = {
        {.initializer = {.kind = CADRE_INITIALIZER_UNIFORM, .low = 3, .high = 1}},
        {.initializer = {.kind = CADRE_INITIALIZER_NORMAL, .stddev = -0.5}},
        {.initializer = {.kind = (cadre_initializer_kind)77}},
    };
    static const char *const parts[] = {"[3, 1)", "-0.5", "77"};
    for (int i = 0; i < 3; i++) {
        assert_public_error(
            cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, &wrong[i], &variable),
            CADRE_INVALID_ARGUMENT, parts[i]);
    }
    cadre_strategy_release(strategy);
}

/* ---- whole programs: this test, run again ---- */

#define PRINTED_BYTES 8192
#define AGAIN         1000

static cadre_status make_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)user;
    return cadre_tensor_from_i64(1, &outputs[0]);
}

/* What it holds no reference of, in each step. */
static void release_again_and_again(cadre_strategy *strategy)
{
    for (int i = 0; i < AGAIN; i++) {
        cadre_per_replica *output;
        CADRE_CHECK(cadre_run(strategy, make_one, NULL, NULL, 1, &output));
        cadre_per_replica_release(output);
        cadre_tensor_release(cadre_local_results(output, 0)[0]);
    }
}

static int program(const char *what)
{
    cadre_strategy *strategy;
    cadre_variable *variable;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, NULL, &variable));
    CADRE_CHECK(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    if (strcmp(what, "finishes") == 0) {
        CADRE_CHECK(cadre_report(strategy, "loss", 0.25));
        return cadre_finish(strategy);
    }
    if (strcmp(what, "releases") == 0) {
        release_again_and_again(strategy);
        return cadre_finish(strategy);
    }
    return strcmp(what, "forgets") == 0 ? 0 : 3;
}

/* What it printed to stderr, and its exit code. */
static int run_again(const char *what, const char *output_folder, char printed[PRINTED_BYTES])
{
    char file[TEST_PATH_BYTES];
    char mode[16];
    test_path(file, test_temp_dir(), "stderr");
    snprintf(mode, sizeof mode, "%s", what);
    unsetenv("CADRE_SOCKET");
    unsetenv("CADRE_REPLICAS");
    setenv("CADRE_OUTPUT_DIR", output_folder, 1);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, file, O_WRONLY | O_CREAT, 0600);
    pid_t pid;
    int status;
    char *const arguments[] = {mode, mode, NULL};
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    FILE *output = fopen(file, "r");
    assert_non_null(output);
    printed[fread(printed, 1, PRINTED_BYTES - 1, output)] = '\0';
    fclose(output);
    unlink(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_forgotten_end_is_reported(void **state)
{
    (void)state;
    char printed[PRINTED_BYTES];
    char folder[TEST_PATH_BYTES];
    test_path(folder, test_temp_dir(), "");
    assert_int_equal(run_again("forgets", folder, printed), 0);
    assert_non_null(strstr(printed, "after 1 steps without cadre_finish"));
    /* A function that fails with a message of its own keeps it. */
    assert_int_equal(run_again("fails", folder, printed), 3);
    assert_string_equal(printed, "");
}

/* How often the text has it: each text line once, and as often more as the line has. */
static uint64_t printed_count(const char *printed, const char *what, unsigned *ret_lines)
{
    uint64_t times = 0;
    *ret_lines = 0;
    for (const char *line = printed; (line = strstr(line, "cadre: warning: ")) != NULL; line++) {
        char own[1024];
        unsigned long long more = 0;
        snprintf(own, sizeof own, "%.*s", (int)strcspn(line, "\n"), line);
        if (strstr(own, what) == NULL) {
            continue;
        }
        const char *again = strstr(own, "(and ");
        const char *rest = strstr(own, "reference was released ");
        (void)(again != NULL  ? sscanf(again, "(and %llu", &more)
               : rest != NULL ? sscanf(rest, "reference was released %llu", &more)
                              : 0);
        times += more + (rest == NULL ? 1 : 0);
        ++*ret_lines;
    }
    return times;
}

static void a_mistake_in_each_step_does_not_fill_the_log(void **state)
{
    (void)state;
    char printed[PRINTED_BYTES];
    char folder[TEST_PATH_BYTES];
    unsigned lines;
    test_path(folder, test_temp_dir(), "");
    assert_int_equal(run_again("releases", folder, printed), 0);
    static const char *const whats[] = {"a value", "tensor"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(printed_count(printed, whats[i], &lines), AGAIN);
        assert_in_range(
            lines, LOG_RATELIMIT_BURST + 1, LOG_RATELIMIT_BURST + 8); /* one a minute more */
    }
}

static void steps_without_batches_are_counted(void **state)
{
    (void)state;
    char printed[PRINTED_BYTES];
    char folder[TEST_PATH_BYTES];
    test_path(folder, test_temp_dir(), "");
    assert_int_equal(run_again("finishes", folder, printed), 0);
    assert_string_equal(printed, "step 1  loss 0.25\n");
}

static void a_missing_output_folder_is_found_before_the_training(void **state)
{
    (void)state;
    char printed[PRINTED_BYTES];
    char folder[TEST_PATH_BYTES];
    test_path(folder, test_temp_dir(), "nowhere");
    assert_int_equal(run_again("forgets", folder, printed), 1);
    assert_non_null(strstr(printed, "cadre_variable_create"));
    assert_non_null(strstr(printed, "nowhere': No such file"));
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        return program(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_arguments_are_named),
        cmocka_unit_test(what_is_asked_of_null_is_nothing),
        cmocka_unit_test(nothing_is_done_after_the_end),
        cmocka_unit_test(batches_of_an_ended_strategy_are_refused),
        cmocka_unit_test(batches_of_another_strategy_are_refused),
        cmocka_unit_test(nothing_is_known_of_an_ended_variable),
        cmocka_unit_test(a_failed_step_does_not_hold_up_the_end),
        cmocka_unit_test(programs_say_why_they_fail),
        cmocka_unit_test(outputs_that_none_asked_for_are_refused),
        cmocka_unit_test(disagreements_are_reported_in_the_programs_words),
        cmocka_unit_test(broadcasts_compare_types),
        cmocka_unit_test(refusals_that_none_looks_at_fail_the_step),
        cmocka_unit_test(initial_values_make_sense),
        cmocka_unit_test(a_forgotten_end_is_reported),
        cmocka_unit_test(a_mistake_in_each_step_does_not_fill_the_log),
        cmocka_unit_test(steps_without_batches_are_counted),
        cmocka_unit_test(a_missing_output_folder_is_found_before_the_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
