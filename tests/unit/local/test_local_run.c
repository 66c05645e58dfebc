/* SPDX-License-Identifier: Apache-2.0
 * A cluster of one process runs programs without Cadre: how they end, what they print, where their
 * files go, how they are interrupted, and that nothing is left. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "deploy/local/local.h"

#define TASKS_MAX 4

struct run {
    struct local_options options;
    const char *arguments[2];
    int interrupts; /* to send once a task printed "ready" */
    int number;     /* of the signal */
    bool sent;
    char printed[TASKS_MAX][16384];
    char complained[TASKS_MAX][16384];
    unsigned changes;
    enum job_state state;
    int exit_code;
    char message[LIMIT_TEXT_BYTES];
    struct cadre_error error;
};

static const char *folder;  /* the working folder */
static const char *runtime; /* where sockets are made: empty before and after */

static void on_output(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size)
{
    struct run *run = user;
    assert_true(slot < TASKS_MAX);
    char *text = stream == 1 ? run->printed[slot] : run->complained[slot];
    size_t at = strlen(text);
    assert_true(at + size < sizeof run->printed[0]);
    memcpy(text + at, bytes, size);
    if (!run->sent && run->interrupts > 0 && strstr(text, "ready") != NULL) {
        run->sent = true;
        kill(getpid(), run->number);
    }
}

static void on_changed(void *user, const struct job_info *info)
{
    struct run *run = user;
    run->changes++;
    run->state = info->state;
    /* Once the first one was handled; earlier they could merge into one. */
    if (run->interrupts > 1 && info->state == JOB_ENDING) {
        run->interrupts = 1;
        kill(getpid(), run->number);
    }
}

static const struct local_watch watch = {.output = on_output, .changed = on_changed};

static bool is_empty(const char *path)
{
    unsigned count = 0;
    DIR *opened = opendir(path);
    assert_non_null(opened);
    for (const struct dirent *entry = readdir(opened); entry != NULL; entry = readdir(opened)) {
        count++;
    }
    closedir(opened);
    return count == 2; /* itself and the one above */
}

/* `sh -c script` in so many tasks. */
static struct run *run_of(uint32_t tasks, const char *script)
{
    static struct run run;
    run = (struct run){.arguments = {"-c", script}, .number = SIGINT};
    run.options = (struct local_options){.program = "sh",
        .arguments = run.arguments,
        .argument_count = 2,
        .tasks = tasks,
        .grace_us = 5 * CADRE_US_PER_S};
    return &run;
}

static cadre_status try_run(struct run *run)
{
    cadre_status status =
        local_run(&run->options, &watch, run, &run->exit_code, run->message, &run->error);
    assert_true(is_empty(runtime));
    return status;
}

static void finish(struct run *run)
{
    assert_ok(try_run(run), &run->error);
    assert_true(run->changes > 0);
}

static struct run *play(uint32_t tasks, const char *script)
{
    struct run *run = run_of(tasks, script);
    finish(run);
    return run;
}

static void success_is_reported(void **state)
{
    (void)state;
    struct run *run = play(2, "exit 0");
    assert_int_equal(run->exit_code, 0);
    assert_int_equal(run->state, JOB_SUCCEEDED);
    assert_null(strstr(run->message, "failed"));
}

static void failure_is_reported(void **state)
{
    (void)state;
    struct run *run = run_of(1, "");
    run->options.program = "false";
    run->options.argument_count = 0;
    finish(run);
    assert_int_equal(run->exit_code, 1);
    assert_int_equal(run->state, JOB_FAILED);
    run = play(1, "echo the reason >&2; exit 3");
    assert_int_equal(run->exit_code, 3);
    assert_non_null(strstr(run->message, "the reason"));
    run = play(1, "kill -9 $$");
    assert_int_equal(run->exit_code, 128 + SIGKILL);
    assert_int_equal(run->state, JOB_FAILED);
    assert_string_not_equal(run->message, "");
}

static void one_failure_ends_the_others(void **state)
{
    (void)state;
    uint64_t from_us = clock_monotonic_us();
    struct run *run = play(3, "test $CADRE_SLOT = 1 && exit 4; exec sleep 1000");
    assert_int_equal(run->exit_code, 4);
    assert_int_equal(run->state, JOB_FAILED);
    assert_true(clock_monotonic_us() - from_us < speed_scaled_us(5 * CADRE_US_PER_S));
}

static void every_tasks_output_is_its_own(void **state)
{
    (void)state;
    struct run *run =
        play(4, "i=0; while test $i -lt 300; do echo $CADRE_SLOT $i; i=$((i+1)); done; "
                "echo complaint of $CADRE_SLOT >&2; printf 'no newline'");
    for (unsigned slot = 0; slot < 4; slot++) {
        char wanted[16384] = "";
        for (unsigned i = 0; i < 300; i++) {
            snprintf(wanted + strlen(wanted), 32, "%u %u\n", slot, i);
        }
        snprintf(wanted + strlen(wanted), 32, "no newline");
        assert_string_equal(run->printed[slot], wanted);
        snprintf(wanted, sizeof wanted, "complaint of %u\n", slot);
        assert_string_equal(run->complained[slot], wanted);
    }
}

static void it_runs_where_the_caller_is(void **state)
{
    (void)state;
    assert_int_equal(setenv("TEST_OURS", "inherited", 1), 0);
    struct run *run = run_of(1, "pwd -P; echo $TEST_OURS $TEST_THEIRS; pwd -P >&2; "
                                "echo $CADRE_OUTPUT_DIR; read x || echo no input");
    static const char *const environment[] = {"TEST_THEIRS=given"};
    run->options.environment = environment;
    run->options.environment_count = 1;
    finish(run);
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s\ninherited given\n%s\nno input\n", folder, folder);
    assert_string_equal(run->printed[0], wanted);
}

static void assert_left(const char *path, const char *wanted)
{
    char *bytes = NULL;
    size_t size = 0;
    struct cadre_error error = {0};
    assert_ok(file_read(path, 100, &bytes, &size, &error), &error);
    assert_string_equal(bytes, wanted);
    free(bytes);
}

static void every_task_has_its_output_folder(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct run *run = run_of(2, "echo by $CADRE_SLOT > $CADRE_OUTPUT_DIR/file");
    run->options.output = "left/by/tasks"; /* below the working folder, made on the way */
    finish(run);
    assert_left(test_path(path, folder, "left/by/tasks/0/file"), "by 0\n");
    assert_left(test_path(path, folder, "left/by/tasks/1/file"), "by 1\n");
    run->options.output = test_path(path, folder, "absolute");
    finish(run);
    assert_left("absolute/1/file", "by 1\n");
    test_write("in-the-way", "a file");
    run->options.output = "in-the-way";
    assert_error(try_run(run), CADRE_NOT_FOUND, &run->error, "in-the-way is a file");
}

static void programs_are_found_as_a_shell_would(void **state)
{
    (void)state;
    struct run *run = run_of(1, "");
    run->options.argument_count = 0;
    run->options.program = "no-such-program-anywhere";
    assert_error(try_run(run), CADRE_NOT_FOUND, &run->error, "no-such-program-anywhere");
    run->options.program = "./not-here";
    assert_error(try_run(run), CADRE_NOT_FOUND, &run->error, "./not-here");
    run->options.program = "";
    assert_error(try_run(run), CADRE_NOT_FOUND, &run->error, "cannot start");
    run->options.program = "/tmp";
    assert_error(try_run(run), CADRE_INVALID_ARGUMENT, &run->error, "no regular file");
    test_write("script", "#!/bin/sh\necho it is I\n");
    run->options.program = "./script";
    assert_error(try_run(run), CADRE_PERMISSION_DENIED, &run->error, "not executable");
    assert_int_equal(chmod("script", 0755), 0);
    finish(run);
    assert_string_equal(run->printed[0], "it is I\n");
    test_write("plain", "no interpreter\n");
    assert_int_equal(chmod("plain", 0755), 0);
    run->options.program = "./plain";
    finish(run);
    assert_int_equal(run->exit_code, 126);
    assert_non_null(strstr(run->message, "neither a program nor a script"));
}

static void the_number_of_tasks_is_checked(void **state)
{
    (void)state;
    struct run *run = run_of(0, "exit 0");
    assert_error(try_run(run), CADRE_INVALID_ARGUMENT, &run->error, "1 to 1024 tasks");
    run->options.tasks = UINT32_MAX;
    assert_error(try_run(run), CADRE_INVALID_ARGUMENT, &run->error, "4294967295");
    assert_int_equal(run->changes, 0);
}

static void an_interrupt_cancels_in_order(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct run *run = run_of(2, "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait");
        run->interrupts = 1;
        run->number = numbers[i];
        finish(run);
        assert_int_equal(run->state, JOB_CANCELLED);
        assert_int_not_equal(run->exit_code, 0);
        assert_true(strstr(run->printed[0], "bye") != NULL || strstr(run->printed[1], "bye"));
    }
}

static void who_resists_is_killed_after_the_grace(void **state)
{
    (void)state;
    struct run *run = run_of(1, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    run->interrupts = 1;
    run->options.grace_us = 50 * CADRE_US_PER_MS;
    finish(run);
    assert_int_equal(run->state, JOB_CANCELLED);
}

static void a_second_interrupt_ends_at_once(void **state)
{
    (void)state;
    struct run *run = run_of(1, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    run->interrupts = 2;
    run->options.grace_us = 1000 * CADRE_US_PER_S;
    uint64_t from_us = clock_monotonic_us();
    assert_error(try_run(run), CADRE_CANCELLED, &run->error, "interrupted");
    assert_true(clock_monotonic_us() - from_us < speed_scaled_us(10 * CADRE_US_PER_S));
}

static void an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    struct run *run = run_of(1, "echo ready; exit 0");
    signal(SIGHUP, SIG_IGN);
    run->interrupts = 1;
    run->number = SIGHUP;
    finish(run);
    assert_true(run->sent);
    assert_int_equal(run->state, JOB_SUCCEEDED);
    signal(SIGHUP, SIG_DFL);
}

static void nothing_is_left_running(void **state)
{
    (void)state;
    struct run *run =
        play(2, "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!; sleep 1000 & echo $!");
    for (unsigned slot = 0; slot < 2; slot++) {
        char *next = run->printed[slot];
        for (int i = 0; i < 2; i++) {
            long pid = strtol(next, &next, 10);
            assert_true(pid > 1);
            assert_int_equal(kill((pid_t)pid, 0), -1);
            assert_int_equal(errno, ESRCH);
        }
    }
}

/* In a process of its own; the numbers of its tasks come through the pipe. */
_Noreturn static void be_killed(int fd, const char *sockets)
{
    setenv("XDG_RUNTIME_DIR", sockets, 1); /* what it leaves there is not the others' */
    char script[64];
    snprintf(script, sizeof script, "echo $$ >/proc/%d/fd/%d; exec sleep 1000", (int)getpid(), fd);
    struct run *run = run_of(2, script);
    (void)local_run(&run->options, &watch, run, &run->exit_code, run->message, &run->error);
    _exit(1);
}

static void tasks_die_with_it(void **state)
{
    (void)state;
    int fds[2];
    int status = 0;
    char numbers[64] = "";
    const char *sockets = test_temp_dir();
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t pid = fork();
    if (pid == 0) {
        be_killed(fds[1], sockets);
    }
    for (size_t got = 0; strchr(numbers, '\n') == strrchr(numbers, '\n');) {
        ssize_t more = read(fds[0], numbers + got, sizeof numbers - 1 - got);
        assert_true(more > 0);
        got += (size_t)more;
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    char *next = numbers;
    for (int i = 0; i < 2; i++) {
        pid_t task = (pid_t)strtol(next, &next, 10);
        while (kill(task, 0) == 0) { /* their keepers became ours, and are what ends them */
            assert_true(waitpid(-1, &status, 0) > 0);
        }
    }
    close(fds[0]);
    close(fds[1]);
}

static void a_runtime_folder_that_is_not_there_is_no_matter(void **state)
{
    (void)state;
    static const char *const bad[] = {"/nowhere/at/all", "relative", "",
        "/a/path/that/is/much/too/long/for/the/name/of/a/socket/in/it/whatever/one/does/about/it"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(setenv("XDG_RUNTIME_DIR", bad[i], 1), 0);
        struct run *run = play(1, "echo $CADRE_SOCKET");
        assert_memory_equal(run->printed[0], "/tmp/cadre-", 11);
        *strrchr(run->printed[0], '/') = '\0';
        assert_int_equal(access(run->printed[0], F_OK), -1);
    }
    assert_int_equal(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
}

static int set_up(void **state)
{
    (void)state;
    folder = realpath(test_temp_dir(), NULL);
    runtime = test_temp_dir();
    return folder == NULL || chdir(folder) != 0 || setenv("XDG_RUNTIME_DIR", runtime, 1) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    free((void *)(uintptr_t)folder);
    return chdir("/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(success_is_reported),
        cmocka_unit_test(failure_is_reported), cmocka_unit_test(one_failure_ends_the_others),
        cmocka_unit_test(every_tasks_output_is_its_own),
        cmocka_unit_test(it_runs_where_the_caller_is),
        cmocka_unit_test(every_task_has_its_output_folder),
        cmocka_unit_test(programs_are_found_as_a_shell_would),
        cmocka_unit_test(the_number_of_tasks_is_checked),
        cmocka_unit_test(an_interrupt_cancels_in_order),
        cmocka_unit_test(who_resists_is_killed_after_the_grace),
        cmocka_unit_test(a_second_interrupt_ends_at_once),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(nothing_is_left_running), cmocka_unit_test(tasks_die_with_it),
        cmocka_unit_test(a_runtime_folder_that_is_not_there_is_no_matter)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
