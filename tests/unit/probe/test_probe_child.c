/* SPDX-License-Identifier: Apache-2.0
 * A child that answers, and the ways in which one does not. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/probe/child.h"

#define LONG_US  speed_scaled_us(30 * CADRE_US_PER_S)
#define SHORT_US (200 * CADRE_US_PER_MS)

static struct cadre_error error;
static char output[65536];

/* Runs a shell script of this content; what it printed is in `output`. */
static cadre_status run_script(const char *content, uint64_t timeout_us)
{
    char path[TEST_PATH_BYTES];
    static unsigned last;
    char name[32];
    static const char *folder;
    folder = folder != NULL ? folder : test_temp_dir();
    snprintf(name, sizeof name, "child%u", last++);
    test_write(test_path(path, folder, name), content);
    assert_int_equal(chmod(path, 0755), 0);
    const struct child child = {.program = path, .environment = environ, .timeout_us = timeout_us};
    struct child_output got;
    cadre_status status = child_run(&child, &got, &error);
    size_t size = got.size < sizeof output ? got.size : sizeof output - 1;
    memcpy(output, got.bytes, size);
    output[size] = '\0';
    free(got.bytes);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    assert_int_equal(errno, ECHILD);
    return status;
}

static void one_that_answers(void **state)
{
    (void)state;
    assert_ok(run_script("#!/bin/sh\necho \"$# $1\"; echo of no interest >&2\n", LONG_US), &error);
    assert_string_equal(output, "1 --json\n");
}

static void one_that_hangs(void **state)
{
    (void)state;
    uint64_t began_us = clock_monotonic_us();
    assert_error(run_script("#!/bin/sh\ntrap '' TERM\necho asking the driver >&2\n"
                            "while :; do sleep 60; done\n",
                     SHORT_US),
        CADRE_DEADLINE_EXCEEDED, &error, "did not end within 0.2 s: asking the driver");
    assert_true(clock_monotonic_us() - began_us < speed_scaled_us(20 * CADRE_US_PER_S));
}

static void one_that_crashes(void **state)
{
    (void)state;
    assert_error(run_script("#!/bin/sh\necho '{\"devices\": []}'\nkill -SEGV $$\n", LONG_US),
        CADRE_ABORTED, &error, "was killed by signal 11");
}

static void one_that_fails(void **state)
{
    (void)state;
    assert_error(run_script("#!/bin/sh\nprintf 'first\\nthe \\033driver is broken\\n\\n' >&2\n"
                            "exit 3\n",
                     LONG_US),
        CADRE_FAILED_PRECONDITION, &error, "ended with status 3: the ?driver is broken");
}

static void one_that_never_stops_talking(void **state)
{
    (void)state;
    assert_error(run_script("#!/bin/sh\nexec yes\n", LONG_US), CADRE_OUT_OF_RANGE, &error,
        "printed more than 262144 bytes");
    assert_error(run_script("#!/bin/sh\nexec yes >&2\n", SHORT_US), CADRE_DEADLINE_EXCEEDED, &error,
        "did not end within 0.2 s: y");
}

static void one_that_is_not_there(void **state)
{
    (void)state;
    const struct child child = {
        .program = "/nonexistent/x", .environment = environ, .timeout_us = LONG_US};
    struct child_output got;
    assert_error(child_run(&child, &got, &error), CADRE_NOT_FOUND, &error, "cannot be run");
    free(got.bytes);
}

/* What it started keeps the pipes open, and goes with it. */
static void one_that_leaves_a_process_behind(void **state)
{
    (void)state;
    uint64_t began_us = clock_monotonic_us();
    assert_ok(run_script("#!/bin/sh\nsleep 600 &\necho $!\n", LONG_US), &error);
    assert_true(clock_monotonic_us() - began_us < speed_scaled_us(20 * CADRE_US_PER_S));
    assert_true(strtol(output, NULL, 10) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_that_answers),
        cmocka_unit_test(one_that_hangs), cmocka_unit_test(one_that_crashes),
        cmocka_unit_test(one_that_fails), cmocka_unit_test(one_that_never_stops_talking),
        cmocka_unit_test(one_that_is_not_there),
        cmocka_unit_test(one_that_leaves_a_process_behind)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
