/* SPDX-License-Identifier: Apache-2.0
 * The test support itself: a fixture that lies would hide everything else. */
#include "tests/lib/program.h"

#include <signal.h>
#include <string.h>

#include "tests/lib/test.h"

#define SHELL(script)                                                                              \
    (const char *const[])                                                                          \
    {                                                                                              \
        "sh", "-c", script, NULL                                                                   \
    }

static void captures_everything(void **state)
{
    (void)state;
    struct program_result result;
    program_run(&(struct program_spec){.argv = SHELL("cat; echo \"$T_NAME\" >&2; exit 3"),
                    .environment = (const char *const[]){"T_NAME=value", NULL},
                    .input = "input",
                    .input_bytes = 5},
        &result);
    assert_int_equal(result.exit_code, 3);
    assert_string_equal(result.out, "input");
    assert_string_equal(result.err, "value\n");
    assert_false(result.timed_out);
    program_result_free(&result);
}

static void a_signal_is_reported(void **state)
{
    (void)state;
    struct program_result result;
    program_run(&(struct program_spec){.argv = SHELL("kill -SEGV $$")}, &result);
    assert_int_equal(result.signal, SIGSEGV);
    assert_int_equal(result.exit_code, -1);
    program_result_free(&result);
}

static void the_deadline_kills_children_too(void **state)
{
    (void)state;
    struct program program;
    struct program_result result;
    program_start(
        &(struct program_spec){.argv = SHELL("cat </dev/zero >/dev/null & wait")}, &program);
    program_finish(&program, 50000, &result);
    assert_true(result.timed_out);
    assert_int_equal(result.signal, SIGKILL);
    program_result_free(&result);
}

static void waits_for_text(void **state)
{
    (void)state;
    struct program program;
    struct program_result result;
    program_start(
        &(struct program_spec){
            .argv = SHELL("trap 'exit 7' TERM; echo ready; while :; do read x || :; done")},
        &program);
    assert_true(program_wait_text(&program, false, "ready", PROGRAM_DEADLINE_US));
    assert_false(program_wait_text(&program, true, "ready", 10000));
    program_signal(&program, SIGTERM);
    program_finish(&program, PROGRAM_DEADLINE_US, &result);
    assert_int_equal(result.exit_code, 7);
    program_result_free(&result);
    program_close(&program);
}

static bool never(void *calls)
{
    ++*(unsigned *)calls;
    return false;
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    unsigned calls = 0;
    assert_false(test_wait(never, &calls, 5000));
    assert_true(calls >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captures_everything),
        cmocka_unit_test(a_signal_is_reported),
        cmocka_unit_test(the_deadline_kills_children_too),
        cmocka_unit_test(waits_for_text),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
