/* SPDX-License-Identifier: Apache-2.0
 * The command itself where no coordinator is: help, errors, exit codes; and `cadre run`. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/cli/command.h"

static void help_teaches(void **state)
{
    (void)state;
    static const char *const verbs[] = {"run", "submit", "jobs", "job", "logs", "cancel", "get",
        "verify", "workers", "drain", "undrain", "coordinators", "version"};
    struct program_result result;
    command_run(WORDS("--help"), &result);
    assert_int_equal(result.exit_code, 0);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "\n  %s ", verbs[i]);
        assert_non_null(strstr(result.out, usage));
        snprintf(usage, sizeof usage, "usage: cadre %s ", verbs[i]);
        assert_run(WORDS(verbs[i], "--help"), 0, usage, "");
        assert_run(WORDS("help", verbs[i]), 0, usage, "");
    }
    program_result_free(&result);
    assert_run(WORDS("help"), 0, "Examples:", "");
    assert_run(WORDS("--version"), 0, "cadre " CADRE_VERSION, "");
    assert_run(WORDS("submit", "--help"), 0, "--file PATH[:NAME] (repeatable)", "");
}

/* Of every verb of an overview, and of the verbs below `cadre pki`. */
static void help_names_the_exit_statuses(void **state)
{
    (void)state;
    static const struct {
        const char *verb; /* above them; or NULL */
        const char *lines;
        size_t least;
    } overviews[] = {{NULL, "Verbs:\n", 14}, {"pki", "(mutual TLS).\n\n", 3}};
    for (size_t i = 0; i < sizeof overviews / sizeof overviews[0]; i++) {
        struct program_result result;
        const char *above = overviews[i].verb != NULL ? overviews[i].verb : "--help";
        command_run(WORDS(above, "--help"), &result);
        const char *at = strstr(result.out, overviews[i].lines);
        assert_non_null(at);
        assert_non_null(strstr(result.out, "\n\nExit status:\n  0 "));
        char verb[32];
        size_t seen = 0;
        for (at += strlen(overviews[i].lines); sscanf(at, "  %31s", verb) == 1 && at[0] == ' ';
             at = strchr(at, '\n') + 1) {
            if (strcmp(verb, "help") == 0) {
                continue;
            }
            const char *const asked[] = {
                i > 0 ? above : verb, i > 0 ? verb : "--help", i > 0 ? "--help" : NULL, NULL};
            assert_run(asked, 0, "\n\nExit status:\n  0 ", "");
            assert_run(asked, 0, "\n  2    wrong usage\n", "");
            seen++;
        }
        assert_true(seen >= overviews[i].least);
        program_result_free(&result);
    }
    assert_run(WORDS("help", "drain"), 0, "\n  3    no coordinator answers\n", "");
    assert_run(WORDS("submit", "--help"), 0, "\n  130  Ctrl-C", "");
    assert_run(WORDS("verify", "--help"), 0, "\n  3    nothing could be proved", "");
    assert_run(WORDS("verify", "--help"), 0, "\n  4    partly proved", "");
}

/* Each verb of the overview completes its own options; without a coordinator there are no jobs. */
static void each_verb_completes(void **state)
{
    (void)state;
    struct program_result result;
    command_run(WORDS("__complete", "--", ""), &result);
    assert_int_equal(result.exit_code, 0);
    assert_non_null(strstr(result.out, "submit\tsend a program"));
    unsigned seen = 0;
    for (const char *at = result.out; *at != ':'; at = strchr(at, '\n') + 1) {
        char verb[32];
        assert_int_equal(sscanf(at, "%31s", verb), 1);
        if (strcmp(verb, "help") != 0 && strcmp(verb, "pki") != 0) {
            assert_run(WORDS("__complete", "--", verb, "--hel"), 0,
                "--help\tPrint this help and exit\n", "");
            assert_run(WORDS("__complete", "--", "help", verb), 0, verb, "");
            seen++;
        }
    }
    assert_true(seen >= 14);
    program_result_free(&result);
    assert_run(WORDS("__complete", "--", "pki", ""), 0, "issue\tissue or renew", "");
    assert_run(WORDS("__complete", "--", "pki", "issue", "--da"), 0, "--days\t", "");
    assert_run(WORDS("__complete", "--", "pki", "issue", "dir", "wo"), 0, "worker\n", "");
    assert_run(WORDS("__complete", "--", "-c"), 0, ":none\n", "");
    assert_run(WORDS("__complete", "--", "--tls-dir", "x", "ve"), 0, "verify\t", "");
    command_run(WORDS("__complete", "--", "job", ""), &result);
    assert_string_equal(result.out, ":none\n");
    assert_string_equal(result.err, "");
    program_result_free(&result);
    assert_run(WORDS("__complete", "--", "no-verb", ""), 0, ":none\n", "");
    assert_run(WORDS("__complete"), 0, "", "");
}

/* What does not fit together is refused before anything is started or sent. */
static void a_ps_job_has_to_fit(void **state)
{
    (void)state;
    static const char *const verbs[] = {"run", "submit"};
    for (size_t i = 0; i < 2; i++) {
        const char *verb = verbs[i];
        assert_run(WORDS(verb, "--ps", "2", "/bin/true"), 2, "",
            "only the strategy parameter_server uses");
        assert_run(WORDS(verb, "--strategy", "parameter_server", "/bin/true"), 2, "",
            "no parameter server: give it one or more (--strategy parameter_server --workers N");
        assert_run(WORDS(verb, "--strategy", "parameter_server", "--ps", "1", "--evaluators", "2",
                       "/bin/true"),
            2, "", "more than one evaluator");
        assert_run(WORDS(verb, "--strategy", "parameter_server", "--ps", "1", "--workers", "1:3",
                       "/bin/true"),
            2, "", "--workers 1:3: a job with parameter servers has a fixed number");
        assert_run(
            WORDS(verb, "--strategy", "parameter_server", "--ps", "1", "--ps-backups", "/bin/true"),
            2, "", "no other server can hold a copy of");
        assert_run(WORDS(verb, "--evaluators", "1", "/bin/true"), 2, "", "so it has no evaluator");
    }
}

/* --tasks counts tasks that are alike, --workers those beside --ps; -n is either, and --workers is
 * --tasks for scripts that are older than it. */
static void tasks_and_workers_are_counted_apart(void **state)
{
    (void)state;
    static const char *const verbs[] = {"run", "submit"};
    for (size_t i = 0; i < 2; i++) {
        const char *verb = verbs[i];
        assert_run(WORDS(verb, "--help"), 0, "-n, --tasks N|MIN:MAX", "");
        assert_run(
            WORDS(verb, "--tasks", "2", "--ps", "1", "--strategy", "parameter_server", "/bin/true"),
            2, "", "with --ps give --workers");
        assert_run(WORDS(verb, "-n", "2", "--workers", "1", "/bin/true"), 2, "",
            "-n and --workers both count the tasks");
        assert_run(WORDS(verb, "--tasks", "2", "--workers", "1", "/bin/true"), 2, "",
            "--tasks and --workers both count the tasks");
        assert_run(WORDS(verb, "--tasks", "0", "/bin/true"), 2, "", "--tasks: \"0\" is neither");
    }
    static const char *const options[] = {"-n", "--tasks", "--workers"};
    for (size_t i = 0; i < 3; i++) {
        assert_run(
            WORDS("run", options[i], "2", "sh", "--", "-c", "echo $CADRE_TASKS"), 0, "[1] 2\n", "");
    }
    assert_run(
        WORDS("run", "-n", "2", "--ps", "1", "--strategy", "parameter_server", "sh", "--", "-c",
            "test $CADRE_TASK_TYPE$CADRE_TASK_INDEX = worker1 || exec sleep 1000; exit 9"),
        9, "", "worker 1 (slot 2)");
}

/* The chief is the job: when it is done the others are stopped. */
static void a_ps_job_runs_here(void **state)
{
    (void)state;
    assert_run(WORDS("run", "--strategy", "parameter_server", "--workers", "2", "--ps", "1",
                   "--evaluators", "1", "/bin/sh", "--", "-c",
                   "echo $CADRE_TASK_TYPE $CADRE_TASK_INDEX of $CADRE_STRATEGY; "
                   "test $CADRE_TASK_TYPE = chief || exec sleep 1000"),
        0, "[0] chief 0 of parameter_server", "");
    assert_run(WORDS("run", "--strategy", "parameter_server", "--workers", "1", "--ps", "1",
                   "/bin/sh", "--", "-c", "test $CADRE_TASK_TYPE = ps || exec sleep 1000; exit 7"),
        7, "", "ps 0 (slot 2) on worker local exited with status 7");
}

static void wrong_usage_exits_with_2(void **state)
{
    (void)state;
    assert_run((const char *const[]){NULL}, 2, "", "usage: cadre");
    assert_run(WORDS("sbumit"), 2, "", "did you mean `cadre submit`?");
    assert_run(WORDS("help", "jbos"), 2, "", "did you mean `cadre jobs`?");
    assert_run(WORDS("frobnicate"), 2, "", "`cadre --help` lists them");
    assert_run(WORDS("--wat"), 2, "", "--wat");
    assert_run(WORDS("jobs", "--jsno"), 2, "", "did you mean --json?");
    assert_run(WORDS("jobs", "3"), 2, "", "cadre jobs: ");
    assert_run(WORDS("job"), 2, "", "which job?");
    assert_run(WORDS("job", "x"), 2, "", "\"x\" is not the number of a job");
    assert_run(WORDS("job", "0"), 2, "", "\"0\" is not the number of a job");
    assert_run(WORDS("cancel", "-1"), 2, "", "cadre cancel: ");
    assert_run(WORDS("cancel", "99999999999999999999"), 2, "", "is not the number of a job");
    assert_run(WORDS("logs", "1", "--task", "x"), 2, "", "--task");
    assert_run(WORDS("submit"), 2, "", "which program?");
    assert_run(WORDS("run"), 2, "", "which program?");
    assert_run(WORDS("submit", "--workers", "0", "x"), 2, "", "--workers");
    assert_run(WORDS("submit", "--workers", "4:2", "x"), 2, "", "\"4:2\" is neither a number");
    assert_run(WORDS("submit", "-n", "1:16385", "x"), 2, "", "within 1..16384");
    assert_run(WORDS("submit", "--max-restarts", "-1", "x"), 2, "", "--max-restarts");
    assert_run(WORDS("submit", "--restore", "latest", "x"), 2, "", "--restore");
    assert_run(WORDS("submit", "--keep-checkpoints", "0", "x"), 2, "", "--keep-checkpoints");
    assert_run(WORDS("submit", "--wait", "forever", "x"), 2, "", "--wait");
    assert_run(WORDS("run", "-n", "2:1025", "x"), 2, "", "within 1..1024");
    assert_run(WORDS("verify"), 2, "", "which job?");
    assert_run(WORDS("verify", "x"), 2, "", "\"x\" is not the number of a job");
    assert_run(WORDS("drain"), 2, "", "which worker?");
    assert_run(WORDS("drain", "a", "b"), 2, "", "cadre drain: ");
    assert_run(WORDS("submit", "--priority", "high", "x"), 2, "", "--priority: \"high\"");
    assert_run(WORDS("submit", "--file", "x:", "x"), 2, "", "has an empty name");
    assert_run(WORDS("submit", "--file", ":x", "x"), 2, "", "has an empty path");
    assert_run(WORDS("jobs", "--coordinator", "10.1.2.3:4"), 2, "", "10.1.2.3:4");
}

static void no_coordinator_exits_with_3(void **state)
{
    (void)state;
    static const char *const verbs[] = {"jobs", "workers", "coordinators", "version"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        assert_run(WORDS(verbs[i]), 3, "", "no coordinator answers at unix:");
    }
    assert_run(WORDS("job", "1"), 3, "", "no coordinator answers at unix:");
    assert_run(WORDS("logs", "-f", "1"), 3, "", "start cadre-coordinator");
    assert_run(WORDS("cancel", "1", "--json"), 3, "", "CADRE_COORDINATOR");
    assert_run(WORDS("get", "1", "x"), 3, "", "cadre get: no coordinator");
    assert_run(WORDS("verify", "1"), 3, "", "cadre verify: no coordinator");
    assert_run(WORDS("drain", "b"), 3, "", "cadre drain: no coordinator");
    assert_run(WORDS("submit", "/bin/true"), 3, "", "cadre submit: no coordinator");
    assert_run(WORDS("version"), 3, "cadre " CADRE_VERSION, "");
    assert_run(WORDS("version", "--json"), 3, "\"coordinator\": null", "");
}

static void the_address_may_stand_on_either_side(void **state)
{
    (void)state;
    assert_run(WORDS("--coordinator", "unix:/nowhere/a", "jobs"), 3, "", "at unix:/nowhere/a:");
    assert_run(WORDS("jobs", "-c", "unix:/nowhere/b"), 3, "", "at unix:/nowhere/b:");
    assert_run(WORDS("-c", "unix:/nowhere/a", "jobs", "-c", "unix:/nowhere/b"), 3, "",
        "at unix:/nowhere/b:");
}

static void run_needs_no_coordinator(void **state)
{
    (void)state;
    assert_run(WORDS("run", "/bin/true"), 0, "", "");
    assert_run(WORDS("run", "sh", "-c", "echo hello; exit 7"), 7, "hello\n", "status 7");
    assert_run(WORDS("run", "-n", "2", "sh", "--", "-c", "echo hello"), 0, "[1] hello\n", "");
    assert_run(WORDS("run", "sh", "-c", "kill -9 $$"), 137, "", "signal 9");
    assert_run(WORDS("run", "-e", "A=b", "sh", "-c", "echo $A"), 0, "b\n", "");
    assert_run(WORDS("run", "no-such-program"), 1, "", "no-such-program");
    assert_run(WORDS("run", "-n", "0", "true"), 2, "", "-n: \"0\" is neither a number");
    assert_run(
        WORDS("run", "-e", "", "true"), 2, "", "--env: \"\" names nothing: write NAME=VALUE");
    assert_run(WORDS("run", "-e", "NO_SUCH", "true"), 2, "", "set it, or write NO_SUCH=VALUE");
}

static void a_closed_output_is_no_crash(void **state)
{
    (void)state;
    const char *const argv[] = {"sh", "-c",
        "{ \"$0\" --help; echo \"status $?\" >&2; } | true; \"$0\" --help >/dev/full; "
        "echo \"full $?\" >&2",
        CADRE_COMMAND, NULL};
    const struct program_spec spec = {.argv = argv};
    struct program_result result;
    program_run(&spec, &result);
    assert_non_null(strstr(result.err, "cannot write to standard output: No space left"));
    assert_non_null(strstr(result.err, "full 1"));
    program_result_free(&result);
}

/* What `script` makes of the command, "$0": its standard error, and nothing else. */
static void assert_script(const char *script, const char *wanted)
{
    const char *const argv[] = {"sh", "-c", script, CADRE_COMMAND, NULL};
    const char *const environment[] = {command_nowhere, NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    struct program_result result;
    program_run(&spec, &result);
    assert_int_equal(result.exit_code, 0);
    assert_string_equal(result.err, wanted);
    program_result_free(&result);
}

/* Its descriptor is not one of the client's own. */
static void streams_may_be_closed(void **state)
{
    (void)state;
    assert_script("\"$0\" run echo a >&-; echo $? >&2",
        "cadre run: cannot write to standard output: not all of it is there\n1\n");
    assert_script("\"$0\" version >&- 2>&-; echo $? >&2", "3\n");
    assert_script("\"$0\" jobs --help >/dev/full; echo $? >&2",
        "cadre jobs: cannot write to standard output: No space left on device\n1\n");
    /* A reader that closes the pipe is no failure. */
    assert_script("{ \"$0\" run sh -c 'seq 20000'; echo $? >&2; } | { read line; }", "1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_teaches),
        cmocka_unit_test(help_names_the_exit_statuses),
        cmocka_unit_test(each_verb_completes),
        cmocka_unit_test(a_ps_job_has_to_fit),
        cmocka_unit_test(tasks_and_workers_are_counted_apart),
        cmocka_unit_test(a_ps_job_runs_here),
        cmocka_unit_test(wrong_usage_exits_with_2),
        cmocka_unit_test(no_coordinator_exits_with_3),
        cmocka_unit_test(the_address_may_stand_on_either_side),
        cmocka_unit_test(run_needs_no_coordinator),
        cmocka_unit_test(a_closed_output_is_no_crash),
        cmocka_unit_test(streams_may_be_closed),
    };
    return cmocka_run_group_tests(tests, command_set_up, NULL);
}
