/* SPDX-License-Identifier: Apache-2.0
 * What a task finds when it starts: its environment, its user, its descriptors, its signals. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/agent/stage.h"

/* One line of what the task printed is exactly this. */
static void assert_line(struct played *task, const char *line)
{
    char wanted[TEST_PATH_BYTES];
    char text[65536];
    snprintf(wanted, sizeof wanted, "\n%s\n", line);
    snprintf(text, sizeof text, "\n%s", printed(task));
    if (strstr(text, wanted) == NULL) {
        fail_msg("no line \"%s\" in: %s", line, text);
    }
}

static void assert_no_part(struct played *task, const char *part)
{
    if (strstr(printed(task), part) != NULL) {
        fail_msg("\"%s\" in: %s", part, printed(task));
    }
}

static void start_with_environment(struct stage *stage)
{
    static const char *const arguments[] = {"environment"};
    static const char *const environment[] = {"JOB_ONLY=a=b", "LANG=tlh", "CADRE_SLOT=17",
        "CADRE_SOCKET=/etc/passwd", "CADRE_TASK=9.9.9", "EMPTY=", "JOB_ONLY=second"};
    start_spec(stage, 2,
        &(struct job_spec){.name = "a job",
            .program = {.name = "program"},
            .arguments = arguments,
            .argument_count = 1,
            .environment = environment,
            .environment_count = sizeof environment / sizeof environment[0],
            .workers = SLOTS_MAX,
            .workers_min = 2,
            .replicas = 3,
            .strategy = "mirrored"});
    until_collected(stage, 2);
}

static void assert_cadre_lines(struct stage *stage, struct played *task)
{
    char line[TEST_PATH_BYTES];
    assert_line(task, "CADRE_JOB=1");
    assert_line(task, "CADRE_SLOT=2");
    assert_line(task, "CADRE_INCARNATION=3");
    assert_line(task, "CADRE_TASKS=4");
    assert_line(task, "CADRE_TASKS_MIN=2");
    assert_line(task, "CADRE_REPLICAS=3");
    assert_line(task, "CADRE_STRATEGY=mirrored");
    assert_line(task, "CADRE_MESH_HOST=127.0.0.1");
    assert_line(task, "CADRE_MESH_PORTS=47000:47099");
    assert_line(task, "CADRE_OUTPUT_DIR=/tmp/out");
    assert_line(task, "CADRE_TASK=1.2.3");
    assert_line(task, "CADRE_TASK_FRAME=8");
    assert_line(task, "CADRE_DAEMON_RETURNS=0"); /* no keeper would keep its tasks */
    snprintf(line, sizeof line, "CADRE_SOCKET=%s/s2", stage->folder);
    assert_line(task, line);
    assert_no_part(task, "CADRE_SLOT=17");
    assert_no_part(task, "/etc/passwd");
    assert_no_part(task, "9.9.9");
    assert_line(task, "JOB_ONLY=second");
    assert_no_part(task, "JOB_ONLY=a=b");
    assert_line(task, "EMPTY=");
    assert_line(task, "LANG=tlh");
}

static void a_daemons_task_sees_nothing_of_the_daemon(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    char line[TEST_PATH_BYTES];
    assert_int_equal(setenv("TEST_SECRET", "hush", 1), 0);
    start_with_environment(stage);
    struct played *task = &stage->tasks[2];
    assert_cadre_lines(stage, task);
    assert_no_part(task, "TEST_SECRET");
    assert_line(task, "PATH=/usr/local/bin:/usr/bin:/bin");
    snprintf(line, sizeof line, "HOME=%s/work", stage->folder);
    assert_line(task, line);
    snprintf(line, sizeof line, "TMPDIR=%s/work", stage->folder);
    assert_line(task, line);
    stage_close(stage);
}

static void a_local_task_inherits(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    assert_int_equal(setenv("TEST_SECRET", "hush", 1), 0);
    assert_int_equal(setenv("CADRE_TASK", "7.7.7", 1), 0); /* as in a task of another cluster */
    assert_int_equal(setenv("EMPTY", "not", 1), 0);
    stage->inherit_environment = true;
    start_with_environment(stage);
    assert_cadre_lines(stage, &stage->tasks[2]);
    assert_line(&stage->tasks[2], "TEST_SECRET=hush");
    assert_no_part(&stage->tasks[2], "7.7.7");
    stage_close(stage);
    unsetenv("CADRE_TASK");
    unsetenv("EMPTY");
}

static void only_the_standard_streams_are_open(void **state)
{
    (void)state;
    int careless = open("/dev/null", O_RDONLY); /* not close-on-exec */
    assert_true(careless > 2);
    struct stage *stage = stage_open();
    int later = dup(careless);
    struct played *task = play(stage, "descriptors", NULL);
    assert_string_equal(printed(task), "fd 0\nfd 1\nfd 2\n");
    stage_close(stage);
    close(careless);
    close(later);
}

static void it_starts_clean(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    char line[TEST_PATH_BYTES];
    struct played *task = play(stage, "situation", NULL);
    assert_line(task, "leads 1");
    assert_line(task, "pipe default blocked 0");
    assert_line(task, "stdin 0");
    assert_line(task, "stdout opens");
    snprintf(line, sizeof line, "folder %s/work", stage->folder);
    assert_line(task, line);
    stage_close(stage);
}

static void it_runs_as_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* only root may change users */
    }
    struct stage *stage = stage_open_as(true, 65534, 65533);
    struct played *task = play(stage, "situation", NULL);
    assert_line(task, "uid 65534 65534 gid 65533 65533 groups 0");
    assert_line(task, "stdout opens");
    assert_int_equal(task->exit.code, 0);
    stage_close(stage);
}

static void another_user_needs_the_right_to_run_it(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    struct stage *stage = stage_open_as(true, 65534, 65534);
    char program[TEST_PATH_BYTES];
    stage->program = test_path(program, stage->folder, "work/program");
    assert_int_equal(chmod(program, 0700), 0);
    struct played *task = play(stage, "situation", NULL);
    assert_int_equal(task->exit.code, 126);
    assert_non_null(strstr(task->exit.text, "not executable for the user"));
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_daemons_task_sees_nothing_of_the_daemon),
        cmocka_unit_test(a_local_task_inherits),
        cmocka_unit_test(only_the_standard_streams_are_open), cmocka_unit_test(it_starts_clean),
        cmocka_unit_test(it_runs_as_another_user),
        cmocka_unit_test(another_user_needs_the_right_to_run_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
