/* SPDX-License-Identifier: Apache-2.0
 * A cluster of one process trains on when one of its tasks is killed, and goes on from a checkpoint
 * that an earlier run left. The program proves by itself that nothing was lost or done twice
 * (tests/integration/learner.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/lib/test.h"
#include "deploy/local/local.h"

#define TASKS_MAX     4
#define ARGUMENTS_MAX 8

struct run {
    struct local_options options;
    const char *arguments[ARGUMENTS_MAX];
    char printed[TASKS_MAX][4096];
    char complained[TASKS_MAX][4096];
    uint32_t restarts;
    uint64_t position;
    enum job_state state;
    char checkpoint[256];
    int exit_code;
    char message[LIMIT_TEXT_BYTES];
    struct cadre_error error;
};

static const char *folder; /* the working folder */

static void on_output(void *user, uint32_t slot, int stream, const uint8_t *bytes, size_t size)
{
    struct run *run = user;
    assert_true(slot < TASKS_MAX);
    char *text = stream == 1 ? run->printed[slot] : run->complained[slot];
    size_t at = strlen(text);
    if (at + size < sizeof run->printed[0]) {
        memcpy(text + at, bytes, size);
    }
}

static void on_changed(void *user, const struct job_info *info)
{
    struct run *run = user;
    run->state = info->state;
    run->restarts = info->restarts;
    run->position = info->position;
    snprintf(run->checkpoint, sizeof run->checkpoint, "%s", info->checkpoint);
}

static const struct local_watch watch = {.output = on_output, .changed = on_changed};

static struct run *run_of(uint32_t tasks, const char *const arguments[])
{
    static struct run run;
    run = (struct run){.options = {.program = TEST_LEARNER,
                           .arguments = run.arguments,
                           .tasks = tasks,
                           .max_restarts = 1,
                           .grace_us = 5 * CADRE_US_PER_S}};
    while (arguments[run.options.argument_count] != NULL) {
        assert_true(run.options.argument_count < ARGUMENTS_MAX);
        run.arguments[run.options.argument_count] = arguments[run.options.argument_count];
        run.options.argument_count++;
    }
    return &run;
}

static void finish(struct run *run)
{
    assert_ok(local_run(&run->options, &watch, run, &run->exit_code, run->message, &run->error),
        &run->error);
}

static void assert_succeeded(const struct run *run)
{
    if (run->exit_code != 0 || run->state != JOB_SUCCEEDED) {
        fail_msg("exit code %d: %s\n%s\n%s", run->exit_code, run->message, run->complained[0],
            run->complained[1]);
    }
}

/* What all tasks print at their end. */
static void assert_all_saw(const struct run *run, const char *line)
{
    for (uint32_t slot = 0; slot < run->options.tasks; slot++) {
        if (strstr(run->printed[slot], line) == NULL) {
            fail_msg("task %u printed no \"%s\": %s", (unsigned)slot, line, run->printed[slot]);
        }
    }
}

static void a_task_that_is_killed_is_replaced(void **state)
{
    (void)state;
    static const char *const places[] = {"die=1:9:step", "die=0:9:last", "die=1:20:reduce"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        struct run *run = run_of(2, (const char *const[]){"epochs=3", "pace=2", places[i], NULL});
        finish(run);
        assert_succeeded(run);
        assert_all_saw(run, "of 2 saw 3 epochs");
        assert_int_equal(run->restarts, 1);
    }
}

static void more_failures_than_allowed_end_it(void **state)
{
    (void)state;
    struct run *run = run_of(2, (const char *const[]){"die=1:9:step", NULL});
    run->options.max_restarts = 0;
    finish(run);
    assert_int_equal(run->exit_code, 128 + 9);
    assert_int_equal(run->state, JOB_FAILED);
    assert_non_null(strstr(run->message, "task 1"));
}

/* The first run ends half way; the second one ends what it began, with another number of tasks. */
static void it_goes_on_from_a_checkpoint(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char manifest[TEST_PATH_BYTES];
    struct run *run = run_of(2, (const char *const[]){"epochs=4", "save=1", "fail=0:20", NULL});
    run->options.checkpoint_every = 10;
    run->options.checkpoint_folder = "kept";
    finish(run);
    assert_int_equal(run->state, JOB_FAILED);
    assert_string_not_equal(run->checkpoint, "");
    test_path(path, folder, "kept");
    const char *name = strrchr(run->checkpoint, '/');
    test_path(manifest, path, name != NULL ? name + 1 : run->checkpoint);
    run = run_of(3, (const char *const[]){"epochs=4", NULL});
    run->options.restore_path = manifest;
    finish(run);
    assert_succeeded(run);
    assert_all_saw(run, "of 3 saw 4 epochs");
    assert_int_equal(run->position, 4 * (12 + 5)); /* steps of training and of evaluation */
}

/* The printed path is valid from the folder in which it was started. */
static void one_that_is_preempted_says_where_to_go_on(const char *output, const char *expected)
{
    struct run *run = run_of(2, (const char *const[]){"epochs=20", "pace=5", "preempt=1:4", NULL});
    run->options.max_restarts = 0;
    run->options.output = output;
    finish(run);
    assert_int_equal(run->exit_code, 42);
    assert_int_equal(run->state, JOB_PREEMPTED);
    char path[TEST_PATH_BYTES];
    const char *hint = strstr(run->message, "; --restore ");
    assert_non_null(hint);
    assert_null(strstr(run->message, "--restore 1"));
    assert_int_equal(sscanf(hint, "; --restore %511s goes on from there", path), 1);
    assert_int_equal(strncmp(path, expected, strlen(expected)), 0);
    run = run_of(2, (const char *const[]){"epochs=20", NULL});
    run->options.restore_path = path;
    finish(run);
    assert_succeeded(run);
}

static void preempted_in_the_working_folder(void **state)
{
    (void)state;
    one_that_is_preempted_says_where_to_go_on(NULL, "checkpoint-");
}

static void preempted_with_folders_of_their_own(void **state)
{
    (void)state;
    one_that_is_preempted_says_where_to_go_on("left", "left/0/checkpoint-");
}

static void assert_not_restored(const char *path, cadre_status code, const char *part)
{
    struct run *run = run_of(2, (const char *const[]){NULL});
    run->options.restore_path = path;
    assert_error(local_run(&run->options, &watch, run, &run->exit_code, run->message, &run->error),
        code, &run->error, part);
    assert_string_equal(run->printed[0], "");
}

static void what_is_no_checkpoint_is_refused_before_anything_starts(void **state)
{
    (void)state;
    static const char lonely[] =
        "{\"format\":\"cadre-checkpoint\",\"version\":1,\"position\":3,\"file\":{\"name\":\"c.st\","
        "\"bytes\":0,\"sha256\":"
        "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"},\"blocks\":[]}";
    assert_not_restored("nowhere.json", CADRE_NOT_FOUND, "nowhere.json");
    test_write("text.json", "no manifest");
    assert_not_restored("text.json", CADRE_INVALID_ARGUMENT, "text.json");
    test_write("lonely.json", lonely);
    assert_not_restored("lonely.json", CADRE_NOT_FOUND, "c.st");
    test_write("c.st", "too long");
    assert_not_restored("lonely.json", CADRE_DATA_LOSS, "8 bytes");
}

static int set_up(void **state)
{
    (void)state;
    folder = realpath(test_temp_dir(), NULL);
    return folder == NULL || chdir(folder) != 0 ||
           setenv("XDG_RUNTIME_DIR", test_temp_dir(), 1) != 0;
}

static int tear_down(void **state)
{
    (void)state;
    free((void *)(uintptr_t)folder);
    return chdir("/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_task_that_is_killed_is_replaced),
        cmocka_unit_test(more_failures_than_allowed_end_it),
        cmocka_unit_test(it_goes_on_from_a_checkpoint),
        cmocka_unit_test(preempted_in_the_working_folder),
        cmocka_unit_test(preempted_with_folders_of_their_own),
        cmocka_unit_test(what_is_no_checkpoint_is_refused_before_anything_starts)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
