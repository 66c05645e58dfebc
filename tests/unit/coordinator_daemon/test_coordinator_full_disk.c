/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's disk fills up: it refuses, says why and waits, and what it had answered is
 * there when there is room. */
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
    const char *argv[] = {COORDINATOR, "--listen", address, "--state-dir", state, "--ready-file",
        ready, "--disk-reserve", "0", NULL};
    program_start(&(struct program_spec){.argv = argv}, program);
    assert_true(program_wait_text(program, true, "ready version=", PROGRAM_DEADLINE_US));
}

/* The job's number, or 0 and the message. */
static unsigned submit(char ret_relay_up[1024])
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
    snprintf(ret_relay_up, 1024, "%s", result.err);
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

static bool has_said(struct program *program, const char *text)
{
    return program_wait_text(program, true, text, PROGRAM_DEADLINE_US);
}

static void it_waits_and_goes_on_with_room(void **unused)
{
    (void)unused;
    struct program program = {0};
    char said[1024];
    unsigned newest = 0;
    start(&program);
    newest = submit(said); /* brings the program's content */
    assert_int_equal(newest, 1);
    small_disk_keep_free(32 * 1024);
    for (unsigned next = newest; next != 0 && next < SUBMISSIONS_MAX; next = submit(said)) {
        newest = next;
    }
    assert_true(newest < SUBMISSIONS_MAX);
    if (strstr(said, "disk is full") == NULL) {
        fail_msg("%s", said);
    }
    assert_true(has_said(&program, "the ledger cannot be written"));
    assert_int_equal(count_jobs(), newest); /* the one that is not stored is not listed */
    assert_int_equal(submit(said), 0);
    assert_non_null(strstr(said, "free space in"));
    small_disk_grow("16m");
    assert_true(has_said(&program, "the ledger is written again"));
    unsigned jobs = count_jobs(); /* the one that waited may be there now: its client gave up */
    assert_in_range(jobs, newest, newest + 1);
    newest = submit(said);
    assert_int_equal(newest, jobs + 1);
    program_close(&program);
    start(&program);
    assert_int_equal(count_jobs(), newest);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_waits_and_goes_on_with_room)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    small_disk_close();
    return failed;
}
