/* SPDX-License-Identifier: Apache-2.0
 * What a coordinator refuses after the command connected: sentence and exit status. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/program.h"
#include "tests/unit/client/stub.h"

static struct stub stub;

static void assert_submit(int exit_code, const char *in_err)
{
    char address[sizeof stub.address + 32];
    const char *const argv[] = {CADRE_COMMAND, "submit", "/bin/true", NULL};
    const char *const environment[] = {address, NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    struct program_result result;
    snprintf(address, sizeof address, "CADRE_COORDINATOR=%s", stub.address);
    program_run(&spec, &result);
    assert_false(result.timed_out);
    if (result.exit_code != exit_code || strstr(result.err, in_err) == NULL) {
        fail_msg("exit code %d, not %d; or \"%s\" is not in the errors:\n%s", result.exit_code,
            exit_code, in_err, result.err);
    }
    program_result_free(&result);
}

/* JSON goes out in pieces: a write that fails is no want of memory. */
static void a_closed_output_is_said_to_be_one(void **state)
{
    (void)state;
    stub_open(&stub, NULL);
    char address[sizeof stub.address + 32];
    const char *const argv[] = {
        "sh", "-c", "\"$0\" jobs --json >&-; echo $? >&2", CADRE_COMMAND, NULL};
    const char *const environment[] = {address, NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    struct program_result result;
    snprintf(address, sizeof address, "CADRE_COORDINATOR=%s", stub.address);
    program_run(&spec, &result);
    assert_string_equal(
        result.err, "cadre jobs: cannot write to standard output: Bad file descriptor\n1\n");
    program_result_free(&result);
    stub_close(&stub);
}

/* As every verb's --help says. */
static void the_exit_status_goes_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        cadre_status status;
        int exit_code;
    } rows[] = {
        {CADRE_INVALID_ARGUMENT, 2}, {CADRE_RESOURCE_EXHAUSTED, 1}, {CADRE_PERMISSION_DENIED, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stub_open(&stub, NULL);
        stub.submit_fails = rows[i].status;
        assert_submit(rows[i].exit_code, "cadre submit: the coordinator says no\n");
        stub.submit_fails = CADRE_OK;
        stub.watch_fails = rows[i].status;
        assert_submit(rows[i].exit_code, "cadre submit: the coordinator breaks off\n");
        stub.watch_fails = CADRE_OK;
        stub_close(&stub);
    }
    stub_open(&stub, NULL);
    stub.submit_fails = CADRE_UNAVAILABLE;
    assert_submit(3, "look there before you submit again");
    stub_close(&stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_exit_status_goes_with_the_reason),
        cmocka_unit_test(a_closed_output_is_said_to_be_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
