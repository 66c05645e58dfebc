/* SPDX-License-Identifier: Apache-2.0
 * A program under a daemon: a whole small training over the socket, and daemons that are strange,
 * broken or gone. Each program is a child process, since a process initialises once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_daemon.h"
#include "training.h"

#define CHILD_SECONDS 20

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
            CADRE_CHECK(cadre_run(strategy, add_up, batch, 0, variable, NULL));
            CADRE_CHECK(cadre_report_f64(strategy, "progress", 1));
        }
    }
    fprintf(stderr, "sum %lld of %u replicas\n",
        (long long)*(const int64_t *)cadre_variable_read(NULL, variable),
        cadre_strategy_num_replicas_in_sync(strategy));
    return cadre_finish(strategy);
}

struct outcome {
    int exit_code;
    char text[4096];
};

/* Runs the program with these settings; a hang ends it by SIGALRM. */
static struct outcome run_child(const char *socket_path, const char *folder, uint64_t incarnation)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char number[24];
        snprintf(number, sizeof number, "%llu", (unsigned long long)incarnation);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(CHILD_SECONDS);
        setenv("CADRE_SOCKET", socket_path, 1);
        setenv("CADRE_JOB", "1", 1);
        setenv("CADRE_SLOT", "0", 1);
        setenv("CADRE_INCARNATION", number, 1);
        setenv("CADRE_REPLICAS", "3", 1);
        setenv("CADRE_OUTPUT_DIR", folder, 1);
        exit(train());
    }
    close(ends[1]);
    struct outcome outcome = {0};
    size_t used = 0;
    ssize_t size;
    while (used + 1 < sizeof outcome.text &&
           (size = read(ends[0], outcome.text + used, sizeof outcome.text - 1 - used)) > 0) {
        used += (size_t)size;
    }
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

static void check(enum fake_manner manner, int exit_code, const char *part)
{
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    test_path(path, folder, "task.sock");
    struct fake_daemon *daemon = fake_daemon_open(path, manner);
    struct outcome outcome = run_child(path, folder, fake_daemon_incarnation(daemon));
    if (outcome.exit_code != exit_code || strstr(outcome.text, part) == NULL) {
        print_error("exit code %d, text: %s\n", outcome.exit_code, outcome.text);
    }
    assert_int_equal(outcome.exit_code, exit_code);
    assert_non_null(strstr(outcome.text, part));
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

static void other_versions_are_told(void **state)
{
    (void)state;
    check(FAKE_OTHER_FRAME, 1, "FAILED_PRECONDITION");
    check(FAKE_STRANGER, 1, "INVALID_ARGUMENT");
}

static void broken_daemons_are_told(void **state)
{
    (void)state;
    check(FAKE_CLOSES, 1, "closed the connection");
    check(FAKE_GARBAGE, 1, "message of the worker daemon");
    check(FAKE_HUGE_FRAME, 1, "message of the worker daemon");
}

static void an_absent_daemon_is_told(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct outcome outcome = run_child(test_path(path, folder, "absent.sock"), folder, 1);
    assert_int_equal(outcome.exit_code, 1);
    assert_non_null(strstr(outcome.text, "UNAVAILABLE"));
    assert_non_null(strstr(outcome.text, "absent.sock"));
    test_write(path, "not a socket");
    outcome = run_child(path, folder, 1);
    assert_int_equal(outcome.exit_code, 1);
    assert_non_null(strstr(outcome.text, "UNAVAILABLE"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_trains_over_the_socket),
        cmocka_unit_test(a_connection_that_breaks_is_made_again),
        cmocka_unit_test(other_versions_are_told),
        cmocka_unit_test(broken_daemons_are_told),
        cmocka_unit_test(an_absent_daemon_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
