/* SPDX-License-Identifier: Apache-2.0
 * `cadre run` is killed: nothing that its tasks have started is left, nor a folder of it. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "deploy/local/local.h"

#define DEADLINE_US (20 * CADRE_US_PER_S)
/* One is left in the task's session, one has left it, one lives in a folder of its own. */
#define CHILDREN 3

static const char script[] =
    "sh -c 'echo $$; exec sleep 1000' &"
    " setsid sh -c 'echo $$; exec sleep 1000' &"
    " (cd /; exec setsid sh -c 'echo $$; trap \"\" TERM HUP; sleep 1000') &"
    " wait";

static const char *runtime;
static int numbers_fd;

static void pass_on(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size)
{
    (void)user;
    (void)slot;
    (void)stream;
    assert_int_equal(write(numbers_fd, bytes, size), size);
}

static void ignore(void *user, const struct job_info *info)
{
    (void)user;
    (void)info;
}

static void run(const char *text)
{
    const char *arguments[] = {"-c", text};
    const struct local_options options = {.program = "sh",
        .arguments = arguments,
        .argument_count = 2,
        .tasks = 1,
        .grace_us = CADRE_US_PER_S};
    const struct local_watch watch = {.output = pass_on, .changed = ignore};
    char message[LIMIT_TEXT_BYTES];
    struct cadre_error error = {0};
    int code = 0;
    assert_ok(local_run(&options, &watch, NULL, &code, message, &error), &error);
    assert_int_equal(code, 0);
}

static pid_t start(int *ret_fd, const char *text)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        numbers_fd = fds[1];
        run(text);
        _exit(0);
    }
    close(fds[1]);
    *ret_fd = fds[0];
    return pid;
}

/* Dead, or a zombie that only its parent has to reap. */
static bool is_dead(void *data)
{
    char path[64];
    char state = 'Z';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)*(const pid_t *)data);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
            state = 'Z';
        }
        fclose(file);
    }
    return state == 'Z' || state == 'X';
}

static bool nothing_is_left(void *data)
{
    (void)data;
    unsigned count = 0;
    DIR *folder = opendir(runtime);
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count == 2;
}

static void assert_dead(pid_t pid)
{
    if (!test_wait(is_dead, &pid, DEADLINE_US)) {
        fail_msg("process %d lives", (int)pid);
    }
}

static void what_tasks_started_dies_with_it(void **state)
{
    (void)state;
    int fd = -1;
    pid_t children[CHILDREN] = {0};
    pid_t pid = start(&fd, script);
    FILE *numbers = fdopen(fd, "r");
    assert_non_null(numbers);
    for (int i = 0; i < CHILDREN; i++) {
        assert_int_equal(fscanf(numbers, "%d", &children[i]), 1);
        assert_false(is_dead(&children[i]));
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < CHILDREN; i++) {
        assert_dead(children[i]);
    }
    assert_true(test_wait(nothing_is_left, NULL, DEADLINE_US));
    fclose(numbers);
}

/* It is a copy of this program. */
static bool is_guard(const char *number)
{
    char path[64];
    char program[TEST_PATH_BYTES] = "";
    char own[TEST_PATH_BYTES] = "";
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/%.20s/exe", number);
    if (readlink(path, program, sizeof program - 1) < 0 ||
        readlink("/proc/self/exe", own, sizeof own - 1) < 0 || strcmp(program, own) != 0) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/%.20s/comm", number);
    FILE *file = fopen(path, "r");
    bool found = file != NULL && fgets(name, sizeof name, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    return found && strcmp(name, "cadre-guard\n") == 0;
}

static bool guard_is_there(void *data)
{
    (void)data;
    bool found = false;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (const struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        found = found || is_guard(entry->d_name);
    }
    closedir(proc);
    return found;
}

static bool guard_is_gone(void *data)
{
    return !guard_is_there(data);
}

static void an_orderly_end_leaves_no_guard(void **state)
{
    (void)state;
    int fd = -1;
    char byte;
    assert_true(test_wait(guard_is_gone, NULL, DEADLINE_US));
    pid_t pid = start(&fd, "echo; sleep 0.3");
    assert_int_equal(read(fd, &byte, 1), 1);
    assert_true(guard_is_there(NULL));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(read(fd, &byte, 1), 0); /* no process holds its output open */
    assert_true(test_wait(guard_is_gone, NULL, DEADLINE_US));
    assert_true(nothing_is_left(NULL));
    close(fd);
}

int main(void)
{
    runtime = test_temp_dir();
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_tasks_started_dies_with_it),
        cmocka_unit_test(an_orderly_end_leaves_no_guard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
