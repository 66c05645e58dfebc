/* SPDX-License-Identifier: Apache-2.0
 * `cadre run --trace`: what the tasks do in some of their steps, as `cadre trace` shows it. */
#ifndef CADRE_DEPLOY_CADRE_RUN_TRACE_H
#define CADRE_DEPLOY_CADRE_RUN_TRACE_H

#include "coordinator/cli/cli.h"
#include "coordinator/cli/trace/trace_output.h"
#include "deploy/local/local.h"

/* Zeroed: none. */
struct run_trace {
    struct trace_output output;
    struct trace_store store;
    uint64_t first;
    uint64_t end;
    bool no_memory;
};

/* Of --trace and --trace-steps, either of which may be NULL; fills the options. False: *ret_exit,
 * and the error was printed. */
bool run_trace_open(struct run_trace *trace, const struct invocation *invocation, const char *path,
    const char *steps, struct local_options *options, int *ret_exit);

/* As local_watch.spans. */
void run_trace_take(
    struct run_trace *trace, struct task_ref task, uint32_t pid, const struct task_spans *spans);

/* The job has ended: writes the file, and prints the sentence to standard error. */
void run_trace_finish(struct run_trace *trace);

/* A zeroed one is allowed. */
void run_trace_close(struct run_trace *trace);

#endif
