/* SPDX-License-Identifier: Apache-2.0
 * `cadre run --metrics`: what the program reports, by step, as `cadre metrics` writes it. */
#ifndef CADRE_DEPLOY_CADRE_RUN_METRICS_H
#define CADRE_DEPLOY_CADRE_RUN_METRICS_H

#include "common/wire/wire.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/trace/trace_output.h"
#include "coordinator/series/records/series_records.h"
#include "deploy/local/local.h"

/* Zeroed: none. */
struct run_metrics {
    struct trace_output output;
    bool csv;
    struct series_state *state;
    struct wire_buffer records; /* as for the file of a job, and dropped: here is none */
};

/* Of --metrics, which may be NULL. False: *ret_exit, and the error was printed. */
bool run_metrics_open(struct run_metrics *metrics, const struct invocation *invocation,
    const char *path, int *ret_exit);

/* As local_watch.values and .generations; the latter writes the file. */
bool run_metrics_take(struct run_metrics *metrics, bool evaluates, const struct task_values *values,
    const struct verify_generation *generations, size_t generation_count);
void run_metrics_finish(struct run_metrics *metrics, const struct verify_generation *generations,
    size_t generation_count);

/* A zeroed one is allowed. */
void run_metrics_close(struct run_metrics *metrics);

#endif
