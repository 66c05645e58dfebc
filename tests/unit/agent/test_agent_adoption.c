/* SPDX-License-Identifier: Apache-2.0
 * Tasks of an agent that went without a word, and another one that takes them over. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/agent/stage.h"

#define FIRST_NONCE 77

/* The folder of the first agent, and the processes that it started. */
struct past {
    char folder[96];
    pid_t task;
};

_Noreturn static void be_first(int fd, const char *verb, const char *argument, const char *until_it)
{
    struct past past = {{0}, 0};
    struct stage *stage = stage_open_away(FIRST_NONCE);
    stage->keep_tasks = true;
    stage_link(stage);
    start(stage, 0, verb, argument);
    if (until_it != NULL) {
        until_printed(stage, 0, until_it);
    } else {
        until_started(stage, 0);
    }
    past.task = (pid_t)stage->tasks[0].pid;
    memcpy(past.folder, stage->folder, sizeof past.folder);
    (void)!write(fd, &past, sizeof past);
    _exit(0);
}

/* An agent that runs task 0 until it has printed something, and exits. */
static struct past first_agent(const char *verb, const char *argument, const char *until_it)
{
    struct past past;
    int fds[2];
    int status = 0;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    (void)test_temp_dir(); /* ours, not the child's */
    pid_t pid = fork();
    if (pid == 0) {
        be_first(fds[1], verb, argument, until_it);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &past, sizeof past), sizeof past);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return past;
}

static cadre_status adopt(struct stage *stage, const struct past *past, uint32_t attempt)
{
    char keeper[TEST_PATH_BYTES];
    char socket[TEST_PATH_BYTES];
    return agent_adopt(stage->agent, task_of(attempt), test_path(keeper, past->folder, "k0"),
        test_path(socket, past->folder, "s0"), &stage->error);
}

static struct stage *stage_that_adopts(const struct past *past)
{
    struct stage *stage = stage_open_away(5);
    assert_ok(adopt(stage, past, 0), &stage->error);
    assert_true(stage->tasks[0].adopted);
    stage_link(stage);
    assert_int_equal(stage->nonce, FIRST_NONCE); /* for the coordinator it was only away */
    assert_true(stage->tasks[0].started);
    assert_int_equal(stage->tasks[0].pid, past->task);
    return stage;
}

static void a_task_is_taken_over(void **state)
{
    (void)state;
    struct past past = first_agent("end-on-term", NULL, "ready");
    struct stage *stage = stage_that_adopts(&past);
    assert_false(is_process_gone(past.task));
    stop(stage, 0, 60 * CADRE_US_PER_S);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.code, 7);
    stage_close(stage);
}

static void one_that_ignores_sigterm_is_killed(void **state)
{
    (void)state;
    struct past past = first_agent("ignore-term", NULL, "ready");
    struct stage *stage = stage_that_adopts(&past);
    stop(stage, 0, 20 * CADRE_US_PER_MS);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.signal, SIGKILL);
    assert_true(is_process_gone(past.task));
    stage_close(stage);
}

/* Much more than a pipe holds: it waits for a reader, nothing is lost, and the end is reported. */
static void what_was_written_meanwhile_is_read(void **state)
{
    (void)state;
    struct past past = first_agent("print", "1048577", NULL);
    struct stage *stage = stage_that_adopts(&past);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.code, 0);
    assert_in_range(stage->tasks[0].output[0].size, 1048577 - 4 * 65536, 1048577);
    stage_close(stage);
}

static bool is_gone(void *data)
{
    const struct past *past = data;
    return is_process_gone(past->task);
}

static void an_unseen_exit_is_reported(void **state)
{
    (void)state;
    struct past past = first_agent("exit", "9", NULL);
    assert_true(test_wait(is_gone, &past, DEADLINE_US));
    struct stage *stage = stage_that_adopts(&past);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.code, 9);
    stop(stage, 0, 0);
    assert_true(stage->tasks[0].forgotten);
    stage_close(stage);
}

static void closing_ends_an_adopted_task(void **state)
{
    (void)state;
    struct past past = first_agent("ignore-term", NULL, "ready");
    stage_close(stage_that_adopts(&past));
    assert_true(is_process_gone(past.task));
}

static void what_is_not_as_expected_is_refused(void **state)
{
    (void)state;
    struct past past = first_agent("ignore-term", NULL, "ready");
    struct stage *stage = stage_open_away(5);
    struct past missing = {.folder = "/nowhere"};
    assert_error(adopt(stage, &missing, 0), CADRE_NOT_FOUND, &stage->error, "no keeper answers");
    assert_error(adopt(stage, &past, 1), CADRE_FAILED_PRECONDITION, &stage->error, "another task");
    assert_false(is_process_gone(past.task)); /* its keeper waits for the right one */
    stage->refuse_adopted = true;
    assert_error(adopt(stage, &past, 0), CADRE_RESOURCE_EXHAUSTED, &stage->error, "no room");
    stage_link(stage);
    assert_int_equal(stage->nonce, 5);
    stage_close(stage);
    assert_true(is_process_gone(past.task));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_task_is_taken_over),
        cmocka_unit_test(one_that_ignores_sigterm_is_killed),
        cmocka_unit_test(what_was_written_meanwhile_is_read),
        cmocka_unit_test(an_unseen_exit_is_reported),
        cmocka_unit_test(closing_ends_an_adopted_task),
        cmocka_unit_test(what_is_not_as_expected_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
