/* SPDX-License-Identifier: Apache-2.0
 * What the command takes a wrong word for, where no coordinator is. */
#include "tests/unit/cli/command.h"

/* What a user may have meant. */
static void a_near_miss_has_a_hint(void **state)
{
    (void)state;
    assert_run(WORDS("gte", "3"), 2, "", "did you mean `cadre get`?");
    assert_run(WORDS("submit", "--wrokers", "2", "x"), 2, "", "did you mean --workers?");
    assert_run(WORDS("run", "-workers", "2", "x"), 2, "",
        "unknown option -workers; did you mean --workers?");
    assert_run(WORDS("run", "--strategy", "mirored", "/bin/true"), 2, "", "did you mean mirrored?");
    assert_run(WORDS("submit", "--strategy", "star", "/bin/true"), 2, "",
        "there is no strategy \"star\": mirrored, multi_worker_mirrored or parameter_server");
    assert_run(WORDS("run", "/bin/echo", "--tasks", "2"), 0, "--tasks 2",
        "--tasks is behind /bin/echo and goes to it");
    assert_run(WORDS("submit", "/bin/true", "-n", "2"), 3, "", "write `/bin/true -- -n`");
}

/* A program of the working folder, by its name alone or misspelled. */
static void a_program_that_is_here_is_named(void **state)
{
    (void)state;
    struct program_result result;
    const char *folder = test_temp_dir();
    const char *const argv[] = {"sh", "-c",
        "cd \"$1\" && printf '#!/bin/sh\\nexit 0\\n' >trainer && chmod +x trainer && "
        "touch trainer.c && for line in 'run trainer' 'run ./trianer' 'submit trainre' 'trainer' "
        "'./trainer' "
        "'run zzzzzzz'; do \"$0\" $line; echo $? >&2; done; \"$0\" run ./trainer --; "
        "\"$0\" run -- ./trainer -n 2",
        CADRE_COMMAND, folder, NULL};
    const char *const environment[] = {command_nowhere, NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    program_run(&spec, &result);
    assert_string_equal(result.err,
        "cadre run: cannot start trainer: no such program in PATH; did you mean ./trainer?\n1\n"
        "cadre run: cannot start ./trianer: there is no such file; did you mean ./trainer?\n1\n"
        "cadre submit: program trainre: there is no such file; did you mean ./trainer?\n1\n"
        "cadre: there is no verb \"trainer\"; did you mean `cadre run ./trainer`?\n2\n"
        "cadre: there is no verb \"./trainer\"; did you mean `cadre run ./trainer`?\n2\n"
        "cadre run: cannot start zzzzzzz: no such program in PATH (one of this folder is written "
        "./NAME)\n1\n");
    program_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_near_miss_has_a_hint),
        cmocka_unit_test(a_program_that_is_here_is_named)};
    return cmocka_run_group_tests(tests, command_set_up, NULL);
}
