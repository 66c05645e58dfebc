/* SPDX-License-Identifier: Apache-2.0
 * `cadre logs`: what a job's tasks wrote, and with -f what they are writing, as lines, bytes or
 * JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/error.h"
#include "coordinator/cli/render/terminal.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/line_splitter.h"

struct logs_options {
    struct cli_common common;
    bool follow;
    bool raw;
    char *task;
    uint64_t tail_bytes;
};

/* The offset of the next line of a task's log. */
struct task_position {
    uint64_t offset;
    uint64_t left_out; /* bytes before it that are not kept */
};

struct reader {
    struct line_splitter line_splitter;
    uint64_t job;
    struct task_position *task_positions; /* for --json, by task; else NULL */
    bool one_task; /* its bytes are written unchanged, without a newline of ours */
    bool clean;    /* standard output is a terminal, and --raw was not given */
    struct escaper escaper;
    bool closed; /* standard output takes no more */
};

static void verb_emit(uint32_t task, const char *text_line, size_t size, void *user)
{
    (void)task;
    struct reader *reader = user;
    reader->closed = reader->closed || fwrite(text_line, 1, size, stdout) != size;
}

/* The bytes of one task, escaped on a terminal. */
static void emit_bytes(const cadre_log *log, struct reader *reader)
{
    char cleaned[ESCAPER_GROWTH * 1024 + 16];
    if (!reader->clean) {
        verb_emit(log->task, log->bytes, log->size, reader);
        return;
    }
    size_t at = 0;
    do {
        size_t take = log->size - at < 1024 ? log->size - at : 1024;
        bool end = log->end && at + take == log->size;
        verb_emit(log->task, cleaned,
            escaper_add(&reader->escaper, log->bytes + at, take, end, cleaned), reader);
        at += take;
    } while (at < log->size);
}

static void emit_json(uint32_t task, const char *text_line, size_t size, void *user)
{
    struct reader *reader = user;
    struct task_position *task_position = &reader->task_positions[task];
    reader->closed = reader->closed ||
                     !json_print_compact(json_of_text_line(reader->job, task, task_position->offset,
                                             task_position->left_out, text_line, size),
                         stdout);
    *task_position = (struct task_position){.offset = task_position->offset + size};
}

/* Gaps are in the objects' offsets. */
static void add_json(const cadre_log *log, struct reader *reader)
{
    if (log->task >= reader->line_splitter.task_count) {
        return;
    }
    struct task_position *task_position = &reader->task_positions[log->task];
    if (log->left_out > 0) {
        line_splitter_end(&reader->line_splitter, log->task);
        task_position->left_out += log->left_out;
        task_position->offset = log->offset;
    } else if (task_position->offset == 0) {
        task_position->offset = log->offset; /* --tail */
    }
    line_splitter_add(&reader->line_splitter, log->task, log->bytes, log->size);
    if (log->end) {
        line_splitter_end(&reader->line_splitter, log->task);
    }
}

/* Reports a gap on standard error. */
static void print_hole(const cadre_log *log, struct reader *reader)
{
    if (!reader->one_task) {
        line_splitter_end(&reader->line_splitter, log->task);
    }
    fflush(stdout);
    fprintf(stderr,
        "cadre logs: task %" PRIu32 ": %" PRIu64
        " bytes are left out here; the coordinator keeps the beginning and the newest end of a "
        "log (--log-limit)\n",
        log->task, log->left_out);
}

static bool on_log(const cadre_log *log, void *user)
{
    struct reader *reader = user;
    if (log->left_out > 0 && reader->task_positions == NULL) {
        print_hole(log, reader);
    }
    if (reader->task_positions != NULL) {
        add_json(log, reader);
    } else if (reader->one_task) {
        emit_bytes(log, reader);
    } else {
        line_splitter_add(&reader->line_splitter, log->task, log->bytes, log->size);
        if (log->end) {
            line_splitter_end(&reader->line_splitter, log->task);
        }
    }
    reader->closed = reader->closed || fflush(stdout) != 0;
    return !reader->closed;
}

static void on_outage(bool away, void *user)
{
    const struct invocation *invocation = user;
    fprintf(stderr, "%s: %s\n", invocation->table->program,
        away ? "the coordinator went away; trying again" : "the coordinator is back");
}

static int read_logs(const struct invocation *invocation, cadre_client *client, uint64_t id,
    const cadre_log_options *request, bool raw)
{
    cadre_job *job = NULL;
    struct reader reader = {.job = id};
    const struct cli_common *common = invocation->values;
    cadre_status status = cadre_client_job(client, id, &job, NULL);
    if (status != CADRE_OK) {
        return hint_fail_job(invocation, client, status, id);
    }
    const struct text_style text_style = terminal_style_of(stdout);
    reader.one_task = job->workers == 1 || request->one_task;
    reader.clean = text_style.columns > 0 && !raw;
    reader.task_positions =
        common->json ? calloc(job->workers + 1U, sizeof *reader.task_positions) : NULL;
    if (!line_splitter_open(&reader.line_splitter, job->workers, &text_style,
            common->json ? emit_json : verb_emit, &reader) ||
        (common->json && reader.task_positions == NULL)) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for the logs");
        status = cadre_error_publish(&error);
    } else {
        reader.line_splitter.bare = common->json;
        reader.line_splitter.clean = reader.clean && !common->json;
        status = cadre_client_logs(client, id, request, on_log, &reader, NULL);
    }
    line_splitter_close(&reader.line_splitter);
    free(reader.task_positions);
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

int verb_logs(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW(
            "Print a JSON object for each line instead: job, task, offset, left_out, text, "
            "partial."),
        {OPTION_ROW(FLAG, "follow", struct logs_options, follow, NULL, NULL), .letter = 'f',
            .help = "Go on until the job has ended."},
        {OPTION_ROW(FLAG, "raw", struct logs_options, raw, NULL, NULL),
            .help = "To a terminal, too, the bytes as the tasks wrote them. Without it control "
                    "characters are shown there, \\x1b for escape, so that they do not act on the "
                    "terminal. Files and pipes get the bytes in any case."},
        {OPTION_ROW(TEXT, "task", struct logs_options, task, "TASK", NULL), .letter = 't',
            .help = "Only this task's, as it wrote it, without a prefix."},
        {OPTION_ROW(BYTES, "tail", struct logs_options, tail_bytes, "BYTES", NULL),
            .help = "Begin so many bytes before the end of each task's log: 4096, 64KiB."},
    };
    static const struct option_table table = {.program = "cadre logs",
        .usage = "ID",
        .summary = "Prints what a job's tasks wrote. Lines of a job with several tasks begin with "
                   "the task's number.",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct logs_options options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    uint64_t id = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code)) {
        cadre_log_options request = {.follow = options.follow, .tail_bytes = options.tail_bytes};
        const cadre_client_options connection = {.on_outage = on_outage, .user = &invocation};
        if (invocation_job(&invocation, 0, &id, &code) &&
            parse_task(&invocation, options.task, &request, &code) &&
            invocation_connect(&invocation, &connection, &client, &code)) {
            int read = read_logs(&invocation, client, id, &request, options.raw);
            code = invocation_end(&invocation, read);
        }
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
