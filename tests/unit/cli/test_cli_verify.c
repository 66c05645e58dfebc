/* SPDX-License-Identifier: Apache-2.0
 * `cadre verify` as a shell sees it: what it prints, and its exit status. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/program.h"
#include "tests/unit/client/stub.h"

static struct stub stub;

static void assert_verify(
    const char *job, const char *other, int exit_code, const char *in_out, const char *in_err)
{
    char address[sizeof stub.address + 32];
    const char *const argv[] = {CADRE_COMMAND, "verify", job, other, NULL};
    const char *const environment[] = {address, NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    struct program_result result;
    snprintf(address, sizeof address, "CADRE_COORDINATOR=%s", stub.address);
    program_run(&spec, &result);
    assert_false(result.timed_out);
    if (result.exit_code != exit_code || strstr(result.out, in_out) == NULL ||
        strstr(result.err, in_err) == NULL) {
        fail_msg("exit code %d, not %d; or \"%s\" is not in:\n%s\nor \"%s\" not in:\n%s",
            result.exit_code, exit_code, in_out, result.out, in_err, result.err);
    }
    program_result_free(&result);
}

static int open_stub(void **state)
{
    (void)state;
    stub_open(&stub, NULL);
    return 0;
}

static int close_stub(void **state)
{
    (void)state;
    stub_close(&stub);
    return 0;
}

static void an_audit_has_a_status(void **state)
{
    (void)state;
    assert_verify("1", NULL, 0, "proved: 3 epochs consumed every sample exactly once", "");
    assert_verify("1", NULL, 0,
        "states verified at 2 positions, the newest step 30 with digest 0000000000000003\n", "");
    assert_verify("70", NULL, 1, "not as it should be: 1 epoch differs", "");
    assert_verify("74", NULL, 3, "nothing could be proved", "");
    assert_verify("78", NULL, 4, "The coordinator is of an older version", "");
    assert_verify("82", NULL, 4, "partly proved: 9 epochs consumed every sample exactly once", "");
    assert_verify("84", NULL, 3, "", "cadre verify: job 84 began again at a checkpoint each time");
    assert_verify("404", NULL, 3, "", "cadre verify: there is no job 404");
}

static void a_comparison_has_a_status(void **state)
{
    (void)state;
    assert_verify("1", "2", 0,
        "3 epochs, the steps 0 to 30; states equal at 2 positions that both verified, the newest "
        "step 30\n",
        "");
    assert_verify("1", "82", 0, "3 epochs, the steps 0 to 30; states equal at 2 positions", "");
    assert_verify("1", "70", 1,
        "the same samples before: 1 epoch, the steps 0 to 10\n"
        "before: states equal at 1 position that both verified, the newest step 10\n"
        "differs: in epoch 2 of train, the steps 10 to 20, job 1 consumed 1000 samples and job 70 "
        "others, also 1000\n",
        "");
    assert_verify("1", "74", 3, "nothing in common: ", "");
    assert_verify("1", "404", 3, "", "cadre verify: there is no job 404");
    assert_verify("404", "1", 3, "", "cadre verify: there is no job 404");
}

static void what_cannot_be_compared_is_usage(void **state)
{
    (void)state;
    assert_verify("3", "3", 2, "", "cadre verify: job 3 is itself");
    assert_verify("3", "x", 2, "", "\"x\" is not the number of a job");
    assert_verify("3", "0", 2, "", "\"0\" is not the number of a job");
}

/* On a terminal, and gone when the answer is there; elsewhere there is none. */
static void what_takes_a_while_has_a_bar(void **state)
{
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    int other_end = open(ptsname(terminal), O_RDWR | O_NOCTTY); /* what was written stays */
    assert_true(other_end >= 0);
    char address[sizeof stub.address + 32];
    snprintf(address, sizeof address, "CADRE_COORDINATOR=%s", stub.address);
    const char *const argv[] = {
        "sh", "-c", "exec \"$0\" verify 85 2>\"$1\"", CADRE_COMMAND, ptsname(terminal), NULL};
    const char *const environment[] = {address, "NO_COLOR=1", NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    struct program_result result;
    program_run(&spec, &result);
    assert_int_equal(result.exit_code, 0);
    char drawn[4096] = "";
    ssize_t size = read(terminal, drawn, sizeof drawn - 1);
    assert_true(size > 0);
    assert_non_null(strstr(drawn, "\rjudging  "));
    assert_non_null(strstr(drawn, "/3 epochs ["));
    assert_string_equal(drawn + size - strlen("\r\033[K"), "\r\033[K");
    program_result_free(&result);
    close(other_end);
    close(terminal);
    assert_verify("85", NULL, 0, "train", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_audit_has_a_status),
        cmocka_unit_test(a_comparison_has_a_status),
        cmocka_unit_test(what_cannot_be_compared_is_usage),
        cmocka_unit_test(what_takes_a_while_has_a_bar)};
    return cmocka_run_group_tests(tests, open_stub, close_stub);
}
