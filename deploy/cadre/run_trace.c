/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/cadre/run_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/model/task_message.h"
#include "common/view/view.h"
#include "coordinator/cli/job_options.h"

#define STEPS_DEFAULT "10:30" /* the first ones are unlike the others */

bool run_trace_open(struct run_trace *trace, const struct invocation *invocation, const char *path,
    const char *steps, struct local_options *options, int *ret_exit)
{
    bool from_first = false;
    uint64_t count = 0;
    if (path == NULL && steps == NULL) {
        return true;
    }
    if (path == NULL || strcmp(path, "-") == 0) {
        *ret_exit = invocation_usage(invocation, "%s: give --trace FILE, a file for the trace",
            path == NULL ? "--trace-steps" : "--trace -");
        return false;
    }
    if (!trace_steps_parse(
            steps != NULL ? steps : STEPS_DEFAULT, &from_first, &trace->first, &count) ||
        !from_first) {
        *ret_exit = invocation_usage(invocation,
            "--trace-steps: \"%s\" is not A:B with A < B; at most %d steps", steps,
            LIMIT_TRACE_STEPS);
        return false;
    }
    if (!trace_output_open(&trace->output, path)) {
        *ret_exit = invocation_usage(invocation, "--trace %s: %s", path, strerror(errno));
        return false;
    }
    trace->end = trace->first + count;
    options->trace_first = trace->first;
    options->trace_end = trace->end;
    return true;
}

void run_trace_take(
    struct run_trace *trace, struct task_ref task, uint32_t pid, const struct task_spans *spans)
{
    const cadre_trace_task about = {.task = task.slot,
        .incarnation = task.incarnation,
        .state = spans->ended ? CADRE_TRACE_ENDED : CADRE_TRACE_RECORDS,
        .worker = "this machine",
        .pid = pid,
        .clock = spans->clock,
        .position = spans->position,
        .lost = spans->lost};
    cadre_trace piece = {.first = trace->first,
        .end = trace->end,
        .clock_ns = clock_monotonic_ns(),
        .wall_us = clock_wall_us(),
        .tasks = &about,
        .task_count = 1,
        .task = task.slot,
        .incarnation = task.incarnation,
        .span_count = spans->span_count,
        .own_numbers = spans->own_numbers,
        .message = ""};
    cadre_trace_span *copies = calloc(spans->span_count + 1, sizeof *copies);
    if (copies != NULL) {
        view_spans(spans->spans, spans->span_count, copies);
        piece.spans = copies;
        trace->no_memory = !trace_store_add(&trace->store, &piece) || trace->no_memory;
    }
    trace->no_memory = trace->no_memory || copies == NULL;
    free(copies);
}

void run_trace_finish(struct run_trace *trace)
{
    struct trace_conclusion conclusion;
    char sentence[TRACE_SENTENCE_BYTES];
    char path[1024];
    if (trace->output.file == NULL) {
        return;
    }
    if (trace->store.span_count == 0) {
        fprintf(stderr, "cadre run: no step of %llu:%llu was recorded, so there is no trace\n",
            (unsigned long long)trace->first, (unsigned long long)trace->end);
        return;
    }
    snprintf(path, sizeof path, "%s", trace->output.path);
    bool good = trace_output_finish(&trace->output, &trace->store, 1, &conclusion, sentence);
    if (good) {
        fprintf(stderr,
            "cadre run: %s\n%s: %zu spans; open it at https://ui.perfetto.dev or in "
            "chrome://tracing\n",
            sentence, path, trace->store.span_count);
        trace_output_notes(&trace->store, "cadre run", stderr);
    } else {
        fprintf(stderr, "cadre run: cannot write %s: %s\n", path, strerror(errno));
    }
    trace_conclusion_free(&conclusion);
}

void run_trace_close(struct run_trace *trace)
{
    trace_output_close(&trace->output);
    trace_store_free(&trace->store);
}
