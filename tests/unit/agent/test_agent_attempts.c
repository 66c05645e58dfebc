/* SPDX-License-Identifier: Apache-2.0
 * The attempts of one slot: a replacement beside what is left of the attempt before; tasks that
 * stand still; and none that outlives its agent. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/agent/stage.h"

#define NEXT_ATTEMPT SLOTS_MAX /* of slot 0 */

static void a_new_attempt_starts_while_the_last_is_collected(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->delay_collect = true;
    start(stage, 0, "signal", "9");
    until_gone(stage, 0);
    start(stage, NEXT_ATTEMPT, "end-on-term", NULL);
    until_printed(stage, NEXT_ATTEMPT, "ready");
    assert_false(stage->tasks[0].collected);
    agent_task_collected(stage->agent, task_of(0), CADRE_OK, "");
    assert_true(stage->tasks[0].collected);
    stop(stage, 0, 0); /* the coordinator has its end */
    assert_true(stage->tasks[0].forgotten);
    assert_false(stage->tasks[NEXT_ATTEMPT].gone);
    stage->delay_collect = false;
    stop(stage, NEXT_ATTEMPT, 60 * CADRE_US_PER_S);
    until_collected(stage, NEXT_ATTEMPT);
    assert_int_equal(stage->tasks[NEXT_ATTEMPT].exit.code, 7);
    assert_string_equal(stage->notices, "");
    stage_close(stage);
}

static bool next_attempt_runs(struct stage *stage)
{
    /* Never both at once. */
    assert_true(!stage->tasks[NEXT_ATTEMPT].started || stage->tasks[0].gone);
    return stage->tasks[NEXT_ATTEMPT].started;
}

static void a_newer_attempt_ends_the_older_one_first(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "ignore-term", NULL);
    until_printed(stage, 0, "ready");
    start(stage, NEXT_ATTEMPT, "end-on-term", NULL);
    until(stage, next_attempt_runs);
    assert_int_equal(stage->tasks[0].exit.signal, SIGKILL);
    assert_true(is_process_gone(stage->tasks[0].pid));
    stage_close(stage);
}

static void every_attempt_has_a_socket_and_a_name_of_its_own(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->delay_collect = true;
    start(stage, 0, "environment", NULL);
    until_gone(stage, 0);
    start(stage, NEXT_ATTEMPT, "environment", NULL);
    until_gone(stage, NEXT_ATTEMPT);
    assert_non_null(strstr(printed(&stage->tasks[0]), "CADRE_TASK=1.0.1\n"));
    assert_non_null(strstr(printed(&stage->tasks[NEXT_ATTEMPT]), "CADRE_TASK=1.0.5\n"));
    assert_non_null(strstr(printed(&stage->tasks[NEXT_ATTEMPT]), "CADRE_INCARNATION=5\n"));
    assert_non_null(strstr(printed(&stage->tasks[NEXT_ATTEMPT]), "/s4\n"));
    stage_close(stage);
}

static bool is_stopped(struct stage *stage)
{
    char path[64];
    char status = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", (unsigned)stage->tasks[0].pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %*s %c", &status), 1);
    fclose(file);
    return status == 'T';
}

static struct stage *stage_with_one_that_stands_still(const char *verb)
{
    struct stage *stage = stage_open();
    start(stage, 0, verb, NULL);
    until_printed(stage, 0, "ready");
    assert_int_equal(kill((pid_t)stage->tasks[0].pid, SIGSTOP), 0);
    until(stage, is_stopped);
    return stage;
}

static void one_that_stands_still_has_its_grace(void **state)
{
    (void)state;
    struct stage *stage = stage_with_one_that_stands_still("end-on-term");
    stop(stage, 0, 60 * CADRE_US_PER_S);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.code, 7);
    stage_close(stage);
}

static void one_that_stands_still_can_be_killed(void **state)
{
    (void)state;
    struct stage *stage = stage_with_one_that_stands_still("ignore-term");
    stop(stage, 0, 20 * CADRE_US_PER_MS);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.signal, SIGKILL);
    stage_close(stage);
}

/* An agent in a process of its own, which runs a task and writes the task's number. */
_Noreturn static void be_agent(int fd)
{
    struct stage *stage = stage_open();
    start(stage, 0, "ignore-term", NULL);
    until_printed(stage, 0, "ready");
    pid_t pid = (pid_t)stage->tasks[0].pid;
    (void)!write(fd, &pid, sizeof pid);
    for (;;) {
        pause();
    }
}

static void no_task_outlives_its_agent(void **state)
{
    (void)state;
    int fds[2];
    pid_t task = 0;
    int status = 0;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t agent = fork();
    if (agent == 0) {
        be_agent(fds[1]);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &task, sizeof task), sizeof task);
    close(fds[0]);
    assert_false(is_process_gone(task));
    assert_int_equal(kill(agent, SIGKILL), 0);
    assert_int_equal(waitpid(agent, &status, 0), agent);
    assert_true(waitpid(-1, &status, 0) > 0); /* its keeper became ours */
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(is_process_gone(task));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_attempt_starts_while_the_last_is_collected),
        cmocka_unit_test(a_newer_attempt_ends_the_older_one_first),
        cmocka_unit_test(every_attempt_has_a_socket_and_a_name_of_its_own),
        cmocka_unit_test(one_that_stands_still_has_its_grace),
        cmocka_unit_test(one_that_stands_still_can_be_killed),
        cmocka_unit_test(no_task_outlives_its_agent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
