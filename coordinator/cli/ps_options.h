/* SPDX-License-Identifier: Apache-2.0
 * The options of a job with parameter servers, which `submit` and `run` share. */
#ifndef CADRE_CLI_PS_OPTIONS_H
#define CADRE_CLI_PS_OPTIONS_H

#include "common/model/ps_job.h"
#include "coordinator/cli/cli.h"

struct ps_options {
    uint64_t servers;
    uint64_t evaluators;
    bool backups;
};

/* Rows of a table whose values have a `struct ps_options ps_job`; put them behind the
 * strategy's. */
#define PS_OPTION_ROWS(table_values)                                                               \
    {OPTION_ROW(U64, "ps", table_values, ps_job.servers, "N", NULL), .max = LIMIT_TASKS_PER_JOB,   \
        .group = "Parameter servers",                                                              \
        .help = "Tasks that hold the variables, with --strategy parameter_server. --workers then " \
                "counts the tasks that run closures, and the chief that schedules them comes on "  \
                "top. A worker or a server that ends is started again; when the chief does, all "  \
                "begin again from the newest checkpoint."},                                        \
        {OPTION_ROW(U64, "evaluators", table_values, ps_job.evaluators, "N", NULL),                \
            .max = LIMIT_TASKS_PER_JOB,                                                            \
            .help = "0 or 1: a task that reads the servers' variables beside the training."},      \
    {                                                                                              \
        OPTION_ROW(FLAG, "ps-backups", table_values, ps_job.backups, NULL, NULL),                  \
            .help =                                                                                \
                "Each server holds a copy of another one's variables, so that one may be lost "    \
                "with its machine."                                                                \
    }

/* The tasks of the ps job; zeroed when no option of these was given. False: *ret_exit, and the
 * error was printed. */
bool ps_options_make(const struct invocation *invocation, const struct ps_options *options,
    const char *strategy, uint32_t workers_min, uint32_t workers, struct ps_job *ret_ps_job,
    int *ret_exit);

#endif
