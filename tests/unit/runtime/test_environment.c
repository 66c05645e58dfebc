/* SPDX-License-Identifier: Apache-2.0
 * The variables of a daemon, and values that it must not set. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/api/environment.h"

static const char *const names[] = {"CADRE_SOCKET", "CADRE_JOB", "CADRE_SLOT", "CADRE_INCARNATION",
    "CADRE_TASKS", "CADRE_TASKS_MIN", "CADRE_REPLICAS", "CADRE_STRATEGY", "CADRE_MESH_HOST",
    "CADRE_OUTPUT_DIR", "CADRE_TASK_FRAME", "CADRE_PREEMPTION", "CADRE_DAEMON_PID",
    "CADRE_DAEMON_RETURNS", "CADRE_COLLECTIVE_TIMEOUT_S", "CADRE_RESTORE", "CADRE_CHECKPOINT_EVERY",
    "CADRE_CHECKPOINT_DIR", "CADRE_CHECKPOINTS_KEPT", "CADRE_VERIFY_STATE", "CADRE_VERIFY_LOSSES",
    "CADRE_CLUSTER", "CADRE_CLUSTER_PORT", "CADRE_CLUSTER_WAIT_S", "CADRE_CLUSTER_GRACE_S",
    "CADRE_CLUSTER_KEY_FILE", "CADRE_CLUSTER_INSECURE", "CADRE_TASK_TYPE", "CADRE_TASK_INDEX",
    "CADRE_WORKERS", "CADRE_SERVERS", "CADRE_EVALUATORS", "CADRE_SERVER_BACKUPS",
    "CADRE_SERVER_MEMORY", "CADRE_MESH_PORTS", "CADRE_EVENTS", "CADRE_OBJECT_NEIGHBOURS"};

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
    return 0;
}

static void nothing_means_by_hand(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.attached);
    assert_int_equal(environment.tasks, 1);
    assert_int_equal(environment.tasks_min, 1);
    assert_int_equal(environment.replicas, 0);
    assert_string_equal(environment.mesh_host, "127.0.0.1");
    assert_string_equal(environment.output_folder, ".");
    assert_false(environment.output_asked);
    assert_false(environment.checkpoints_asked);
    assert_int_equal(environment.collective_timeout_us, 1800000000);
    assert_true(environment.by_hand);
    assert_false(environment.mesh_host_given);
    assert_false(environment.cluster_ignored);
    assert_false(environment.cluster_insecure);
    assert_string_equal(environment.cluster_key_path, "");
    assert_int_equal(environment.cluster_port, 0);
    assert_int_equal(environment.cluster_wait_us, 300000000);
    assert_int_equal(environment.cluster_grace_us, 30000000);
    assert_int_equal(environment.role, ROLE_NONE);
    assert_int_equal(environment.ps_job.workers, 1);
    assert_int_equal(environment.ps_job.servers, 1);
    assert_int_equal(environment.server_memory, -1);
    assert_int_equal(port_range_count(&environment.mesh_ports), 0);
}

static void attach(void)
{
    setenv("CADRE_SOCKET", "/run/task.sock", 1);
    setenv("CADRE_JOB", "7", 1);
    setenv("CADRE_SLOT", "2", 1);
    setenv("CADRE_INCARNATION", "3", 1);
    setenv("CADRE_TASKS", "4", 1);
    setenv("CADRE_TASKS_MIN", "3", 1);
    setenv("CADRE_REPLICAS", "2", 1);
    setenv("CADRE_TASK_FRAME", "8", 1);
    setenv("CADRE_STRATEGY", "", 1);
}

static void a_daemon_says_it_all(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    attach();
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.attached);
    assert_string_equal(environment.socket_path, "/run/task.sock");
    assert_int_equal(environment.job, 7);
    assert_int_equal(environment.slot, 2);
    assert_int_equal(environment.incarnation, 3);
    assert_int_equal(environment.tasks, 4);
    assert_int_equal(environment.tasks_min, 3);
    assert_int_equal(environment.replicas, 2);
    setenv("CADRE_COLLECTIVE_TIMEOUT_S", "3", 1);
    setenv("CADRE_MESH_PORTS", "47000:47009", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.collective_timeout_us, 3000000);
    assert_int_equal(environment.mesh_ports.first, 47000);
    assert_int_equal(environment.mesh_ports.last, 47009);
}

static void a_cluster_by_hand_has_settings(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    setenv("CADRE_CLUSTER", "none", 1);
    setenv("CADRE_CLUSTER_PORT", "4000", 1);
    setenv("CADRE_CLUSTER_WAIT_S", "5", 1);
    setenv("CADRE_CLUSTER_GRACE_S", "0", 1);
    setenv("CADRE_CLUSTER_KEY_FILE", "/etc/key", 1);
    setenv("CADRE_CLUSTER_INSECURE", "1", 1);
    setenv("CADRE_MESH_HOST", "10.0.0.1", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.cluster_ignored);
    assert_true(environment.cluster_insecure);
    assert_true(environment.mesh_host_given);
    assert_string_equal(environment.cluster_key_path, "/etc/key");
    assert_int_equal(environment.cluster_port, 4000);
    assert_int_equal(environment.cluster_wait_us, 5000000);
    assert_int_equal(environment.cluster_grace_us, 0);
    setenv("CADRE_CLUSTER", "auto", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.cluster_ignored);
}

static void malformed_settings_of_a_cluster_are_named(void **state)
{
    static const char *const cases[][2] = {{"CADRE_CLUSTER", "off"}, {"CADRE_CLUSTER", ""},
        {"CADRE_CLUSTER_PORT", "0"}, {"CADRE_CLUSTER_PORT", "65536"}, {"CADRE_CLUSTER_WAIT_S", "0"},
        {"CADRE_CLUSTER_WAIT_S", "1.5"}, {"CADRE_CLUSTER_GRACE_S", "-1"},
        {"CADRE_CLUSTER_INSECURE", "yes"}, {"CADRE_CLUSTER_INSECURE", "2"},
        {"CADRE_CLUSTER_KEY_FILE", ""}};
    struct environment environment;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        clear(state);
        setenv(cases[i][0], cases[i][1], 1);
        assert_error(
            environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error, cases[i][0]);
        attach(); /* a daemon's program does not read them */
        assert_ok(environment_read(&environment, &error), &error);
        assert_false(environment.by_hand);
    }
}

static void a_folder_may_be_in_an_object_store(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    static const char *const folders[][2] = {{"s3://bucket/run 1", "s3://bucket/run 1"},
        {"s3://bucket/run//", "s3://bucket/run"}, {"s3://bucket/", "s3://bucket"}};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        setenv("CADRE_CHECKPOINT_DIR", folders[i][0], 1);
        assert_ok(environment_read(&environment, &error), &error);
        assert_string_equal(environment.checkpoint_folder, folders[i][1]);
    }
    setenv("CADRE_CHECKPOINT_DIR", "s3://", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_CHECKPOINT_DIR is 's3://', which names no bucket: write s3://BUCKET/KEY");
    setenv("CADRE_CHECKPOINT_DIR", "gs://bucket/run", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_CHECKPOINT_DIR is 'gs://bucket/run', which begins with");
}

static void malformed_values_are_named(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"CADRE_TASKS", "0"}, {"CADRE_TASKS", "16385"},
        {"CADRE_TASKS", "two"}, {"CADRE_TASKS", ""}, {"CADRE_TASKS", "-1"}, {"CADRE_TASKS", " 4"},
        {"CADRE_TASKS", "4 "}, {"CADRE_TASKS", "99999999999999999999999"}, {"CADRE_TASKS_MIN", "5"},
        {"CADRE_TASKS_MIN", "0"}, {"CADRE_SLOT", "4"}, {"CADRE_SLOT", "0x1"},
        {"CADRE_REPLICAS", "257"}, {"CADRE_REPLICAS", "1e2"}, {"CADRE_JOB", "0"},
        {"CADRE_INCARNATION", "0"}, {"CADRE_MESH_HOST", ""}, {"CADRE_MESH_PORTS", "47000"},
        {"CADRE_MESH_PORTS", ""}, {"CADRE_MESH_PORTS", "9:8"}, {"CADRE_OUTPUT_DIR", ""},
        {"CADRE_SOCKET", ""}, {"CADRE_STRATEGY", "star"}, {"CADRE_TASK_FRAME", "new"},
        {"CADRE_COLLECTIVE_TIMEOUT_S", "1.5"}, {"CADRE_COLLECTIVE_TIMEOUT_S", "-1"},
        {"CADRE_VERIFY_STATE", "0"}, {"CADRE_VERIFY_STATE", "on"}, {"CADRE_VERIFY_STATE", "-5"},
        {"CADRE_VERIFY_STATE", ""}, {"CADRE_VERIFY_STATE", "10 steps"},
        {"CADRE_VERIFY_STATE", "1000000001"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct environment environment;
        attach();
        setenv(cases[i][0], cases[i][1], 1);
        assert_error(
            environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error, cases[i][0]);
        unsetenv("CADRE_MESH_HOST");
        unsetenv("CADRE_MESH_PORTS");
        unsetenv("CADRE_OUTPUT_DIR");
        unsetenv("CADRE_COLLECTIVE_TIMEOUT_S");
        unsetenv("CADRE_VERIFY_STATE");
    }
    char path[200];
    memset(path, 'a', sizeof path);
    path[199] = '\0';
    struct cadre_error error = {0};
    struct environment environment;
    setenv("CADRE_SOCKET", path, 1);
    setenv("CADRE_TASK_FRAME", "8", 1);
    setenv("CADRE_STRATEGY", "mirrored", 1);
    assert_error(
        environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error, "CADRE_SOCKET");
}

static void checkpoints_are_as_asked(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.checkpoint_every, 0);
    assert_int_equal(environment.checkpoints_kept, LIMIT_CHECKPOINTS_KEPT_DEFAULT);
    assert_string_equal(environment.restore_path, "");
    assert_string_equal(environment.checkpoint_folder, "");
    setenv("CADRE_RESTORE", "/old/checkpoint-7.json", 1);
    setenv("CADRE_CHECKPOINT_EVERY", "100", 1);
    setenv("CADRE_CHECKPOINT_DIR", "/shared", 1);
    setenv("CADRE_CHECKPOINTS_KEPT", "5", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.checkpoint_every, 100);
    assert_int_equal(environment.checkpoints_kept, 5);
    assert_string_equal(environment.restore_path, "/old/checkpoint-7.json");
    assert_string_equal(environment.checkpoint_folder, "/shared");
    setenv("CADRE_CHECKPOINTS_KEPT", "0", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_CHECKPOINTS_KEPT is '0'");
}

static void states_are_compared_as_asked(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.verify_off);
    assert_int_equal(environment.verify_every, 0);
    setenv("CADRE_VERIFY_STATE", "250", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.verify_off);
    assert_int_equal(environment.verify_every, 250);
    setenv("CADRE_VERIFY_STATE", "off", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.verify_off && !environment.verify_losses);
    setenv("CADRE_VERIFY_LOSSES", "on", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_VERIFY_LOSSES is on and CADRE_VERIFY_STATE is off: what is not compared");
    unsetenv("CADRE_VERIFY_STATE");
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.verify_losses);
    setenv("CADRE_VERIFY_LOSSES", "off", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.verify_losses);
    setenv("CADRE_VERIFY_LOSSES", "1", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_VERIFY_LOSSES is '1'; set it to on or off, or unset it");
}

static void neighbours_are_asked_for(void **state)
{
    (void)state;
    struct environment environment;
    struct cadre_error error = {0};
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.object_neighbours);
    setenv("CADRE_OBJECT_NEIGHBOURS", "on", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.object_neighbours);
    setenv("CADRE_OBJECT_NEIGHBOURS", "off", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.object_neighbours);
    setenv("CADRE_OBJECT_NEIGHBOURS", "yes", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_OBJECT_NEIGHBOURS is 'yes'; set it to on or off, or unset it");
}

static void event_files_are_asked_for(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.events, EVENTS_BESIDE_OUTPUTS);
    setenv("CADRE_EVENTS", "off", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.events, EVENTS_OFF);
    setenv("CADRE_EVENTS", "on", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.events, EVENTS_ON);
    assert_string_equal(environment.events_folder, "");
    setenv("CADRE_EVENTS", "/runs/a", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.events, EVENTS_ON);
    assert_string_equal(environment.events_folder, "/runs/a");
    setenv("CADRE_EVENTS", "runs/a", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_EVENTS is 'runs/a'; set it to on, off, or the absolute path of a folder");
}

static void sigterm_is_a_notice_under_a_daemon(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.preemption);
    setenv("CADRE_PREEMPTION", "on", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.preemption);
    attach();
    unsetenv("CADRE_PREEMPTION");
    setenv("CADRE_DAEMON_PID", "77", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.preemption && environment.daemon_pid == 77);
    setenv("CADRE_PREEMPTION", "off", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.preemption);
    setenv("CADRE_PREEMPTION", "maybe", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_PREEMPTION is 'maybe'");
}

/* Only a daemon that sets it comes back to its tasks. */
static void a_daemon_says_whether_it_returns(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    attach();
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.daemon_returns);
    setenv("CADRE_DAEMON_RETURNS", "1", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_true(environment.daemon_returns);
    setenv("CADRE_DAEMON_RETURNS", "0", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_false(environment.daemon_returns);
    setenv("CADRE_DAEMON_RETURNS", "2", 1);
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_DAEMON_RETURNS is '2'");
}

static void other_frames_are_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    attach();
    setenv("CADRE_TASK_FRAME", "9", 1);
    assert_error(environment_read(&environment, &error), CADRE_FAILED_PRECONDITION, &error,
        "uses version 9");
}

static void half_an_attachment_is_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    attach();
    unsetenv("CADRE_INCARNATION");
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_INCARNATION is not");
    attach();
    unsetenv("CADRE_SOCKET");
    assert_error(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT, &error,
        "CADRE_SOCKET is not set");
}

/* A ps of 2 workers, 3 servers and an evaluator. */
static void serve(void)
{
    setenv("CADRE_SOCKET", "/run/task.sock", 1);
    setenv("CADRE_JOB", "7", 1);
    setenv("CADRE_SLOT", "4", 1);
    setenv("CADRE_INCARNATION", "3", 1);
    setenv("CADRE_TASKS", "1", 1);
    setenv("CADRE_STRATEGY", "parameter_server", 1);
    setenv("CADRE_TASK_TYPE", "ps", 1);
    setenv("CADRE_TASK_INDEX", "1", 1);
    setenv("CADRE_WORKERS", "2", 1);
    setenv("CADRE_SERVERS", "3", 1);
    setenv("CADRE_EVALUATORS", "1", 1);
    setenv("CADRE_SERVER_BACKUPS", "1", 1);
    setenv("CADRE_SERVER_MEMORY", "9", 1);
}

static void a_daemon_says_what_a_task_of_a_ps_job_is(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    serve();
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.role, ROLE_SERVER);
    assert_int_equal(environment.index, 1);
    assert_int_equal(environment.slot, 4);
    assert_int_equal(environment.tasks, 1);
    assert_int_equal(environment.ps_job.workers, 2);
    assert_int_equal(environment.ps_job.servers, 3);
    assert_int_equal(environment.ps_job.evaluators, 1);
    assert_true(environment.ps_job.backups);
    assert_int_equal(environment.server_memory, 9);
    unsetenv("CADRE_SERVER_MEMORY");
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.server_memory, -1);
}

static void what_a_task_of_a_ps_job_cannot_be(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *value; /* NULL: absent */
        const char *part;
    } cases[] = {
        {"CADRE_TASK_TYPE", "boss", "'boss'"},
        {"CADRE_TASK_TYPE", "", "CADRE_TASK_TYPE is ''"},
        {"CADRE_TASK_TYPE", "worker", "worker 1 of 2 workers and 3 servers has slot 2"},
        {"CADRE_TASK_INDEX", "3", "from 0 to 2"},
        {"CADRE_TASK_INDEX", NULL, "CADRE_TASK_INDEX is not"},
        {"CADRE_WORKERS", NULL, "CADRE_WORKERS is not"},
        {"CADRE_WORKERS", "0", "CADRE_WORKERS is '0'"},
        {"CADRE_SERVERS", "x", "CADRE_SERVERS is 'x'"},
        {"CADRE_EVALUATORS", "2", "from 0 to 1"},
        {"CADRE_SERVER_BACKUPS", "yes", "CADRE_SERVER_BACKUPS is 'yes'"},
        {"CADRE_SERVER_MEMORY", "-1", "CADRE_SERVER_MEMORY is '-1'"},
        {"CADRE_SLOT", "7", "CADRE_SLOT is '7'"},
        {"CADRE_SLOT", "3", "has slot 4"},
        {"CADRE_SOCKET", NULL, "CADRE_SOCKET is not"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct environment environment;
        serve();
        if (cases[i].value == NULL) {
            unsetenv(cases[i].name);
        } else {
            setenv(cases[i].name, cases[i].value, 1);
        }
        assert_int_equal(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT);
        if (strstr(error.text, cases[i].part) == NULL) {
            print_error("%s\n", error.text);
        }
        assert_non_null(strstr(error.text, cases[i].part));
    }
}

static void a_ps_job_by_hand_has_so_many_threads(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    setenv("CADRE_WORKERS", "64", 1);
    setenv("CADRE_SERVERS", "3", 1);
    assert_ok(environment_read(&environment, &error), &error);
    assert_int_equal(environment.role, ROLE_NONE);
    assert_int_equal(environment.ps_job.workers, 64);
    assert_int_equal(environment.ps_job.servers, 3);
    setenv("CADRE_WORKERS", "65", 1);
    assert_int_equal(environment_read(&environment, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "from 1 to 64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_means_by_hand, clear),
        cmocka_unit_test_setup(a_daemon_says_it_all, clear),
        cmocka_unit_test_setup(a_cluster_by_hand_has_settings, clear),
        cmocka_unit_test_setup(malformed_settings_of_a_cluster_are_named, clear),
        cmocka_unit_test_setup(a_folder_may_be_in_an_object_store, clear),
        cmocka_unit_test_setup(malformed_values_are_named, clear),
        cmocka_unit_test_setup(states_are_compared_as_asked, clear),
        cmocka_unit_test_setup(neighbours_are_asked_for, clear),
        cmocka_unit_test_setup(event_files_are_asked_for, clear),
        cmocka_unit_test_setup(sigterm_is_a_notice_under_a_daemon, clear),
        cmocka_unit_test_setup(a_daemon_says_whether_it_returns, clear),
        cmocka_unit_test_setup(other_frames_are_refused, clear),
        cmocka_unit_test_setup(checkpoints_are_as_asked, clear),
        cmocka_unit_test_setup(half_an_attachment_is_refused, clear),
        cmocka_unit_test_setup(a_daemon_says_what_a_task_of_a_ps_job_is, clear),
        cmocka_unit_test_setup(what_a_task_of_a_ps_job_cannot_be, clear),
        cmocka_unit_test_setup(a_ps_job_by_hand_has_so_many_threads, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
