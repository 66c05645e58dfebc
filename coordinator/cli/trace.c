/* SPDX-License-Identifier: Apache-2.0
 * `cadre trace`: what the tasks of a job do in some of its steps, as a file for Perfetto, and in a
 * sentence. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/model/limits.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/job_options.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/trace/json_trace.h"
#include "coordinator/cli/trace/trace_output.h"

#define SHOW_EVERY_US (CADRE_US_PER_S / 5)

struct trace_options {
    struct cli_common common;
    char *steps;
    char *output;
    uint64_t limit_us;
};

struct trace_call {
    const struct invocation *invocation;
    const struct trace_options *options;
    cadre_trace_options request;
    uint64_t job;
    char *path; /* owned; "-": standard output */
    struct trace_output output;
    struct trace_store store;
    bool no_memory;
    bool interrupted;
    bool shows; /* progress, on a terminal */
    uint64_t shown_us;
};

/* ---- options ---- */

static bool trace_take_options(struct trace_call *call, int *ret_exit)
{
    const struct trace_options *options = call->options;
    bool to_stdout = options->output != NULL && strcmp(options->output, "-") == 0;
    if (options->steps != NULL && !trace_steps_parse(options->steps, &call->request.from_first,
                                      &call->request.first, &call->request.steps)) {
        *ret_exit = invocation_usage(call->invocation,
            "--steps: \"%s\" is neither A:B with A < B, nor +N for the next ones; at most %d steps",
            options->steps, LIMIT_TRACE_STEPS);
        return false;
    }
    if (to_stdout && options->common.json) {
        *ret_exit = invocation_usage(call->invocation,
            "--json and --output - both print to standard output: give --output a file");
        return false;
    }
    call->request.limit_us = options->limit_us;
    call->shows = isatty(STDERR_FILENO) != 0;
    return true;
}

static bool trace_open_file(struct trace_call *call, int *ret_exit)
{
    const char *output = call->options->output;
    int length = output != NULL ? asprintf(&call->path, "%s", output)
                                : asprintf(&call->path, "trace-%" PRIu64 ".json", call->job);
    if (length < 0) {
        call->path = NULL;
    } else if (trace_output_open(&call->output, call->path)) {
        return true;
    }
    char sentence[HINT_BYTES];
    snprintf(sentence, sizeof sentence, "cannot write %.300s: %s",
        call->path != NULL ? call->path : "the trace", strerror(errno));
    *ret_exit = invocation_fail_with(call->invocation, CADRE_FAILED_PRECONDITION, sentence);
    return false;
}

static void trace_close(struct trace_call *call)
{
    trace_output_close(&call->output);
    free(call->path);
    trace_store_free(&call->store);
}

/* ---- while it waits ---- */

static void show_progress(struct trace_call *call, bool last)
{
    const struct trace_store *store = &call->store;
    uint64_t now_us = clock_monotonic_us();
    if (!call->shows || (!last && now_us - call->shown_us < SHOW_EVERY_US)) {
        return;
    }
    call->shown_us = now_us;
    fprintf(stderr,
        "\r\033[Ktracing job %" PRIu64 ", steps %" PRIu64 ":%" PRIu64 ": %" PRIu64
        " done, %zu spans of %zu tasks; Ctrl-C keeps what there is%s",
        call->job, store->first, store->end, trace_store_steps_done(store), store->span_count,
        store->process_count, last ? "\r\033[K" : "");
    fflush(stderr);
}

static bool on_trace(const cadre_trace *piece, void *user)
{
    struct trace_call *call = user;
    call->no_memory = !trace_store_add(&call->store, piece);
    call->interrupted = interrupt_count() > 0;
    if (call->interrupted && !piece->ended) {
        snprintf(call->store.message, sizeof call->store.message, "it was interrupted");
    }
    show_progress(call, false);
    return !call->no_memory && !call->interrupted;
}

/* ---- the end ---- */

static int write_trace(struct trace_call *call)
{
    struct trace_conclusion conclusion;
    char sentence[TRACE_SENTENCE_BYTES] = "";
    struct trace_store *store = &call->store;
    if (!trace_output_finish(&call->output, store, call->job, &conclusion, sentence)) {
        char text[HINT_BYTES];
        snprintf(text, sizeof text, "cannot write %.300s: %s", call->path, strerror(errno));
        trace_conclusion_free(&conclusion);
        return invocation_fail_with(call->invocation, CADRE_RESOURCE_EXHAUSTED, text);
    }
    bool good = true;
    if (call->options->common.json) {
        good = json_print_compact(
            json_of_trace(store, &conclusion, call->job, call->path, sentence), stdout);
    } else if (strcmp(call->path, "-") == 0) {
        fprintf(stderr, "%s\n", sentence);
    } else {
        printf("%s\n%s: %zu spans; open it at https://ui.perfetto.dev or in chrome://tracing\n",
            sentence, call->path, store->span_count);
    }
    trace_conclusion_free(&conclusion);
    trace_output_notes(store, "cadre trace", stderr);
    return invocation_print_status(call->invocation, good);
}

static int trace_run(struct trace_call *call, cadre_client *client)
{
    interrupt_watch();
    cadre_status status =
        cadre_client_trace(client, call->job, &call->request, on_trace, call, NULL);
    show_progress(call, true);
    int code = CLI_DONE;
    if (!call->store.ended && call->store.message[0] == '\0') {
        snprintf(call->store.message, sizeof call->store.message, "%s",
            status == CADRE_OK ? "its end did not come, because this command read too slowly"
                               : "the coordinator went away");
    }
    if (status != CADRE_OK) {
        code = hint_fail_job(call->invocation, client, status, call->job);
    } else if (call->no_memory) {
        code = invocation_fail_with(
            call->invocation, CADRE_RESOURCE_EXHAUSTED, "no memory for all of these spans");
    }
    if (call->store.span_count == 0 && code == CLI_DONE) {
        trace_output_notes(&call->store, "cadre trace", stderr);
        return invocation_fail_with(call->invocation, CADRE_FAILED_PRECONDITION,
            "no step was recorded, so there is no file");
    }
    if (call->store.span_count == 0) {
        return code;
    }
    int written = write_trace(call);
    return written != CLI_DONE ? written : code;
}

/* ---- the verb ---- */

int verb_trace(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print the conclusion as JSON; its keys are stable."),
        {OPTION_ROW(TEXT, "steps", struct trace_options, steps, "A:B|+N", "+10"),
            .help = "From step A on, before which A steps are applied, to before step B; or the "
                    "next N. Only steps to come can be traced."},
        {OPTION_ROW(TEXT, "output", struct trace_options, output, "FILE", NULL), .letter = 'o',
            .help = "Where the trace goes: - is standard output. Default: trace-JOB.json."},
        {OPTION_ROW(DURATION, "limit", struct trace_options, limit_us, "TIME", NULL),
            .max = LIMIT_TRACE_TIME_US,
            .help = "End after so long with what there is. Default: 60s."},
    };
    static const struct option_table table = {.program = "cadre trace",
        .usage = "JOB",
        .summary =
            "Records what the tasks of a job do in some of the steps to come, and says where the "
            "time of a step goes. The file shows, of each task and replica on one clock: input, "
            "function, each collective with its wait for others, the wait for the release of the "
            "step, apply, checkpoint; with parameter servers pulls, pushes and closures. The job "
            "goes on as it does, at less than a hundredth more.",
        .notes = "  cadre trace 3                        the next ten steps\n"
                 "  cadre trace 3 --steps 1000:1020 -o slow.json\n"
                 "  cadre trace 3 --steps +100 --json | jq -r .conclusion\n"
                 "\n"
                 "Open the file at https://ui.perfetto.dev (it stays in the browser), or in\n"
                 "chrome://tracing. Tasks are its processes; select two spans to compare them.\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct trace_options options = {0};
    struct invocation invocation;
    struct trace_call call = {.invocation = &invocation, .options = &options};
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_job(&invocation, 0, &call.job, &code) && trace_take_options(&call, &code) &&
        invocation_connect(&invocation, NULL, &client, &code) && trace_open_file(&call, &code)) {
        code = invocation_end(&invocation, trace_run(&call, client));
    }
    trace_close(&call);
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
