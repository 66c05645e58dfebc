/* SPDX-License-Identifier: Apache-2.0
 * A program under a daemon: a whole small training over the socket, and daemons that are strange,
 * broken or absent. Each program is a child process, because a process initialises once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fake_daemon.h"
#include "tests/lib/program.h"
#include "training.h"

static cadre_status add_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const int64_t *rows = cadre_tensor_const_data(inputs[0]);
    cadre_tensor *sum;
    int64_t local = 0;
    for (int64_t i = 0; i < cadre_tensor_rows(inputs[0]); i++) {
        local += rows[i];
    }
    (void)outputs;
    CADRE_TRY(cadre_tensor_from_i64(local, &sum));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &sum, 1, NULL);
    if (status == CADRE_OK) {
        *(int64_t *)cadre_variable_write(replica, user) +=
            *(const int64_t *)cadre_tensor_const_data(sum);
    }
    cadre_tensor_release(sum);
    return status;
}

/* What the program prints is what the test looks at. */
static int train(void)
{
    cadre_strategy *strategy;
    cadre_variable *variable;
    cadre_distributed_dataset *data;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "sum", CADRE_I64, 0, NULL, NULL, &variable));
    CADRE_CHECK(cadre_distribute_dataset(
        strategy, cadre_dataset_batch(cadre_dataset_range(0, 100, 1), 4, false), NULL, &data));
    while (cadre_next_epoch(data, 4, NULL)) {
        cadre_per_replica *batch;
        while (cadre_next(data, &batch) == CADRE_OK) {
            CADRE_CHECK(cadre_run(strategy, add_up, variable, batch, 0, NULL));
            CADRE_CHECK(cadre_report(strategy, "progress", 1));
        }
    }
    fprintf(stderr, "sum %lld of %u replicas\n",
        (long long)*(const int64_t *)cadre_variable_read(NULL, variable),
        cadre_strategy_num_replicas_in_sync(strategy));
    return cadre_finish(strategy);
}

static const char *self;

/* Runs this test again as the program, under the daemon at that socket. */
static void run_program(const char *socket_path, const char *folder, uint64_t incarnation,
    struct program_result *ret_result)
{
    char socket_setting[TEST_PATH_BYTES + 32];
    char folder_setting[TEST_PATH_BYTES + 32];
    char incarnation_setting[64];
    snprintf(socket_setting, sizeof socket_setting, "CADRE_SOCKET=%s", socket_path);
    snprintf(folder_setting, sizeof folder_setting, "CADRE_OUTPUT_DIR=%s", folder);
    snprintf(incarnation_setting, sizeof incarnation_setting, "CADRE_INCARNATION=%llu",
        (unsigned long long)incarnation);
    const char *const argv[] = {self, "train", NULL};
    const char *const environment[] = {socket_setting, folder_setting, incarnation_setting,
        "CADRE_JOB=1", "CADRE_SLOT=0", "CADRE_REPLICAS=3", NULL};
    program_run(&(struct program_spec){.argv = argv, .environment = environment}, ret_result);
}

static void check(enum fake_manner manner, int exit_code, const char *part)
{
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    test_path(path, folder, "task.sock");
    struct fake_daemon *daemon = fake_daemon_open(path, manner);
    struct program_result result;
    run_program(path, folder, fake_daemon_incarnation(daemon), &result);
    if (result.exit_code != exit_code || strstr(result.err, part) == NULL) {
        print_error("exit code %d, text: %s\n", result.exit_code, result.err);
    }
    assert_int_equal(result.exit_code, exit_code);
    assert_non_null(strstr(result.err, part));
    program_result_free(&result);
    if (exit_code == 0) {
        assert_int_equal(access(test_path(path, folder, "checkpoint-100.safetensors"), R_OK), 0);
        assert_int_equal(fake_daemon_connections(daemon), manner == FAKE_DROPS_ONCE ? 2 : 1);
    }
    fake_daemon_close(daemon);
}

static void a_program_trains_over_the_socket(void **state)
{
    (void)state;
    check(FAKE_PROPER, 0, "sum 19800 of 3 replicas");
}

static void a_connection_that_breaks_is_made_again(void **state)
{
    (void)state;
    check(FAKE_DROPS_ONCE, 0, "sum 19800 of 3 replicas");
}

static void other_versions_are_reported(void **state)
{
    (void)state;
    check(FAKE_OTHER_FRAME, 1, "FAILED_PRECONDITION");
    check(FAKE_UNREGISTERED, 1, "INVALID_ARGUMENT");
}

static void broken_daemons_are_reported(void **state)
{
    (void)state;
    check(FAKE_CLOSES, 1, "closed the connection");
    check(FAKE_GARBAGE, 1, "message of the worker daemon");
    check(FAKE_HUGE_FRAME, 1, "message of the worker daemon");
}

static void an_absent_daemon_is_reported(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct program_result result;
    run_program(test_path(path, folder, "absent.sock"), folder, 1, &result);
    assert_int_equal(result.exit_code, 1);
    assert_non_null(strstr(result.err, "UNAVAILABLE"));
    assert_non_null(strstr(result.err, "absent.sock"));
    program_result_free(&result);
    test_write(path, "not a socket");
    run_program(path, folder, 1, &result);
    assert_int_equal(result.exit_code, 1);
    assert_non_null(strstr(result.err, "UNAVAILABLE"));
    program_result_free(&result);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "train") == 0) {
        return train();
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_trains_over_the_socket),
        cmocka_unit_test(a_connection_that_breaks_is_made_again),
        cmocka_unit_test(other_versions_are_reported),
        cmocka_unit_test(broken_daemons_are_reported),
        cmocka_unit_test(an_absent_daemon_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
