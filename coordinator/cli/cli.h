/* SPDX-License-Identifier: Apache-2.0
 * What the verbs of the `cadre` command share: options, connecting, errors, exit codes. */
#ifndef CADRE_CLI_CLI_H
#define CADRE_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cadre/client.h"
#include "common/base/manual.h"
#include "common/base/options.h"
#include "common/rpc/tls_options.h"
#include "coordinator/cli/render/cli_exit.h"

/* Verbs with the same exit codes. */
enum cli_exit_codes {
    EXIT_CODES_QUERY,
    EXIT_CODES_LOCAL,
    EXIT_CODES_NEW,
    EXIT_CODES_RUN,
    EXIT_CODES_SUBMIT,
    EXIT_CODES_VERIFY
};

/* What a verb takes. */
struct verb_shape {
    const struct option_table *table;
    const struct verb *verbs; /* those beneath it, as of `cadre pki`, ended by a NULL name; or NULL:
                                 the table's options */
};

/* The options before the verb, and the verb's exit codes. */
struct cli {
    const char *coordinator;    /* or NULL */
    struct rpc_tls_options tls; /* NULL where nothing was given */
    enum cli_exit_codes exit_codes;
    struct verb_shape *ret_shape; /* not NULL: the verb does nothing but fill it */
};

struct verb {
    const char *name;
    const char *summary; /* one line of the overview */
    enum cli_exit_codes exit_codes;
    /* argv[0] is the verb. Returns what the program exits with. */
    int (*run)(const struct cli *cli, int argc, char **argv);
};

#define EXIT_ITEMS_MAX 16

/* Fills in the exit codes and what they mean; returns how many there are. */
size_t exit_codes_list(
    enum cli_exit_codes exit_codes, struct manual_item ret_items[EXIT_ITEMS_MAX]);

/* Prints them, the last lines of every --help but for the name of the manual page. */
void exit_codes_print(enum cli_exit_codes exit_codes, FILE *out);

/* submit.c: uploads and submits a job, and follows it to its end. */
int verb_submit(const struct cli *cli, int argc, char **argv);
/* queries.c: lists the jobs. */
int verb_jobs(const struct cli *cli, int argc, char **argv);
/* queries.c: shows one job with its tasks. */
int verb_job(const struct cli *cli, int argc, char **argv);
/* logs.c: prints what tasks wrote. */
int verb_logs(const struct cli *cli, int argc, char **argv);
/* queries.c: requests a checkpoint now. */
int verb_checkpoint(const struct cli *cli, int argc, char **argv);
/* cancel.c: requests that jobs stop. */
int verb_cancel(const struct cli *cli, int argc, char **argv);
/* get.c: fetches outputs and checkpoints. */
int verb_get(const struct cli *cli, int argc, char **argv);
/* metrics.c: shows what a job's program reported, by step. */
int verb_metrics(const struct cli *cli, int argc, char **argv);
/* history.c: shows what happened to a job, and when. */
int verb_history(const struct cli *cli, int argc, char **argv);
/* trace.c: records what tasks do in some steps, and says where their time goes. */
int verb_trace(const struct cli *cli, int argc, char **argv);
/* verify.c: proves what a job consumed, or compares two jobs. */
int verb_verify(const struct cli *cli, int argc, char **argv);
/* drain.c: empties a worker. */
int verb_drain(const struct cli *cli, int argc, char **argv);
/* drain.c: ends `cadre drain`. */
int verb_undrain(const struct cli *cli, int argc, char **argv);
/* workers.c: lists the workers, or shows one with its GPUs. */
int verb_workers(const struct cli *cli, int argc, char **argv);
/* coordinators.c: lists the coordinators, with the one that leads. */
int verb_coordinators(const struct cli *cli, int argc, char **argv);
/* pki.c: makes, issues and shows certificates. */
int verb_pki(const struct cli *cli, int argc, char **argv);
/* top.c: shows the cluster again and again. */
int verb_top(const struct cli *cli, int argc, char **argv);
/* dashboard.c: prints the address of the coordinator's page. */
int verb_dashboard(const struct cli *cli, int argc, char **argv);
/* queries.c: prints the versions of this command and of the coordinator. */
int verb_version(const struct cli *cli, int argc, char **argv);

/* The first member of every verb's options, and the rows that fill it: always the first rows. */
struct cli_common {
    char *coordinator;
    struct rpc_tls_options tls;
    bool json;
    bool stale;      /* of verbs with CLI_STALE_ROW: */
    uint64_t age_us; /* how old the last answer may be; UINT64_MAX: not known */
};

/* Where the coordinator is, and the TLS files for it. */
#define CLI_COORDINATOR_ROW                                                                        \
    {OPTION_ROW(TEXT, "coordinator", struct cli_common, coordinator, "ADDRESS[,ADDRESS...]",       \
         CADRE_CLIENT_ADDRESS_DEFAULT),                                                            \
        .letter = 'c', .environment = "CADRE_COORDINATOR", .group = "The coordinator",             \
        .help = "Where the coordinator is: unix:/PATH, 127.0.0.1:PORT, or with TLS HOST:PORT. "    \
                "Several, up to 16, are tried one after the other until one answers. These "       \
                "options are also taken before the verb."},                                        \
        TLS_OPTION_ROWS(struct cli_common, tls)

#define CLI_JSON_ROW(text)                                                                         \
    {                                                                                              \
        OPTION_ROW(FLAG, "json", struct cli_common, json, NULL, NULL), .group = "Options",         \
                                                                       .help = (text)              \
    }

#define CLI_STALE_ROW                                                                              \
    {                                                                                              \
        OPTION_ROW(FLAG, "stale", struct cli_common, stale, NULL, NULL),                           \
            .group = "Options",                                                                    \
            .help =                                                                                \
                "Of several coordinators take the answer of any, also while none leads: from its " \
                "copy of the ledger, perhaps an older state. How old is printed on standard "      \
                "error.",                                                                          \
    }

/* A verb in action: its table, its values (which begin with a struct cli_common), what was parsed.
 */
struct invocation {
    const struct cli *cli;
    const struct option_table *table;
    void *values;
    struct option_result result;
    int argc;
    char **argv;
};

/* Parses; false: there is nothing left to do but to exit with *ret_exit (help was printed, or the
 * error). invocation_close() follows in any case. */
bool invocation_open(struct invocation *invocation, const struct cli *cli,
    const struct option_table *table, void *values, int argc, char **argv, int *ret_exit);
/* Frees the parsed values; also after invocation_open() returned false. */
void invocation_close(struct invocation *invocation);

/* The coordinator's address, or several: the option, the environment variable, or the default. */
const char *invocation_address(const struct invocation *invocation);

/* The number of positional arguments. */
int invocation_argument_count(const struct invocation *invocation);
/* The positional argument `i`, from 0. */
const char *invocation_argument(const struct invocation *invocation, int i);

/* Prints "cadre VERB: <sentence>" and returns the exit code. */
int invocation_usage(const struct invocation *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the thread's last failure in the same way; returns the exit code of the status. */
int invocation_fail(const struct invocation *invocation, cadre_status status);
/* The same with a sentence of the caller's. */
int invocation_fail_with(
    const struct invocation *invocation, cadre_status status, const char *sentence);

/* job_argument.c: the positional argument `i` as a job's number; false: *ret_exit, and the error
 * was printed. */
bool invocation_job(const struct invocation *invocation, int i, uint64_t *ret_job, int *ret_exit);

/* Connects to the coordinator of invocation_address(); false: *ret_exit, and the error was printed.
 * `options` may be NULL; its address is filled in. */
bool invocation_connect(const struct invocation *invocation, const cadre_client_options *options,
    cadre_client **ret_client, int *ret_exit);

/* The same without a message; cadre_error_message() has it. */
cadre_status invocation_try_connect(const struct invocation *invocation,
    const cadre_client_options *options, cadre_client **ret_client);

/* Says on standard error how old the last answer may be, if it is not of the coordinator that
 * leads.
 */
void invocation_print_age(const struct invocation *invocation, cadre_client *client);

/* The exit code after an answer was printed, or was not: then memory was out (reported here), or a
 * write to standard output failed (reported by invocation_end()). */
int invocation_print_status(const struct invocation *invocation, bool good);

/* The end of a verb that wrote to standard output: `code`, or CLI_FAILED when not all of it could
 * be written (reported on standard error, unless the reader closed the pipe). */
int invocation_end(const struct invocation *invocation, int code);

/* ---- complete.c ---- */

/* Prints what may follow in the last of the arguments behind a verb, as common/base/completion.h
 * has it. The coordinator is asked for jobs, workers and outputs; it is waited for only shortly,
 * and without it there are none. */
void complete_arguments(const struct cli *cli, const struct option_table *table, int count,
    char *const *arguments, FILE *out);

/* ---- pki_show.c ---- */

/* `cadre pki show`: prints what PEM files are. */
int pki_show(const struct cli *cli, int argc, char **argv);

/* ---- argv_scrub.c: hides the values of --env from /proc/PID/cmdline and `ps` ---- */

/* A copy of argv to go on with, NULL-terminated; in argv itself the values of --env NAME=VALUE are
 * wiped. NULL: no memory. */
char **argv_scrub(int argc, char **argv);
/* Frees the copy; NULL is allowed. */
void argv_scrub_free(char **argv_copy);

/* ---- interrupt.c: counts Ctrl-C (and SIGTERM) ---- */

/* From now on the two signals only count. */
void interrupt_watch(void);

/* How many came since. */
unsigned interrupt_count(void);

#endif
