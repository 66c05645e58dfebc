/* SPDX-License-Identifier: Apache-2.0
 * `cadre logs`: what a job's tasks wrote, and with -f what they are writing, as lines, bytes or
 * JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/log_printer.h"
#include "coordinator/cli/since.h"

struct logs_options {
    struct cli_common common;
    bool follow;
    bool raw;
    bool only_stdout;
    bool only_stderr;
    bool timestamps;
    char *task;
    char *since;
    uint64_t tail_lines;
};

static void on_outage(bool away, void *user)
{
    const struct invocation *invocation = user;
    fprintf(stderr, "%s: %s\n", invocation->table->program,
        away ? "the coordinator went away; trying again" : "the coordinator is back");
}

static int read_logs(const struct invocation *invocation, cadre_client *client, uint64_t id,
    const cadre_log_options *request)
{
    cadre_job *job = NULL;
    struct log_printer printer;
    const struct logs_options *options = invocation->values;
    cadre_status status = cadre_client_job(client, id, &job, NULL);
    if (status != CADRE_OK) {
        return hint_fail_job(invocation, client, status, id);
    }
    const struct log_printer_options printed = {.one_task = job->workers == 1 || request->one_task,
        .raw = options->raw,
        .timestamps = options->timestamps,
        .json = options->common.json};
    if (!log_printer_open(&printer, id, job->workers, &printed)) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for the logs");
        status = cadre_error_publish(&error);
    } else {
        status = cadre_client_logs(client, id, request, log_printer_add, &printer, NULL);
    }
    log_printer_close(&printer);
    cadre_result_release(job);
    return status == CADRE_OK ? CLI_DONE : invocation_fail(invocation, status);
}

static bool parse_task(const struct invocation *invocation, const char *text,
    cadre_log_options *request, int *ret_exit)
{
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    unsigned long task = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || task > UINT32_MAX) {
        *ret_exit = invocation_usage(
            invocation, "--task: \"%s\" is not the number of a task, 0 or above", text);
        return false;
    }
    request->one_task = true;
    request->task = (uint32_t)task;
    return true;
}

/* Fills the request from the options. */
static bool make_request(const struct invocation *invocation, const struct logs_options *options,
    cadre_log_options *request, int *ret_exit)
{
    *request = (cadre_log_options){.follow = options->follow, .tail_lines = options->tail_lines};
    if (options->only_stdout && options->only_stderr) {
        *ret_exit = invocation_usage(
            invocation, "--stdout and --stderr: give one of them; without either both are printed");
        return false;
    }
    request->stream = options->only_stderr ? CADRE_STDERR : options->only_stdout ? CADRE_STDOUT : 0;
    if (options->since != NULL &&
        !since_parse(options->since, clock_wall_us(), &request->since_us)) {
        *ret_exit = invocation_usage(invocation,
            "--since: \"%s\" is neither a duration such as 90s, 10m, 2h or 3d nor a time such as "
            "2026-11-29T06:40:00Z",
            options->since);
        return false;
    }
    return parse_task(invocation, options->task, request, ret_exit);
}

int verb_logs(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW(
            "Print a JSON object for each line instead: job, task, stream, received_us, offset, "
            "left_out, text, partial."),
        {OPTION_ROW(FLAG, "follow", struct logs_options, follow, NULL, NULL), .letter = 'f',
            .help = "Go on until the job has ended."},
        {OPTION_ROW(FLAG, "raw", struct logs_options, raw, NULL, NULL),
            .help = "To a terminal, too, the bytes as the tasks wrote them. Without it control "
                    "characters are shown there, \\x1b for escape, so that they do not act on the "
                    "terminal. Files and pipes get the bytes in any case."},
        {OPTION_ROW(TEXT, "task", struct logs_options, task, "TASK", NULL), .letter = 't',
            .help = "Only this task's, as it wrote it, without a prefix."},
        {OPTION_ROW(FLAG, "stdout", struct logs_options, only_stdout, NULL, NULL),
            .help = "Only what tasks wrote to standard output."},
        {OPTION_ROW(FLAG, "stderr", struct logs_options, only_stderr, NULL, NULL),
            .help = "Only what tasks wrote to standard error."},
        {OPTION_ROW(FLAG, "timestamps", struct logs_options, timestamps, NULL, NULL),
            .help =
                "Before each line the time (UTC) at which the worker read it from the task; \"-\""
                " where it was not recorded, by a worker of an earlier version."},
        {OPTION_ROW(U64, "tail", struct logs_options, tail_lines, "LINES", NULL), .min = 1,
            .max = 1000000000,
            .help = "Begin so many lines before the end of each task's log: 20."},
        {OPTION_ROW(TEXT, "since", struct logs_options, since, "TIME", NULL),
            .help = "Begin at this time, as of the workers' clocks: a duration before now (90s,"
                    " 10m, 2h, 3d), or 2026-11-29T06:40:00Z."},
    };
    static const struct option_table table = {.program = "cadre logs",
        .usage = "ID",
        .summary = "Prints what a job's tasks wrote, to standard output and error, in the order in "
                   "which their workers read it. Lines of a job with several tasks begin with the "
                   "task's number.",
        .notes = "  cadre logs 7 -f                       what it writes, as it comes\n"
                 "  cadre logs 7 --stderr --tail 20       the last 20 lines of each task's stderr\n"
                 "  cadre logs 7 --timestamps --since 10m\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct logs_options options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    uint64_t id = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code)) {
        cadre_log_options request;
        const cadre_client_options connection = {.on_outage = on_outage, .user = &invocation};
        if (invocation_job(&invocation, 0, &id, &code) &&
            make_request(&invocation, &options, &request, &code) &&
            invocation_connect(&invocation, &connection, &client, &code)) {
            int read = read_logs(&invocation, client, id, &request);
            code = invocation_end(&invocation, read);
        }
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
