/* SPDX-License-Identifier: Apache-2.0
 * A daemon that starts again finds no process and no folder of its last incarnation, and touches
 * no others. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/files.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/removal.h"

/* A process whose environment names its task; it runs once this returns. */
static pid_t start(const char *socket)
{
    int fds[2];
    char byte = 0;
    char variable[TEST_PATH_BYTES];
    snprintf(variable, sizeof variable, "CADRE_SOCKET=%s", socket);
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {"sh", "-c", "trap '' TERM; echo; exec >&-; exec sleep 1000", NULL};
        char *const environment[] = {variable, "PATH=/usr/bin:/bin", NULL};
        dup2(fds[1], STDOUT_FILENO);
        execve("/bin/sh", argv, environment);
        _exit(1);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    return pid;
}

/* With --keep-tasks, the threads of the pool. */
static unsigned handed_over;

cadre_status removal_folder(struct daemon *daemon, const char *path, struct cadre_error *error)
{
    (void)daemon;
    (void)error;
    handed_over++;
    assert_non_null(strstr(path, "/tasks/1.0.1"));
    return CADRE_OK;
}

static bool is_killed(pid_t pid)
{
    int status = 0;
    return waitpid(pid, &status, WNOHANG) == pid && WIFSIGNALED(status);
}

static void only_what_is_ours_is_ended(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char file[TEST_PATH_BYTES];
    char ours[TEST_PATH_BYTES];
    char theirs[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    struct daemon daemon = {0};
    const char *folder = test_temp_dir();
    daemon.task_dir = strdup(test_path(path, folder, "tasks"));
    daemon.blob_dir = strdup(test_path(path, folder, "blobs"));
    assert_ok(folder_make(test_path(path, daemon.task_dir, "1.0.1/out"), 0700, &error), &error);
    test_write(test_path(file, path, "left"), "left");
    pid_t first = start(test_path(ours, daemon.task_dir, "1.0.1/socket"));
    pid_t second = start(ours);
    pid_t other = start(test_path(theirs, folder, "tasks-of-another/1.0.1/socket"));
    daemon.options.keep_tasks = true;
    assert_ok(leftovers_clear(&daemon, &error), &error);
    assert_int_equal(handed_over, 1);
    assert_int_equal(access(path, F_OK), 0);
    daemon.options.keep_tasks = false;
    assert_ok(leftovers_clear(&daemon, &error), &error);
    assert_int_equal(handed_over, 1);
    assert_true(is_killed(first));
    assert_true(is_killed(second));
    assert_false(is_killed(other));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(daemon.task_dir, F_OK), 0);
    assert_ok(leftovers_clear(&daemon, &error), &error); /* there is nothing */
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(waitpid(other, NULL, 0), other);
    free(daemon.blob_dir);
    free(daemon.task_dir);
}

static void what_had_not_come_whole_goes(void **state)
{
    (void)state;
    char part[TEST_PATH_BYTES];
    char whole[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    struct daemon daemon = {0};
    const char *folder = test_temp_dir();
    daemon.task_dir = strdup(test_path(part, folder, "tasks"));
    daemon.blob_dir = strdup(test_path(part, folder, "blobs"));
    assert_ok(leftovers_clear(&daemon, &error), &error); /* there is no such folder */
    assert_ok(folder_make(daemon.blob_dir, 0700, &error), &error);
    test_write(test_path(part, daemon.blob_dir, "fetch-1"), "half");
    test_write(test_path(whole, daemon.blob_dir, "5e884898da28"), "whole");
    assert_ok(leftovers_clear(&daemon, &error), &error);
    assert_int_equal(access(part, F_OK), -1);
    assert_int_equal(access(whole, F_OK), 0);
    free(daemon.blob_dir);
    free(daemon.task_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_ours_is_ended),
        cmocka_unit_test(what_had_not_come_whole_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
