/* SPDX-License-Identifier: Apache-2.0
 * The `cadre` command: the table of verbs, and the options before the verb. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/base/completion.h"
#include "common/base/files.h"
#include "common/base/near_miss.h"
#include "coordinator/cli/cli.h"
#include "deploy/cadre/complete.h"
#include "deploy/cadre/manual.h"
#include "deploy/cadre/new.h"
#include "deploy/cadre/run.h"

/* In the order of the overview; ended by a NULL name. */
static const struct verb verbs[] = {
    {"new", "write a program to begin with, and how to build it", EXIT_CODES_NEW, verb_new},
    {"run", "run a program on this machine, with a coordinator of its own", EXIT_CODES_RUN,
        verb_run},
    {"submit", "send a program to the cluster and follow it", EXIT_CODES_SUBMIT, verb_submit},
    {"jobs", "list the jobs", EXIT_CODES_QUERY, verb_jobs},
    {"job", "show one job with its tasks", EXIT_CODES_QUERY, verb_job},
    {"logs", "print what a job's tasks wrote", EXIT_CODES_QUERY, verb_logs},
    {"cancel", "stop jobs", EXIT_CODES_QUERY, verb_cancel},
    {"checkpoint", "save a job's state now", EXIT_CODES_QUERY, verb_checkpoint},
    {"get", "fetch the files that a job left", EXIT_CODES_QUERY, verb_get},
    {"trace", "show where the time of a step goes", EXIT_CODES_QUERY, verb_trace},
    {"metrics", "show what a job reported, by step", EXIT_CODES_QUERY, verb_metrics},
    {"history", "show what happened to a job, and when", EXIT_CODES_QUERY, verb_history},
    {"verify", "prove what a job's steps consumed; compare two", EXIT_CODES_VERIFY, verb_verify},
    {"workers", "list the workers, and the GPUs of one", EXIT_CODES_QUERY, verb_workers},
    {"drain", "empty a worker; its tasks move to others", EXIT_CODES_QUERY, verb_drain},
    {"undrain", "a worker that was drained takes tasks again", EXIT_CODES_QUERY, verb_undrain},
    {"coordinators", "list the coordinators, and which one leads", EXIT_CODES_QUERY,
        verb_coordinators},
    {"pki", "make and show the certificates of a cluster", EXIT_CODES_LOCAL, verb_pki},
    {"top", "watch the cluster: jobs, workers, speeds", EXIT_CODES_QUERY, verb_top},
    {"dashboard", "print the address of the page for a browser", EXIT_CODES_QUERY, verb_dashboard},
    {"version", "print the versions of this command and the coordinator", EXIT_CODES_QUERY,
        verb_version},
    {.name = NULL},
};

static const struct option_row rows[] = {CLI_COORDINATOR_ROW};

#define EXAMPLES                                                                                   \
    "  cadre new fit                                   a program of your own, in fit/\n"           \
    "  cadre run -n 2 ./digits                         two tasks here, no daemons needed\n"        \
    "  cadre submit -n 2 --file train.bin ./digits -- --epochs 20\n"                               \
    "  cadre submit -n 2:4 ./digits                    trains with 2 to 4 tasks\n"                 \
    "  cadre verify 3                                  was every sample consumed exactly once?\n"  \
    "  cadre get 3 -o results                          what job 3 left\n"

#define ABOUT                                                                                      \
    "The coordinator's address: --coordinator, else CADRE_COORDINATOR, "                           \
    "else\n" CADRE_CLIENT_ADDRESS_DEFAULT ". On another host it needs TLS:\n"                      \
    "--tls-dir, else CADRE_TLS_DIR, names the folder of your certificate.\n"                       \
    "`cadre VERB --help` shows more about each, as does `man cadre-VERB`.\n"

static const struct option_table main_table = {.program = "cadre",
    .usage = "VERB [ARGUMENT...]",
    .title = "submit jobs to a Cadre cluster and follow them",
    .summary = "Cadre trains a program on many machines at once: you submit an executable, the\n"
               "coordinator starts it as tasks on its workers, and all tasks train one model.",
    .notes = ABOUT EXAMPLES,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .stop_at_positional = true};

static void print_overview(FILE *out)
{
    fprintf(out,
        "usage: cadre [--coordinator ADDRESS] [--tls-dir DIR] VERB [OPTION...]\n\n%s\n\nVerbs:\n",
        main_table.summary);
    for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
        fprintf(out, "  %-12s %s\n", verb->name, verb->summary);
    }
    fprintf(out,
        "  %-12s the same as --help: `cadre help submit`\n\n"
        "Examples:\n" EXAMPLES "\n" ABOUT "\n",
        "help");
    exit_codes_print(EXIT_CODES_QUERY, out);
    fputs(
        "`run` and `submit` exit as the job did, `verify` by its result: see their --help.\n", out);
}

static const struct verb *find_verb(const char *name)
{
    for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
        if (strcmp(verb->name, name) == 0) {
            return verb;
        }
    }
    return NULL;
}

/* Whether `name` is that file, "./digits" or "digits", and no misspelled one. */
static bool program_is_meant(const char *name, const char *program)
{
    return strcmp(name, program) == 0 ||
           (strncmp(program, "./", 2) == 0 && strcmp(name, program + 2) == 0);
}

static int unknown_verb(const char *name)
{
    const char *names[sizeof verbs / sizeof verbs[0] + 1] = {"help"};
    size_t count = 1;
    for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
        names[count++] = verb->name;
    }
    names[count] = NULL;
    char program[NEAR_MISS_PATH_BYTES];
    const char *near = near_miss_find(name, names);
    if (near_miss_file(name, true, program) && program_is_meant(name, program)) {
        fprintf(stderr, "cadre: there is no verb \"%s\"; did you mean `cadre run %s`?\n", name,
            program);
    } else if (near != NULL) {
        fprintf(stderr, "cadre: there is no verb \"%s\"; did you mean `cadre %s`?\n", name, near);
    } else {
        fprintf(stderr, "cadre: there is no verb \"%s\"; `cadre --help` lists them\n", name);
    }
    return CLI_USAGE;
}

static int run_verb(struct cli *cli, int argc, char **argv)
{
    const struct verb *verb = find_verb(argv[0]);
    if (verb != NULL) {
        cli->exit_codes = verb->exit_codes;
        return verb->run(cli, argc, argv);
    }
    if (strcmp(argv[0], COMPLETION_VERB) == 0) {
        return complete(verbs, &main_table, argc, argv);
    }
    if (strcmp(argv[0], MANUAL_VERB) == 0) {
        return manual(verbs, &main_table, argc, argv);
    }
    if (strcmp(argv[0], "help") != 0) {
        return unknown_verb(argv[0]);
    }
    verb = argc > 1 ? find_verb(argv[1]) : NULL;
    if (verb != NULL) {
        char help[] = "--help";
        char *asked[] = {argv[1], help, NULL};
        cli->exit_codes = verb->exit_codes;
        return verb->run(cli, 2, asked);
    }
    if (argc > 1) {
        return unknown_verb(argv[1]);
    }
    print_overview(stdout);
    return CLI_DONE;
}

int main(int argc, char **argv)
{
    struct cli_common values = {0};
    struct invocation invocation = {.table = &main_table, .values = &values};
    struct cadre_error error = {0};
    int code = CLI_DONE;
    standard_streams_reserve();
    argv = argv_scrub(argc, argv); /* before anything else: other users can read the command line */
    if (argv == NULL) {
        fputs("cadre: no memory for the command line\n", stderr);
        return CLI_FAILED;
    }
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of write(2) */
    if (options_parse(&main_table, argc, argv, &values, &invocation.result, &error) != CADRE_OK) {
        code = invocation_usage(&invocation, "%s", error.text);
    } else if (invocation.result.request == OPTIONS_HELP) {
        print_overview(stdout);
    } else if (options_answer(&main_table, &values, &invocation.result, stdout)) {
        code = CLI_DONE;
    } else if (invocation.result.first == argc) {
        print_overview(stderr);
        code = CLI_USAGE;
    } else {
        const enum option_source *sources = invocation.result.sources;
        struct cli cli = {.coordinator = sources[0] == OPTION_ARGV ? values.coordinator : NULL,
            .tls = {.dir = sources[1] == OPTION_ARGV ? values.tls.dir : NULL,
                .cert = sources[2] == OPTION_ARGV ? values.tls.cert : NULL,
                .key = sources[3] == OPTION_ARGV ? values.tls.key : NULL,
                .ca = sources[4] == OPTION_ARGV ? values.tls.ca : NULL}};
        code = run_verb(&cli, argc - invocation.result.first, argv + invocation.result.first);
    }
    options_free(&main_table, &values);
    argv_scrub_free(argv);
    return invocation_end(&invocation, code);
}
