/* SPDX-License-Identifier: Apache-2.0
 * How tasks end, and why they do not start. */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/agent/stage.h"

static void exit_codes_are_reported(void **state)
{
    (void)state;
    static const int codes[] = {0, 1, 3, 127, 255};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct stage *stage = stage_open();
        char text[16];
        snprintf(text, sizeof text, "%d", codes[i]);
        const struct played *task = play(stage, "exit", text);
        assert_int_equal(task->exit.code, codes[i]);
        assert_int_equal(task->exit.signal, 0);
        assert_string_equal(task->exit.text, "");
        assert_true(task->started && task->pid > 0);
        stage_close(stage);
    }
}

static void signals_are_reported(void **state)
{
    (void)state;
    static const int signals[] = {SIGKILL, SIGSEGV, SIGABRT, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct stage *stage = stage_open();
        char text[16];
        snprintf(text, sizeof text, "%d", signals[i]);
        const struct played *task = play(stage, "signal", text);
        assert_int_equal(task->exit.signal, signals[i]);
        assert_int_equal(task->exit.code, 0);
        stage_close(stage);
    }
}

/* Puts another file in the program's place, then starts it. */
static void assert_not_started(
    const char *text, size_t size, mode_t mode, int code, const char *part)
{
    struct stage *stage = stage_open();
    const char *path = path_in(stage, "work/program");
    assert_int_equal(unlink(path), 0);
    if (text != NULL) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, size), (ssize_t)size);
        assert_int_equal(fchmod(fd, mode), 0);
        close(fd);
    }
    struct played *task = play(stage, "exit", "0");
    assert_false(task->started);
    assert_int_equal(task->exit.code, code);
    assert_int_equal(task->exit.signal, 0);
    if (strstr(task->exit.text, part) == NULL) {
        fail_msg("no \"%s\" in: %s", part, task->exit.text);
    }
    assert_string_equal(printed(task), "");
    stage_close(stage);
}

static void what_cannot_start_says_why(void **state)
{
    (void)state;
    static const char script[] = "#!/bin/sh\nexit 0\n";
    static const char lost[] = "#!/nowhere/interpreter\n";
    static const char plain[] = "echo I have no interpreter\n";
    Elf64_Ehdr elf = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
        .e_type = ET_EXEC,
        .e_machine = EM_S390};
    assert_not_started(NULL, 0, 0, 127, "no such program");
    assert_not_started(script, sizeof script - 1, 0644, 126, "not executable");
    assert_not_started(lost, sizeof lost - 1, 0755, 127, "interpreter");
    assert_not_started(plain, sizeof plain - 1, 0755, 126, "neither a program nor a script");
    assert_not_started("", 0, 0755, 126, "neither a program nor a script");
    assert_not_started((const char *)&elf, sizeof elf, 0755, 126, "another architecture");
    elf.e_ident[EI_DATA] = ELFDATA2MSB;
    assert_not_started((const char *)&elf, sizeof elf, 0755, 126, "another architecture");
}

static void a_folder_is_no_program(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    assert_int_equal(unlink(path_in(stage, "work/program")), 0);
    assert_int_equal(mkdir(path_in(stage, "work/program"), 0755), 0);
    const struct played *task = play(stage, "exit", "0");
    assert_int_equal(task->exit.code, 126);
    assert_non_null(strstr(task->exit.text, "cannot start program"));
    stage_close(stage);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    char program[TEST_PATH_BYTES];
    stage->program = test_path(program, stage->folder, "work/program");
    stage->work = "/nowhere/at/all";
    const struct played *task = play(stage, "exit", "0");
    assert_false(task->started);
    assert_non_null(strstr(task->exit.text, "/nowhere/at/all"));
    stage_close(stage);
}

static void a_bare_name_is_not_looked_up(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->program = "program"; /* in the folder; and no program of that name is in PATH */
    assert_int_equal(play(stage, "exit", "4")->exit.code, 4);
    stage_close(stage);
    stage = stage_open();
    stage->program = "sh";
    assert_int_equal(play(stage, "exit", "0")->exit.code, 127);
    stage_close(stage);
}

static void preparing_can_fail(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->fail_prepare = true;
    const struct played *task = play(stage, "exit", "0");
    assert_int_equal(task->exit.code, 126);
    assert_string_equal(task->exit.text, "the disk is full");
    assert_int_equal(task->cause, CADRE_RESOURCE_EXHAUSTED);
    stage_close(stage);
}

static void a_megabyte_without_a_newline_arrives(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct played *task = play(stage, "print", "1048577");
    assert_int_equal(task->exit.code, 0);
    assert_int_equal(task->output[0].size, 1048577);
    for (size_t i = 0; i < task->output[0].size; i++) {
        assert_int_equal(task->output[0].bytes[i], 'x');
    }
    stage_close(stage);
}

static void the_last_message_is_reported(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct played *task = play(stage, "stderr", NULL);
    assert_int_equal(task->exit.code, 3);
    assert_string_equal(task->exit.text, "the last words");
    assert_string_equal(printed(task), "not on stderr\n");
    assert_int_equal(
        task->output[1].size, strlen("first\nsecond\r\n 10%\r 20%\rthe last words\n\n"));
    stage_close(stage);
}

static void output_may_close_early(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    struct played *task = play(stage, "close", NULL);
    assert_int_equal(task->exit.code, 5);
    assert_string_equal(printed(task), "before\n");
    stage_close(stage);
}

static void term_comes_first(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "end-on-term", NULL);
    until_printed(stage, 0, "ready");
    stop(stage, 0, 60 * CADRE_US_PER_S);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.code, 7);
    stop(stage, 0, 0); /* the coordinator has its end */
    assert_true(stage->tasks[0].forgotten);
    assert_int_equal(agent_task_count(stage->agent), 0);
    stage_close(stage);
}

static void kill_comes_after_the_grace(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "ignore-term", NULL);
    until_printed(stage, 0, "ready");
    uint64_t from_us = clock_monotonic_us();
    stop(stage, 0, 50 * CADRE_US_PER_MS);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.signal, SIGKILL);
    assert_true(clock_monotonic_us() - from_us >= 50 * CADRE_US_PER_MS);
    stage_close(stage);
}

static void no_grace_means_at_once(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "end-on-term", NULL);
    until_printed(stage, 0, "ready");
    stop(stage, 0, 0);
    until_collected(stage, 0);
    assert_int_equal(stage->tasks[0].exit.signal, SIGKILL);
    stage_close(stage);
}

static void it_may_be_stopped_while_it_is_prepared(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->delay_prepare = true;
    start(stage, 0, "exit", "0");
    stop(stage, 0, 60 * CADRE_US_PER_S);
    until_collected(stage, 0);
    prepared(stage, 0); /* too late */
    assert_false(stage->tasks[0].started);
    assert_string_equal(stage->tasks[0].exit.text, "stopped before it started");
    prepared(stage, 0); /* answered twice */
    prepared(stage, 3); /* of a task that is not here */
    stage_close(stage);
}

/* What may only be reported to the coordinator that has the task. */
static void it_holds_a_task_until_that_is_forgotten(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    assert_false(agent_is_occupied(stage->agent));
    stage->delay_collect = true;
    start(stage, 0, "exit", "0");
    until_gone(stage, 0);
    assert_true(agent_is_occupied(stage->agent));
    agent_task_collected(stage->agent, task_of(0), CADRE_OK, "");
    until_collected(stage, 0);
    assert_true(agent_is_occupied(stage->agent)); /* that was not acknowledged */
    stop(stage, 0, 0);
    assert_false(agent_is_occupied(stage->agent));
    stage_close(stage);
}

static void a_drained_agent_ends_its_tasks_and_leaves(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "ignore-term", NULL);
    start(stage, 1, "end-on-term", NULL);
    until_printed(stage, 0, "ready");
    until_printed(stage, 1, "ready");
    agent_drain(stage->agent);
    until_collected(stage, 0);
    until_collected(stage, 1);
    assert_int_equal(stage->tasks[0].exit.signal, SIGKILL);
    assert_int_equal(stage->tasks[1].exit.code, 7);
    stop(stage, 0, 0);
    stop(stage, 1, 0);
    assert_true(stage->drained);
    stage_close(stage);
}

/* With one descriptor more at each try, until the task starts: each failure is reported, and leaves
 * nothing open. */
static void running_out_of_descriptors_is_reported(void **state)
{
    (void)state;
    bool started = false;
    for (rlim_t extra = 0; !started; extra++) {
        struct stage *stage = stage_open();
        struct rlimit before;
        play(stage, "exit", "0"); /* libuv keeps a descriptor in reserve from here on */
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        int next = dup(STDIN_FILENO);
        assert_true(next >= 0);
        close(next);
        struct rlimit tight = {.rlim_cur = (rlim_t)next + extra, .rlim_max = before.rlim_max};
        assert_true(extra < 20);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        start(stage, 1, "exit", "0");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        until_collected(stage, 1);
        started = stage->tasks[1].started;
        assert_int_equal(stage->tasks[1].exit.code, started ? 0 : 126);
        assert_true(started || strstr(stage->tasks[1].exit.text, "Too many open files") != NULL);
        stop(stage, 1, 0);
        linger(stage);
        int after = dup(STDIN_FILENO);
        assert_int_equal(after, next);
        close(after);
        stage_close(stage);
    }
}

static void an_agent_without_slots_is_refused(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct agent *agent = NULL;
    struct cadre_error error = {0};
    static const struct agent_callbacks callbacks;
    struct agent_setup setup = {.core = {.slots = 0, .heartbeat_us = 1},
        .identity = {.name = "n", .host = "h"},
        .mesh_host = ""};
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_error(agent_open(&setup, &loop, &callbacks, NULL, &agent, &error),
        CADRE_INVALID_ARGUMENT, &error, "1 to 1024 tasks");
    setup.core.slots = LIMIT_SLOTS_PER_WORKER + 1;
    assert_error(agent_open(&setup, &loop, &callbacks, NULL, &agent, &error),
        CADRE_INVALID_ARGUMENT, &error, "not 1025");
    setup.core = (struct agent_options){.slots = 1};
    assert_error(agent_open(&setup, &loop, &callbacks, NULL, &agent, &error),
        CADRE_INVALID_ARGUMENT, &error, "heartbeats");
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exit_codes_are_reported),
        cmocka_unit_test(signals_are_reported), cmocka_unit_test(what_cannot_start_says_why),
        cmocka_unit_test(a_folder_is_no_program), cmocka_unit_test(a_missing_folder_is_named),
        cmocka_unit_test(a_bare_name_is_not_looked_up), cmocka_unit_test(preparing_can_fail),
        cmocka_unit_test(a_megabyte_without_a_newline_arrives),
        cmocka_unit_test(the_last_message_is_reported), cmocka_unit_test(output_may_close_early),
        cmocka_unit_test(term_comes_first), cmocka_unit_test(kill_comes_after_the_grace),
        cmocka_unit_test(no_grace_means_at_once),
        cmocka_unit_test(it_may_be_stopped_while_it_is_prepared),
        cmocka_unit_test(it_holds_a_task_until_that_is_forgotten),
        cmocka_unit_test(a_drained_agent_ends_its_tasks_and_leaves),
        cmocka_unit_test(running_out_of_descriptors_is_reported),
        cmocka_unit_test(an_agent_without_slots_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
