/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's disk fills up: it ends and says why, and what it had answered is there when it
 * is started again with room. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/program.h"
#include "tests/lib/test.h"
#include "tests/unit/store/small_disk.h"

#define SUBMISSIONS_MAX 500

static const char *disk;
static char address[TEST_PATH_BYTES];
static char ready[TEST_PATH_BYTES];
static char state[TEST_PATH_BYTES];

static void start(struct program *program)
{
    const char *argv[] = {
        COORDINATOR, "--listen", address, "--state-dir", state, "--ready-file", ready, NULL};
    program_start(&(struct program_spec){.argv = argv}, program);
    assert_true(program_wait_text(program, true, "ready version=", PROGRAM_DEADLINE_US));
}

/* The job's number, or 0 and what was said. */
static unsigned submit(char ret_said[1024])
{
    const char *argv[] = {
        CADRE_COMMAND, "--coordinator", address, "submit", "--detach", "--json", "/bin/true", NULL};
    struct program_result result;
    program_run(&(struct program_spec){.argv = argv}, &result);
    unsigned job = 0;
    const char *number = strpbrk(result.out, "0123456789");
    if (result.exit_code == 0 && number != NULL) {
        job = (unsigned)strtoul(number, NULL, 10);
    }
    snprintf(ret_said, 1024, "%s", result.err);
    program_result_free(&result);
    return job;
}

static unsigned count_jobs(void)
{
    const char *argv[] = {CADRE_COMMAND, "--coordinator", address, "jobs", NULL};
    struct program_result result;
    unsigned lines = 0;
    program_run(&(struct program_spec){.argv = argv}, &result);
    assert_int_equal(result.exit_code, 0);
    for (const char *at = result.out; *at != '\0'; at++) {
        lines += *at == '\n' ? 1 : 0;
    }
    program_result_free(&result);
    return lines - 1; /* the head */
}

static void it_ends_and_goes_on_with_room(void **unused)
{
    (void)unused;
    struct program program = {0};
    struct program_result result;
    char said[1024];
    unsigned newest = 0;
    start(&program);
    newest = submit(said); /* brings the program's content */
    assert_int_equal(newest, 1);
    small_disk_leave(32 * 1024);
    for (unsigned next = newest; next != 0 && next < SUBMISSIONS_MAX; next = submit(said)) {
        newest = next;
    }
    assert_true(newest < SUBMISSIONS_MAX);
    assert_true(said[0] != '\0');
    program_finish(&program, PROGRAM_DEADLINE_US, &result);
    assert_int_equal(result.exit_code, 1);
    if (strstr(result.err, "what cannot be stored must not be spoken of") == NULL ||
        strstr(result.err, "free space on its disk") == NULL) {
        fail_msg("%s", result.err);
    }
    program_result_free(&result);
    program_close(&program);
    small_disk_grow("16m");
    start(&program);
    assert_int_equal(count_jobs(), newest);
    assert_int_equal(submit(said), newest + 1);
    program_close(&program);
}

int main(void)
{
    disk = small_disk_open("2m");
    if (disk == NULL) {
        test_skip("this user may not mount a small file system of its own");
    }
    const char *folder = test_temp_dir();
    snprintf(address, sizeof address, "unix:%s/s", folder);
    test_path(ready, folder, "ready");
    test_path(state, disk, "state");
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_ends_and_goes_on_with_room)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_disk_close();
    return failed;
}
